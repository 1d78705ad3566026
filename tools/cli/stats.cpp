// tessera stats
#include <fmt/format.h>
#include <tessera/error_text.h>

#include <tessera/array.h>
#include <tessera/chunk_index.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/dimensions.h>
#include <tessera/json.h>
#include <tessera/measure.h>
#include <tessera/ndarray.h>
#include <tessera/reduce.h>
#include <tessera/report_values.h>
#include <tessera/slices.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "command.h"
#include "histogram.h"
#include "options.h"
#include "paths.h"
#include "report.h"
#include "selected.h"

namespace tessera::cli {

namespace {

struct StatsOptions {
    std::vector<std::string> paths;
    std::string path;  ///< the one whose turn it is
    std::optional<std::string> selection, axis, bins;
    std::vector<std::string> with;
    bool raw = false;
    bool no_index = false;
};

/// What is said of the whole array.
struct Summarised {
    DType dtype, stored_dtype;
    Shape shape;
    bool decoded = false;
    std::optional<std::int64_t> outside = {};
};

/// What --with asks for beside the usual statistics: of the whole array, or of each position along an axis.
using Further = std::vector<std::pair<std::string, NDArray>>;

const std::byte* element_of(const NDArray& values, std::size_t position) {
    return values.bytes().data() + position * static_cast<std::size_t>(values.dtype().size());
}

Value further_value(const Further& further, std::size_t position) {
    Value value = Value::object();
    for (const auto& [word, values] : further) {
        value.set(word, element_to_json(values.dtype(), element_of(values, position)));
    }
    return value;
}

std::string mean_text(const Statistics& s) {
    return s.mean_date.value_or(python_float_repr(*s.mean));
}

/// The statistics of plain elements, or of each field of structures.
Value statistics_value(const std::string& path, const Summarised& of, const std::vector<Statistics>& found) {
    Value value = Value::object();
    value.set("path", path_value(path));
    Value fields = Value::array();
    if (of.dtype.kind() != Kind::structure) {
        add_statistics(value, found.front());
    } else {
        value.set("dtype", of.dtype.to_string());
        value.set("count", element_count(of.shape));
        for (const char* name : {"nan", "missing", "fill", "min", "max", "mean", "deviation", "histogram"})
            value.set(name, Value());
        for (const Statistics& s : found) {
            Value field = Value::object();
            field.set("field", s.field);
            add_statistics(field, s);
            fields.push_back(std::move(field));
        }
    }
    value.set("stored_dtype", of.stored_dtype.to_string());
    value.set("outside_valid", of.outside ? Value(*of.outside) : Value());
    value.set("fields", std::move(fields));
    value.set("axis", Value());
    value.set("positions", Value::array());
    return value;
}

/// Along an axis: an entry for each position, but none for the whole array.
Value positions_value(const std::string& path, const Summarised& of, int axis,
                      const std::vector<std::vector<Statistics>>& found, const Further& further) {
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("dtype", of.dtype.to_string());
    value.set("stored_dtype", of.stored_dtype.to_string());
    value.set("outside_valid", of.outside ? Value(*of.outside) : Value());
    value.set("count", element_count(of.shape));
    for (const char* name : {"nan", "missing", "fill", "min", "max", "mean", "deviation", "histogram"})
        value.set(name, Value());
    value.set("fields", Value::array());
    value.set("axis", axis);
    Value positions = Value::array();
    for (std::size_t i = 0; i < found.size(); ++i) {
        Value position = statistics_value(path, of, found[i]);
        for (const char* name : {"path", "stored_dtype", "outside_valid", "axis", "positions"}) position.erase(name);
        if (of.dtype.kind() == Kind::structure) position.set("count", element_count(of.shape) / std::ssize(found));
        position.set("further", further_value(further, i));
        position.set("position", static_cast<std::int64_t>(i));
        positions.push_back(std::move(position));
    }
    value.set("further", Value::object());
    value.set("positions", std::move(positions));
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

void print_statistics(const Statistics& s, const Further& further, const Summarised& of) {
    Facts facts;
    if (!s.field.empty()) facts.add("field", s.field);
    const bool plain = s.dtype == of.stored_dtype || !s.field.empty();
    facts.add("dtype",
              s.dtype.to_string() + (plain ? "" : fmt::format(" (stored as {})", of.stored_dtype.to_string())));
    facts.add("elements", grouped(static_cast<std::uint64_t>(s.count)));
    if (s.min) facts.add("min", *s.min);
    if (s.max) facts.add("max", *s.max);
    if (s.mean) facts.add("mean", mean_text(s));
    if (s.deviation) facts.add("deviation", deviation_text(s));
    for (const auto& [word, values] : further) facts.add(word, element_to_text(values.dtype(), element_of(values, 0)));
    facts.add(of.decoded ? "missing" : "NaN", grouped(static_cast<std::uint64_t>(s.nans)));
    facts.add("fill", grouped(static_cast<std::uint64_t>(s.fills)));
    if (of.outside && *of.outside > 0) {
        facts.add("outside", grouped(static_cast<std::uint64_t>(*of.outside)) +
                                 " of what valid_range, valid_min or valid_max allow");
    }
    facts.print();
    if (s.histogram) print_histogram(*s.histogram);
}

using Row = std::vector<std::string>;

Row row_of(std::size_t position, const Statistics& s, bool fields) {
    const std::string none = "–";
    Row row{std::to_string(position)};
    if (fields) row.push_back(s.field);
    row.push_back(grouped(static_cast<std::uint64_t>(s.count)));
    row.push_back(grouped(static_cast<std::uint64_t>(s.nans)));
    row.push_back(s.min.value_or(none));
    row.push_back(s.max.value_or(none));
    row.push_back(s.mean ? mean_text(s) : none);
    row.push_back(s.deviation ? deviation_text(s) : none);
    return row;
}

/// A line for each position, or each field at each; every column as wide as it has to be.
void print_positions(int axis, const Summarised& of, const std::vector<std::vector<Statistics>>& found,
                     const Further& further) {
    const bool fields = of.dtype.kind() == Kind::structure;
    Row titles{fmt::format("axis {}", axis)};
    if (fields) titles.emplace_back("field");
    for (const char* title : {"elements", of.decoded ? "missing" : "NaN", "min", "max", "mean", "deviation"})
        titles.emplace_back(title);
    for (const auto& [word, values] : further) titles.push_back(word);
    std::vector<Row> rows{std::move(titles)};
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (const Statistics& s : found[i]) {
            rows.push_back(row_of(i, s, fields));
            for (const auto& [word, values] : further) {
                rows.back().push_back(element_to_text(values.dtype(), element_of(values, i)));
            }
        }
    }
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            // "–" is three bytes and one column wide.
            const std::size_t more = row[c] == "–" ? 2 : 0;
            line += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", row[c], widths[c] + more);
        }
        print(line + "\n");
    }
}

