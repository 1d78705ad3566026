// tessera advise
#include <fmt/format.h>

#include <tessera/advise_layout.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "options.h"
#include "paths.h"
#include "report.h"

namespace tessera::cli {

namespace {

constexpr std::size_t shown_layouts = 8;

struct Options {
    std::string path, reads;
};

/// Of UTF-8 in which each character is one column wide.
std::size_t columns_of(std::string_view text) {
    constexpr unsigned char mask = 0xc0, continuation = 0x80;
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & mask) != continuation; }));
}

void print_layouts(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const auto& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(row[c]));
    }
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            line += (c == 0 ? "" : "  ") + std::string(widths[c] - columns_of(row[c]), ' ') + row[c];
        }
        print(printable(line) + "\n");
    }
}

void print_advice(const Options& o, const LayoutAdvice& advice, const std::vector<ReadPattern>& reads) {
    std::vector<std::vector<std::string>> rows{{"", "chunks", "shards", "codec", "stored", "values"}};
    for (const ReadPattern& read : reads) rows.front().push_back(read.text);
    rows.front().emplace_back("write");
    const auto add = [&](const TriedLayout& tried) {
        rows.push_back({tried.present ? "now" : "", shape_text(tried.chunks),
                        tried.shards.empty() ? "–" : shape_text(tried.shards), tried.codec,
                        bytes_text(static_cast<std::uint64_t>(tried.stored)),
                        grouped(static_cast<std::uint64_t>(tried.values))});
        for (const double seconds : tried.reads) rows.back().push_back(fmt::format("{:.2g} s", seconds));
        rows.back().push_back(fmt::format("{:.2g} s", tried.write));
    };
    for (std::size_t n = 0; n < advice.tried.size(); ++n) {
        if (n < shown_layouts || advice.tried[n].present) add(advice.tried[n]);
    }
    print_layouts(rows);
    const TriedLayout& best = advice.tried.front();
    print(best.present ? "the present layout is the best of these\n"
                       : printable(fmt::format("best: tessera copy {} NEW {}", o.path, layout_options(best))) + "\n");
}

int advise(Session& session, const Options& o) {
    std::vector<ReadPattern> reads;
    const LayoutAdvice advice = at_located(o.path, [&](const Located& at) {
        const auto source = about_path(o.path, [&] { return open_source(at); });
        const Shape shape = source->info().shape;
        reads = in_context([] { return "--reads"; },
                           [&] { return parse_reads(o.reads, shape, dimension_names_of(*source)); });
        return advise_layout(*source, reads, session.io());
    });
    session.clear_progress();
    if (!session.options().json) {
        print_advice(o, advice, reads);
        return exit_done;
    }
    print_json(advice_value(o.path, reads, advice));
    return exit_done;
}

}  // namespace

Run declare_advise(CLI::App& app) {
    auto o = std::make_shared<Options>();
    app.add_option("PATH", o->path, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("--reads", o->reads,
                   "ways in which it is read, between semicolons: so many indices along dimensions, all of any other,\n"
                   "as 'time=1; lat=1,lon=1' (default: one index along each, and one series along the first)")
        ->option_text("PATTERNS");
    return [o](Session& session) { return advise(session, *o); };
}

}  // namespace tessera::cli
