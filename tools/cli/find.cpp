// tessera find
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/csv_line.h>
#include <tessera/error_text.h>
#include <tessera/find_elements.h>
#include <tessera/locate.h>
#include <tessera/npy.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "options.h"
#include "report.h"
#include "selected.h"

namespace tessera::cli {

namespace {

struct FindCall {
    std::string path, condition;
    std::optional<std::string> selection, limit, out;
    bool csv = false;
    bool raw = false;
    bool no_index = false;
};

void print_csv(const std::vector<FoundColumn>& columns, std::size_t rows) {
    const auto line = [&](const auto& cell) {
        std::string text;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (c > 0) text += ',';
            append_csv_text(text, cell(columns[c]), columns.size() == 1);
        }
        print(text + "\r\n");
    };
    line([](const FoundColumn& column) { return column.name; });
    for (std::size_t n = 0; n < rows; ++n) {
        line([n](const FoundColumn& column) { return column.json.as_array()[n].is_null() ? "" : column.texts[n]; });
    }
}

void print_columns(const std::vector<FoundColumn>& columns, std::size_t rows) {
    std::vector<std::size_t> widths;
    for (const FoundColumn& column : columns) {
        widths.push_back(column.name.size());
        for (const std::string& text : column.texts) widths.back() = std::max(widths.back(), text.size());
    }
    const auto line = [&](const auto& cell) {
        std::string text;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            text += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", cell(columns[c]), widths[c]);
        }
        print(printable(text) + "\n");
    };
    line([](const FoundColumn& column) { return column.name; });
    for (std::size_t n = 0; n < rows; ++n) line([n](const FoundColumn& column) { return column.texts[n]; });
}

Value found_value(const FindCall& o, const FoundElements& found, const std::vector<FoundColumn>& columns) {
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("condition", o.condition);
    value.set("found", std::ssize(found.positions));
    value.set("left_out", found.left_out);
    Value indices = Value::array();
    for (std::size_t n = 0; n < columns.back().texts.size(); ++n) indices.push_back(shape_value(found.index(n)));
    value.set("indices", std::move(indices));
    Value coordinates = Value::object();
    for (const FoundColumn& column : columns) {
        if (column.coordinate) coordinates.set(column.name, column.json);
    }
    value.set("coordinates", std::move(coordinates));
    value.set("values", columns.back().json);
    return value;
}

int find(Session& session, const FindCall& o) {
    const int most = parse_number("--limit", o.limit.value_or("1000"), 0, 1'000'000'000);
    if (o.out && (o.csv || session.options().json))
        throw invalid_argument("--out: with --csv or --json nothing is saved");
    if (o.csv && session.options().json) throw invalid_argument("--csv: --json was given, too");
    if (o.out && !o.out->ends_with(".npy")) throw invalid_argument("--out: expected the name of a .npy file");
    return at_located(o.path, [&](const Located& at) {
        const auto source = open_source(at);
        FindOptions options{.raw = o.raw, .by_index = !o.no_index, .io = session.io()};
        if (o.selection) options.selection = chosen_part(session, o.path, *o.selection, std::as_const(*source));
        const FoundElements found = find_elements(*source, o.condition, options);
        session.clear_progress();
        const bool all = o.csv || session.options().json;
        const auto rows = std::min<std::int64_t>(std::ssize(found.positions), all && !o.limit ? INT64_MAX : most);
        if (o.out) {
            save_npy(*o.out, found.indices().view());
            print(fmt::format("saved the indices of {} elements → {}\n",
                              grouped(static_cast<std::uint64_t>(std::ssize(found.positions))), printable(*o.out)));
            return exit_done;
        }
        const std::vector<FoundColumn> columns = found_columns(*source, found, rows);
        if (session.options().json) {
            print_json(found_value(o, found, columns));
        } else if (o.csv) {
            print_csv(columns, static_cast<std::size_t>(rows));
        } else {
            if (rows > 0) print_columns(columns, static_cast<std::size_t>(rows));
            session.note(fmt::format("{} match{}{}{}", count_text(std::ssize(found.positions), "element"),
                                     found.positions.size() == 1 ? "es" : "",
                                     rows < std::ssize(found.positions) ? "; --limit or --csv shows more of them" : "",
                                     found.left_out > 0
                                         ? fmt::format("; {} chunks were not read, because nothing in them can match",
                                                       grouped(static_cast<std::uint64_t>(found.left_out)))
                                         : ""));
        }
        return exit_done;
    });
}

}  // namespace

Run declare_find(CLI::App& app) {
    auto o = std::make_shared<FindCall>();
    app.add_option("PATH", o->path, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("CONDITION", o->condition, "an expression as of `calc`, in which `value` is the array")
        ->required()
        ->option_text(" ");
    app.add_option("--sel", o->selection, fmt::format("only in this part: {}", selection_forms))
        ->option_text("SELECTION");
    app.add_option("--limit", o->limit, "at most so many elements (default 1000; with --csv and --json all)")
        ->option_text("N");
    app.add_flag("--csv", o->csv, "comma-separated values, with a header");
    app.add_option("--out", o->out, "save the indices as a .npy file, as numpy.argwhere gives them")
        ->option_text("FILE");
    app.add_flag("--raw", o->raw, raw_text);
    app.add_flag("--no-index", o->no_index,
                 "read all that is stored, whatever the index of chunks says (tessera index)");
    return [o](Session& session) { return find(session, *o); };
}

}  // namespace tessera::cli