/// The names of the dimensions that a selection leaves.
DimensionNames kept_names(const ArraySource& source, const std::optional<Selection>& selection) {
    const DimensionNames names = dimension_names_of(source);
    if (!selection || names.empty()) return names;
    DimensionNames kept;
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (!selection->axes()[d].dropped) kept.push_back(names[d]);
    }
    return kept;
}

/// All that was found of one array.
struct Found {
    Summarised of;
    std::optional<int> axis;                         ///< of --axis
    std::vector<Statistics> whole;                   ///< without --axis
    std::vector<std::vector<Statistics>> positions;  ///< along the axis
    Further further;
};

std::optional<int> axis_of(const StatsOptions& o, const ArraySource& source, const std::optional<Selection>& selection,
                           const Shape& shape) {
    if (!o.axis) return {};
    if (shape.empty()) throw invalid_argument("{}: it has no dimension", o.path);
    return in_context([] { return "--axis"; },
                      [&] { return find_dimension(*o.axis, kept_names(source, selection), shape.rank()); });
}

Found found_in(Session& session, const StatsOptions& o, int bins, std::unique_ptr<ArraySource> source) {
    Found found;
    found.of.stored_dtype = native_dtype(source->info().dtype);
    std::optional<Selection> selection;
    if (o.selection) selection = chosen_part(session, o.path, *o.selection, source);
    found.of.outside = outside_valid_range(*source, session.io(), selection);
    const auto index = ChunkIndex::of(*source, o.raw);
    if (!o.raw) source = decoded(std::move(source));
    found.of.dtype = source->info().dtype;
    found.of.decoded = source->converted_from() != nullptr;
    found.of.shape = selection ? selection->shape() : source->info().shape;
    found.axis = axis_of(o, *source, selection, found.of.shape);
    for (const std::string& word : o.with) {
        in_context([] { return "--with"; }, [&] { (void)parse_reduction(word); });
        found.further.emplace_back(word, statistic(*source, word, found.axis, session.io(), selection));
    }
    const std::optional<ElementBytes> fill = source->fill_bytes();
    if (found.axis) {
        found.positions = statistics_along(*source, *found.axis, fill, session.io(), selection);
    } else {
        const IndexUse use = o.no_index ? IndexUse::ignore : IndexUse::use;
        found.whole = statistics(*source, index, use, fill, bins, session.io(), selection);
    }
    if (o.raw) return found;
    for (auto& one : found.positions) one = with_dates(std::move(one), *source);
    found.whole = with_dates(std::move(found.whole), *source);
    return found;
}

