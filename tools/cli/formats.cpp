// tessera formats
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/codec.h>
#include <tessera/dialect.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct Row {
    std::string_view name, about;
};

Value table_value(const std::vector<Row>& rows) {
    Value list = Value::array();
    for (const Row& row : rows) {
        Value value = Value::object();
        value.set("name", row.name);
        value.set("about", row.about);
        list.push_back(std::move(value));
    }
    return list;
}

void print_table(std::string_view title, const std::vector<Row>& rows) {
    print(fmt::format("{}\n", title));
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    for (const Row& row : rows) print(fmt::format("  {:<{}}  {}\n", row.name, width, row.about));
}

int formats(Session& session) {
    std::vector<Row> dialects;
    std::vector<Row> files;
    std::vector<Row> codecs;
    for (const Dialect& d : dialect_table()) dialects.push_back({d.name, d.about});
    for (const ArrayFileFormat& f : array_file_formats()) files.push_back({f.extension, f.about});
    for (const CodecRow& c : codec_table()) codecs.push_back({c.name, c.about});
    if (session.options().json) {
        Value report = Value::object();
        report.set("generations", table_value(dialects));
        report.set("array_files", table_value(files));
        report.set("codecs", table_value(codecs));
        print_json(report);
        return exit_done;
    }
    print_table("Formats of arrays (--format):", dialects);
    print_table("\nArray files (by extension):", files);
    print_table("\nCodecs (--codec; \"numcodecs.\" may be left out):", codecs);
    return exit_done;
}

}  // namespace

Run declare_formats(CLI::App& /*app*/) {
    return [](Session& session) { return formats(session); };
}

}  // namespace tessera::cli
