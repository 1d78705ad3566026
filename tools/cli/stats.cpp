// tessera stats
#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/statistics.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "command.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct StatsOptions {
    std::string path, bins = "32";
};

std::optional<Value> optional_value(const std::optional<double>& v) {
    return v ? std::optional<Value>(*v) : std::nullopt;
}

Value statistics_value(const Statistics& s) {
    Value value = Value::object();
    if (!s.field.empty()) value.set("field", s.field);
    value.set("dtype", s.dtype.str());
    value.set("count", s.count);
    value.set("nan", s.nans);
    value.set("fill", s.fills);
    value.set("min", s.min ? Value(*s.min) : Value());
    value.set("max", s.max ? Value(*s.max) : Value());
    value.set("mean", optional_value(s.mean).value_or(Value()));
    value.set("deviation", optional_value(s.deviation).value_or(Value()));
    if (s.histogram) {
        Value histogram = Value::object();
        histogram.set("start", s.histogram->start);
        histogram.set("width", s.histogram->width);
        histogram.set("counts", Value::Array(s.histogram->counts.begin(), s.histogram->counts.end()));
        value.set("histogram", std::move(histogram));
    }
    return value;
}

void print_histogram(const Histogram& h) {
    const std::int64_t most = *std::ranges::max_element(h.counts);
    constexpr std::int64_t columns = 40;
    std::vector<std::string> labels;
    std::size_t width = 0;
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
        labels.push_back(python_float_repr(h.start + static_cast<double>(i) * h.width));
        width = std::max(width, labels.back().size());
    }
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
        const std::int64_t count = h.counts[i];
        // Whatever is there shows.
        const auto bar =
            count == 0
                ? 0
                : std::max<std::int64_t>(
                      1, static_cast<std::int64_t>(static_cast<double>(count) / static_cast<double>(most) * columns));
        std::string line = fmt::format("  {:>{}}  ", labels[i], width);
        for (std::int64_t b = 0; b < bar; ++b) line += "█";
        print(line + (bar > 0 ? " " : "") + grouped(static_cast<std::uint64_t>(count)) + "\n");
    }
}

void print_statistics(const Statistics& s) {
    Facts facts;
    if (!s.field.empty()) facts.add("field", s.field);
    facts.add("dtype", s.dtype.to_string());
    facts.add("elements", grouped(static_cast<std::uint64_t>(s.count)));
    if (s.min) facts.add("min", *s.min);
    if (s.max) facts.add("max", *s.max);
    if (s.mean) facts.add("mean", python_float_repr(*s.mean));
    if (s.deviation) facts.add("deviation", python_float_repr(*s.deviation));
    facts.add("NaN", grouped(static_cast<std::uint64_t>(s.nans)));
    facts.add("fill", grouped(static_cast<std::uint64_t>(s.fills)));
    facts.print();
    if (s.histogram) print_histogram(*s.histogram);
}

int stats(Session& session, const StatsOptions& o) {
    const std::unique_ptr<ArraySource> source = open_source(o.path);
    std::optional<ElementBytes> fill;
    if (const auto* array = dynamic_cast<const Array*>(source.get())) fill = array->metadata().fill.bytes;
    const std::vector<Statistics> found =
        statistics(*source, fill, parse_number("--bins", o.bins, 0, 10'000), session.io());
    session.clear_progress();
    if (session.options().json) {
        Value list = Value::array();
        for (const Statistics& s : found) list.push_back(statistics_value(s));
        print_json(found.size() == 1 && found.front().field.empty() ? list.as_array().front() : list);
        return exit_done;
    }
    for (const Statistics& s : found) {
        if (&s != &found.front()) print("\n");
        print_statistics(s);
    }
    return exit_done;
}

}  // namespace

Run declare_stats(CLI::App& app) {
    auto o = std::make_shared<StatsOptions>();
    app.add_option("PATH", o->path, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("--bins", o->bins, "at most so many bins in the histogram, 4 or more (default 32); 0: none")
        ->option_text("N");
    return [o](Session& session) { return stats(session, *o); };
}

}  // namespace tessera::cli
