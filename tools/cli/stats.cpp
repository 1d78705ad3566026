// tessera stats
#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/json.h>
#include <tessera/statistics.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "command.h"
#include "options.h"
#include "report.h"
#include "retry.h"

namespace tessera::cli {

namespace {

struct StatsOptions {
    std::string path, bins = "32";
    std::optional<std::string> selection;
};

Value mean_value(const Statistics& s) {
    if (!s.mean) return {};
    if (const auto date = mean_date_text(s.dtype, *s.mean)) return *date;
    return *s.mean;
}

Value histogram_value(const std::optional<Histogram>& h) {
    if (!h) return {};
    Value value = Value::object();
    value.set("start", h->start);
    value.set("width", h->width);
    value.set("counts", Value::Array(h->counts.begin(), h->counts.end()));
    return value;
}

void set_statistics(Value& value, const Statistics& s) {
    value.set("dtype", s.dtype.to_string());
    value.set("count", s.count);
    value.set("nan", s.nans);
    value.set("fill", s.fills);
    value.set("min", s.min_json);
    value.set("max", s.max_json);
    value.set("mean", mean_value(s));
    value.set("deviation", s.deviation ? Value(*s.deviation) : Value());
    value.set("histogram", histogram_value(s.histogram));
}

/// Of plain elements themselves, of structures each field.
Value statistics_value(const std::string& path, const DType& dtype, const Shape& shape,
                       const std::vector<Statistics>& found) {
    Value value = Value::object();
    value.set("path", path_value(path));
    Value fields = Value::array();
    if (dtype.kind() != Kind::structure) {
        set_statistics(value, found.front());
    } else {
        value.set("dtype", dtype.to_string());
        value.set("count", element_count(shape));
        for (const char* name : {"nan", "fill", "min", "max", "mean", "deviation", "histogram"})
            value.set(name, Value());
        for (const Statistics& s : found) {
            Value field = Value::object();
            field.set("field", s.field);
            set_statistics(field, s);
            fields.push_back(std::move(field));
        }
    }
    value.set("fields", std::move(fields));
    return value;
}

/// "3.5 D": a number of the dtype's unit.
std::string deviation_text(const Statistics& s) {
    const TimeUnit unit = s.dtype.time_unit();
    const bool time = s.dtype.kind() == Kind::datetime || s.dtype.kind() == Kind::timedelta;
    if (!time || unit.base == TimeUnit::Base::generic) return python_float_repr(*s.deviation);
    const std::string dtype = s.dtype.str();  // "<M8[10ns]"
    const std::size_t name = dtype.find_first_not_of("0123456789", dtype.find('[') + 1);
    return fmt::format("{} {}", python_float_repr(*s.deviation * unit.multiple),
                       dtype.substr(name, dtype.find(']') - name));
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
    if (s.mean) facts.add("mean", mean_date_text(s.dtype, *s.mean).value_or(python_float_repr(*s.mean)));
    if (s.deviation) facts.add("deviation", deviation_text(s));
    facts.add("NaN", grouped(static_cast<std::uint64_t>(s.nans)));
    facts.add("fill", grouped(static_cast<std::uint64_t>(s.fills)));
    facts.print();
    if (s.histogram) print_histogram(*s.histogram);
}

int stats(Session& session, const StatsOptions& o) {
    const int bins = parse_number("--bins", o.bins, 0, 10'000);
    std::unique_ptr<ArraySource> source;
    Shape shape;
    const std::vector<Statistics> found = retry_when_replaced({o.path}, [&] {
        source = about_path(o.path, [&] { return open_source(o.path); });
        std::optional<ElementBytes> fill;
        if (const auto* array = dynamic_cast<const Array*>(source.get())) fill = array->metadata().fill.bytes;
        std::optional<Selection> selection;
        if (o.selection) {
            selection = about_path(o.path, [&] { return Selection::parse(*o.selection, source->info().shape); });
        }
        shape = selection ? selection->shape() : source->info().shape;
        return statistics(*source, fill, bins, session.io(), selection);
    });
    session.clear_progress();
    if (session.options().json) {
        print_json(statistics_value(o.path, source->info().dtype, shape, found));
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
    app.add_option("--sel", o->selection, "of this part alone: '10:20, ::2, 5, ...'")->option_text("SELECTION");
    app.add_option("--bins", o->bins, "at most so many bins in the histogram, 4 or more (default 32); 0: none")
        ->option_text("N");
    return [o](Session& session) { return stats(session, *o); };
}

}  // namespace tessera::cli
