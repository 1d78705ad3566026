// tessera diff
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/difference.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "options.h"
#include "report.h"
#include "retry.h"

namespace tessera::cli {

namespace {

struct DiffOptions {
    std::string a, b, places = "10";
    Tolerance tolerance;
};

Value difference_value(const Difference& found) {
    Value value = Value::object();
    value.set("equal", found.none());
    Value structure = Value::array();
    for (const std::string& text : found.structure) structure.push_back(text);
    value.set("structure", std::move(structure));
    value.set("elements", found.elements);
    value.set("different", found.different);
    Value first = Value::array();
    for (const Difference::Place& place : found.first) {
        Value one = Value::object();
        one.set("index", shape_value(place.index));
        one.set("a", place.json_a);
        one.set("b", place.json_b);
        first.push_back(std::move(one));
    }
    value.set("first", std::move(first));
    value.set("largest", found.largest ? Value(*found.largest) : Value());
    value.set("largest_at", found.largest ? shape_value(found.largest_at) : Value());
    return value;
}

void print_difference(const Difference& found, const DiffOptions& o) {
    for (const std::string& text : found.structure) print(printable(text) + "\n");
    if (!found.compared) return;
    if (found.different == 0) {
        print(fmt::format("all {} elements are equal\n", grouped(static_cast<std::uint64_t>(found.elements))));
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

int diff(Session& session, const DiffOptions& o) {
    if (!(o.tolerance.atol >= 0) || !(o.tolerance.rtol >= 0)) {
        throw invalid_argument("--atol and --rtol must be 0 or more");
    }
    const int places = parse_number("--places", o.places, 0, 1'000'000);
    const Difference found = retry_when_replaced({o.a, o.b}, [&] {
        const std::unique_ptr<ArraySource> a = about_path(o.a, [&] { return open_source(o.a); });
        const std::unique_ptr<ArraySource> b = about_path(o.b, [&] { return open_source(o.b); });
        return difference(*a, *b, o.tolerance, places, session.io());
    });
    session.clear_progress();
    if (session.options().json) {
        print_json(difference_value(found));
    } else if (!session.options().quiet) {
        print_difference(found, o);
    }
    return found.none() ? exit_done : exit_differences;
}

}  // namespace

Run declare_diff(CLI::App& app) {
    auto o = std::make_shared<DiffOptions>();
    app.add_option("A", o->a, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("B", o->b, "another")->required()->option_text(" ");
    app.add_option("--atol", o->tolerance.atol, "numbers may differ by this much (default 0: bit for bit)")
        ->option_text("X");
    app.add_option("--rtol", o->tolerance.rtol, "and by this much of B's")->option_text("X");
    app.add_option("--places", o->places, "list so many of the elements that differ (default 10)")->option_text("N");
    return [o](Session& session) { return diff(session, *o); };
}

}  // namespace tessera::cli
