// tessera formats
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/codec.h>
#include <tessera/dialect.h>
#include <tessera/store_kind.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct Row {
    std::string name, about;
};

Value table_value(const std::vector<Row>& rows, std::string_view name = "name") {
    Value list = Value::array();
    for (const Row& row : rows) {
        Value value = Value::object();
        value.set(name, row.name);
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

/// The kinds by their schemes; that of this machine has none.
std::vector<Row> kinds_of_stores() {
    std::vector<Row> stores;
    for (const StoreKind& kind : store_kinds()) {
        // Files that are stores have no row: the folders' kind finds them.
        const std::string_view files =
            kind.scheme.empty() ? ", and in them zips (.zip), written whole, and references (.json), only read" : "";
        stores.push_back({std::string(kind.scheme), fmt::format("{}{}", kind.about, files)});
    }
    return stores;
}

int formats(Session& session) {
    std::vector<Row> dialects;
    std::vector<Row> files;
    std::vector<Row> codecs;
    for (const Dialect* d : dialect_table()) dialects.push_back({std::string(d->name), std::string(d->about)});
    for (const ArrayFileFormat& f : array_file_formats())
        files.push_back({std::string(f.extension), std::string(f.about)});
    for (const CodecRow& c : codec_table()) codecs.push_back({std::string(c.name), std::string(c.about)});
    const std::vector<Row> stores = kinds_of_stores();
    if (session.options().json) {
        Value report = Value::object();
        report.set("formats", table_value(dialects));
        report.set("generations", table_value(dialects));  // deprecated: the former name of "formats"
        report.set("array_files", table_value(files));
        report.set("codecs", table_value(codecs));
        report.set("stores", table_value(stores, "scheme"));
        print_json(report);
        return exit_done;
    }
    print_table("Formats of arrays (--format):", dialects);
    print_table("\nArray files (by extension):", files);
    print_table("\nCodecs (--codec; \"numcodecs.\" may be left out):", codecs);
    std::vector<Row> paths;
    for (const Row& row : stores) paths.push_back({row.name.empty() ? "PATH" : row.name + ":PATH", row.about});
    print_table("\nStores (by what a path begins with):", paths);
    return exit_done;
}

}  // namespace

Run declare_formats(CLI::App& /*app*/) {
    return [](Session& session) { return formats(session); };
}

}  // namespace tessera::cli
