// tessera diff
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/measure.h>
#include <tessera/report_values.h>
#include <tessera/seal_difference.h>
#include <tessera/tree_difference.h>
#include <tessera/turned.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "options.h"
#include "report.h"
#include "selected.h"

namespace tessera::cli {

namespace {

struct DiffOptions {
    std::string a, b, places = "10";
    std::optional<std::string> selection;
    Tolerance tolerance;
    bool raw = false;
    bool sums = false;
};

void print_difference(const Difference& found, const DiffOptions& o) {
    for (const std::string& text : found.structure) print(printable(text) + "\n");
    if (!found.compared) return;
    if (found.different == 0) {
        print(fmt::format("all {} elements are equal\n", grouped(static_cast<std::uint64_t>(found.elements))));
        if (!found.codes.empty()) print(fmt::format("their stored codes are not (--raw): {}\n", found.codes));
        return;
    }
    std::string line = fmt::format("{} of {} elements differ", grouped(static_cast<std::uint64_t>(found.different)),
                                   grouped(static_cast<std::uint64_t>(found.elements)));
    if (found.largest) {
        line += fmt::format(", at most by {} at {}", python_float_repr(*found.largest), found.largest_at.to_string());
    }
    print(line + "\n");
    for (const Difference::Place& place : found.first) {
        print(printable(fmt::format("  {}  {}  {}", place.index.to_string(), place.a, place.b)) + "\n");
    }
    if (found.different > static_cast<std::int64_t>(found.first.size())) {
        print(fmt::format("  … (--places shows more than {})\n", o.places));
    }
}

/// Maps an index in a selection to one in the array, which may be turned.
Index index_in_array(const Selection& selection, const Index& index, const Turn* turn) {
    Index whole;
    int k = 0;
    for (const Selection::Axis& axis : selection.axes()) {
        whole.push_back(axis.start + (axis.dropped ? 0 : index[k++] * axis.step));
    }
    if (turn != nullptr) whole[turn->dimension] = turn->stored(whole[turn->dimension]);
    return whole;
}

Difference part_difference(Session& session, const DiffOptions& o, std::unique_ptr<ArraySource> a,
                           std::unique_ptr<ArraySource> b, int places, const IoOptions& io) {
    const Selection of_a = chosen_part(session, o.a, *o.selection, a);
    const Selection of_b = chosen_part(session, o.b, *o.selection, b);
    const auto compare = o.raw ? difference : difference_by_meaning;
    const Turn* const turned = turn_of(*a);
    const std::optional<Turn> turn = turned != nullptr ? std::optional(*turned) : std::nullopt;
    Value meant_by_a = meaning_of(*a).attributes, meant_by_b = meaning_of(*b).attributes;
    Difference found = compare(*selected_source(std::move(a), of_a, std::move(meant_by_a)),
                               *selected_source(std::move(b), of_b, std::move(meant_by_b)), o.tolerance, places, io);
    for (Difference::Place& place : found.first)
        place.index = index_in_array(of_a, place.index, turn ? &*turn : nullptr);
    if (found.largest) found.largest_at = index_in_array(of_a, found.largest_at, turn ? &*turn : nullptr);
    return found;
}

// ---- hierarchies

void print_tree_difference(const TreeDifference& found, const DiffOptions& o) {
    const auto name = [](const std::string& path) { return path.empty() ? std::string(".") : path; };
    for (const std::string& path : found.only_in_a) print(printable(fmt::format("{}: only in A", path)) + "\n");
    for (const std::string& path : found.only_in_b) print(printable(fmt::format("{}: only in B", path)) + "\n");
    for (const std::string& path : found.attributes) {
        print(printable(fmt::format("{}: the attributes differ", name(path))) + "\n");
    }
    for (const auto& [path, text] : found.codes) {
        print(printable(fmt::format("{}: the elements are equal, their stored codes are not: {}", name(path), text)) +
              "\n");
    }
    for (const auto& [path, difference] : found.different) {
        print(printable(fmt::format("{}: ", name(path))));
        print_difference(difference, o);
    }
    if (found.none()) print(fmt::format("all {} are equal\n", count_text(found.same, "node")));
}

int report_trees(Session& session, const DiffOptions& o, const TreeDifference& found) {
    session.clear_progress();
    if (session.options().json) {
        print_json(tree_difference_value(found));
    } else if (!session.options().quiet) {
        print_tree_difference(found, o);
    }
    return found.none() ? exit_done : exit_differences;
}

void require_no_part(const DiffOptions& o) {
    if (o.selection) throw invalid_argument("--sel: {} holds several arrays; name one of them", o.a);
}

int diff_located(Session& session, const DiffOptions& o, int places, const Located& at_a, const Located& at_b) {
    if (const CompareTrees compare = tree_comparison(at_a, at_b)) {
        require_no_part(o);
        return report_trees(session, o, compare({o.tolerance, places, o.raw}, session.io()));
    }
    // What is missing is the fault, not the group that it is compared with.
    if (group_at(at_a)) (void)about_path(o.b, [&] { return open_source(at_b); });
    std::unique_ptr<ArraySource> a = about_path(o.a, [&] { return open_source(at_a); });
    std::unique_ptr<ArraySource> b = about_path(o.b, [&] { return open_source(at_b); });
    const auto compare = o.raw ? difference : difference_by_meaning;
    const Difference found = o.selection ? part_difference(session, o, std::move(a), std::move(b), places, session.io())
                                         : compare(*a, *b, o.tolerance, places, session.io());
    session.clear_progress();
    if (session.options().json) {
        print_json(difference_value(found));
    } else if (!session.options().quiet) {
        print_difference(found, o);
    }
    return found.none() ? exit_done : exit_differences;
}

// ---- seals

void print_paths(const std::vector<std::string>& paths, std::string_view what, const DiffOptions& o, int places) {
    const std::size_t shown = std::min(paths.size(), static_cast<std::size_t>(std::max(places, 0)));
    for (const std::string& path : std::span(paths).first(shown)) {
        print(printable(fmt::format("{}: {}", path, what)) + "\n");
    }
    if (std::cmp_greater(paths.size(), places)) {
        print(fmt::format("  … and {} more (--places shows more than {})\n",
                          grouped(paths.size() - static_cast<std::size_t>(places)), o.places));
    }
}

int diff_sums(Session& session, const DiffOptions& o, int places) {
    const SealDifference found = seal_difference(o.a, o.b);
    if (session.options().json) {
        print_json(seal_difference_value(found));
    } else if (!session.options().quiet) {
        print_paths(found.different, "the sums differ", o, places);
        print_paths(found.only_in_a, "only in A", o, places);
        print_paths(found.only_in_b, "only in B", o, places);
        print(fmt::format("{} have the same sums by both seals\n", count_text(found.same, "file")));
    }
    return found.none() ? exit_done : exit_differences;
}

int diff(Session& session, const DiffOptions& o) {
    if (!(o.tolerance.atol >= 0) || !(o.tolerance.rtol >= 0)) {
        throw invalid_argument("--atol and --rtol must be 0 or more");
    }
    const int places = parse_number("--places", o.places, 0, 1'000'000);
    if (o.sums) return diff_sums(session, o, places);
    return at_located(o.a, [&](const Located& a) {
        return at_located(o.b, [&](const Located& b) { return diff_located(session, o, places, a, b); });
    });
}

}  // namespace

Run declare_diff(CLI::App& app) {
    auto o = std::make_shared<DiffOptions>();
    app.add_option("A", o->a, "an array or a group; an array file, of one array or several, or a member of one")
        ->required()
        ->option_text(" ");
    app.add_option("B", o->b, "another")->required()->option_text(" ");
    app.add_option("--sel", o->selection, fmt::format("compare only this part of both: {}", selection_forms))
        ->option_text("SELECTION");
    app.add_option("--atol", o->tolerance.atol, "numbers may differ by this much (default 0: bit for bit)")
        ->option_text("X");
    app.add_option("--rtol", o->tolerance.rtol, "and by this much of B's")->option_text("X");
    app.add_flag("--raw", o->raw, "compare the stored codes, as digest does, not what they stand for");
    app.add_option("--places", o->places, "list so many of the elements that differ (default 10)")->option_text("N");
    app.add_flag("--sums", o->sums,
                 "compare two sealed copies by the sums of their seals, file by file; no data are read (verify says\n"
                 "whether the files still are as they were sealed)")
        ->excludes("--sel", "--atol", "--rtol", "--raw");
    return [o](Session& session) { return diff(session, *o); };
}

}  // namespace tessera::cli
