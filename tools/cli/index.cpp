// tessera index
#include <fmt/format.h>

#include <tessera/chunk_index.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/report_values.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "hierarchy.h"
#include "paths.h"
#include "report.h"

namespace tessera::cli {

namespace {

int index_one(Session& session, const std::string& path) {
    const Indexed made =
        at_located(path, [&](const Located& at) { return index_chunks(*open_source(at), session.io()); });
    session.clear_progress();
    const auto number = [](std::int64_t n) { return grouped(static_cast<std::uint64_t>(n)); };
    std::string text = fmt::format("indexed {}: {} stored chunks, of which {} were read ({})", path,
                                   number(made.chunks), number(made.counted), bytes_text(made.bytes));
    if (made.unsettled > 0) {
        text += fmt::format("; {} changed a moment ago, and come into the index the next time", number(made.unsettled));
    }
    report(session, indexed_value(path, made), text);
    return exit_done;
}

}  // namespace

Run declare_index(CLI::App& app) {
    auto paths = std::make_shared<std::vector<std::string>>();
    app.add_option("PATH", *paths, "arrays in directories")->required()->option_text(" ");
    return [paths](Session& session) {
        return for_each_path(session, *paths, [&](const std::string& path) { return index_one(session, path); });
    };
}

}  // namespace tessera::cli