void print_found(const StatsOptions& o, const Found& found, bool json) {
    if (found.axis) {
        if (json) return print_json(positions_value(o.path, found.of, *found.axis, found.positions, found.further));
        return print_positions(*found.axis, found.of, found.positions, found.further);
    }
    if (json) {
        Value value = statistics_value(o.path, found.of, found.whole);
        value.set("further", further_value(found.further, 0));
        return print_json(value);
    }
    for (const Statistics& s : found.whole) {
        if (&s != &found.whole.front()) print("\n");
        print_statistics(s, found.further, found.of);
    }
}

int stats(Session& session, const StatsOptions& o) {
    if (o.axis && o.bins && *o.bins != "0") throw invalid_argument("--bins: there are no histograms along an axis");
    const int bins = parse_number("--bins", o.bins.value_or("32"), 0, 10'000);
    const Found found = at_located(o.path, [&](const Located& at) {
        return found_in(session, o, bins, about_path(o.path, [&] { return open_source(at); }));
    });
    session.clear_progress();
    print_found(o, found, session.options().json);
    return exit_done;
}

}  // namespace

namespace {

/// The arrays of a data set, without its coordinates; none of anything else.
std::vector<std::string> data_at(const std::string& path) {
    const auto set = DataSet::at(path);
    std::vector<std::string> arrays;
    if (!set) return arrays;
    for (const std::string& name : set->names()) {
        if (set->is_data(name)) arrays.push_back(set->path_of(name));
    }
    if (arrays.empty()) throw invalid_argument("{}: it holds no data, but coordinates alone: name one of them", path);
    return arrays;
}

/// The same options, with the items of the selection whose dimensions an array has.
StatsOptions options_for(const StatsOptions& o, const std::string& path, SharedSelection* shared) {
    StatsOptions own = o;
    own.path = path;
    if (shared == nullptr) return own;
    const std::string items = shared->items_for(*open_source(path));
    own.selection = items.empty() ? std::nullopt : std::optional(items);
    return own;
}

int stats_of(Session& session, const StatsOptions& o, const std::vector<std::string>& paths) {
    std::optional<SharedSelection> shared;
    if (o.selection && paths != o.paths) shared.emplace(*o.selection);
    const int code = for_each_path(session, paths, [&](const std::string& path) {
        if (paths.size() > 1 && !session.options().json) {
            print((path == paths.front() ? "" : "\n") + printable(path) + ":\n");
        }
        return stats(session, options_for(o, path, shared ? &*shared : nullptr));
    });
    if (shared) shared->require_found();
    return code;
}

int stats_of_all(Session& session, const StatsOptions& o) {
    if (o.paths.size() == 1) {
        // One array is looked at once. What is none may be a data set.
        try {
            return stats_of(session, o, o.paths);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            const std::vector<std::string> arrays = data_at(o.paths.front());
            if (arrays.empty()) throw;
            return stats_of(session, o, arrays);
        }
    }
    std::vector<std::string> paths;
    for (const std::string& given : o.paths) {
        std::vector<std::string> arrays;
        try {
            arrays = data_at(given);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;  // else stats() says what is wrong, among the others
        }
        if (arrays.empty()) paths.push_back(given);
        paths.insert(paths.end(), arrays.begin(), arrays.end());
    }
    return stats_of(session, o, paths);
}

}  // namespace

Run declare_stats(CLI::App& app) {
    auto o = std::make_shared<StatsOptions>();
    app.add_option("PATH", o->paths,
                   "arrays, array files or members of one; of a group or a file all arrays but coordinates")
        ->required()
        ->option_text(" ");
    app.add_option("--sel", o->selection, fmt::format("of this part alone: {}", selection_forms))
        ->option_text("SELECTION");
    app.add_option("--axis", o->axis,
                   "of each position along this dimension: a line for each (a name or number; -1: the last)")
        ->option_text("DIM");
    app.add_option("--with", o->with,
                   "also median, p95, p2.5, var and so on, as `reduce --with`, without NaN; may be repeated, or p5,p95")
        ->option_text("WORDS")
        ->delimiter(',');
    app.add_flag("--raw", o->raw, raw_text);
    app.add_flag("--no-index", o->no_index, "read all, whatever the index of chunks says (tessera index)");
    app.add_option("--bins", o->bins, "at most so many bins in the histogram, 4 or more (default 32); 0: none")
        ->option_text("N");
    return [o](Session& session) { return stats_of_all(session, *o); };
}

}  // namespace tessera::cli
