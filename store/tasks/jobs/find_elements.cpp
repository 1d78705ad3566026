// Which chunks can match is found out by the condition itself: "value > 40" holds for some element of a chunk only if
// it holds for the greatest, and "value < 50" only if it holds for the least. So each comparison is computed for all
// least or greatest elements, with the rounding and the types that it has for elements. NaN meets no comparison but !=.
#include <tessera/find_elements.h>

#include <fmt/format.h>
#include <tessera/calc.h>
#include <tessera/chunk_grid.h>
#include <tessera/chunk_index.h>
#include <tessera/conventions.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/meaning.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <mutex>
#include <utility>

#include "coordinate_table.h"

namespace tessera {

namespace {

constexpr std::string_view operand = "value";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// Whether the parenthesis that a text begins with is closed at its end.
bool is_enclosed(std::string_view text) {
    if (!text.starts_with('(') || !text.ends_with(')')) return false;
    int depth = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0) return false;
    }
    return true;
}

bool is_plain_number(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && text.front() >= '0' && text.front() <= '9';
}

/// A condition that elements meet only if the least, or the greatest of them meets it.
struct Bound {
    std::string condition;
    bool greatest = false;
};

/// The bounds of "value OP number" or "number OP value"; none of anything else.
std::vector<Bound> bounds_of_comparison(std::string_view text) {
    constexpr std::array<std::string_view, 5> operators{"<=", ">=", "==", "<", ">"};
    for (const std::string_view op : operators) {
        const std::size_t at = text.find(op);
        if (at == text.npos) continue;
        const std::string_view left = trimmed(text.substr(0, at));
        const std::string_view right = trimmed(text.substr(at + op.size()));
        const bool turned = right == operand;
        const std::string_view number = turned ? left : right;
        if ((turned ? right : left) != operand || !is_plain_number(number)) return {};
        if (op == "==") {
            return {{fmt::format("value <= {}", number), false}, {fmt::format("value >= {}", number), true}};
        }
        return {{std::string(text), (op.front() == '>') != turned}};
    }
    return {};
}

/// All bounds of a comparison, or of several that are joined by &. Those that are no such comparisons bound nothing.
std::vector<Bound> bounds_of(std::string_view text) {
    text = trimmed(text);
    while (is_enclosed(text)) text = trimmed(text.substr(1, text.size() - 2));
    if (text.find_first_of("|^~'\"") != text.npos) return {};
    if (text.find('(') == text.npos) {
        return text.find('&') == text.npos ? bounds_of_comparison(text) : std::vector<Bound>();
    }
    // Only parts in parentheses, with & between them: everything else binds in another way than it looks.
    std::vector<Bound> bounds;
    while (!text.empty()) {
        int depth = 0;
        std::size_t end = 0;
        do {
            if (end == text.size()) return {};
            depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
            ++end;
        } while (depth > 0);
        if (!text.starts_with('(')) return {};
        for (Bound& bound : bounds_of(text.substr(0, end))) bounds.push_back(std::move(bound));
        text = trimmed(text.substr(end));
        if (text.empty()) break;
        if (!text.starts_with('&')) return {};
        text = trimmed(text.substr(1));
        if (text.empty()) return {};
    }
    return bounds;
}

/// Where a condition holds among elements in memory.
NDArray mask_of(const NDArray& elements, bool marks, std::string_view condition, const std::string& name,
                const IoOptions& io) {
    std::unique_ptr<ArraySource> values = view_source(elements.view(), name);
    // As calc takes them.
    if (marks)
        values = marks_as_nan(decoded_source(shared_source(std::move(values), Value{{"_FillValue", missing_integer}})),
                              false);
    const auto mask = calc_source(condition, {{std::string(operand), std::move(values)}}, elements.shape(), 0);
    if (mask->info().dtype.kind() != Kind::boolean) {
        throw invalid_argument("the condition '{}' is {}, but has to be true or false for each element", condition,
                               mask->info().dtype.to_string());
    }
    NDArray holds(mask->info().dtype, elements.shape());
    try {
        mask->read_into(Region::whole(elements.shape()), holds.view(), io);
    } catch (const Error& e) {
        if (!marks || e.code() != ErrorCode::invalid_argument) throw;
        throw unsupported("{}; the stored codes can be looked for (raw)", e.what());
    }
    return holds;
}

class Finder {
public:
    Finder(const ArraySource& elements, const ChunkIndex* index, std::string_view condition, const FindOptions& options)
        : elements_(elements),
          index_(index),
          condition_(condition),
          io_(options.io),
          info_(elements.info()),
          dtype_(native_dtype(info_.dtype)),
          region_(options.selection ? options.selection->bounds() : Region::whole(info_.shape)) {
        if (options.selection && !options.selection->is_region()) {
            throw invalid_argument("{}: a condition is looked for in a region, without steps", elements.name());
        }
        (void)mask_of(NDArray(dtype_, Shape{0}), info_.marks_missing, condition_, elements_.name(), io_);
    }

    [[nodiscard]] FoundElements find() {
        FoundElements found{.shape = info_.shape, .positions = {}, .values = {}, .left_out = 0};
        choose_boxes(found.left_out);
        const std::int64_t count = std::ssize(runs_) + std::ssize(slices_);
        if (io_.progress != nullptr) {
            std::int64_t bytes = 0;
            for (std::int64_t n = 0; n < count; ++n) bytes += byte_count(box(n).extent, dtype_.size());
            io_.progress->start(bytes, "find");
        }
        IoOptions order = io_;
        if (info_.access != Access::any) order.threads = 1;
        parallel_in_memory(count, order, [&](std::int64_t n) { look_in(box(n)); });
        return joined(std::move(found));
    }

private:
    struct Part {
        CountedVector<std::int64_t> positions;
        Buffer values;
    };

    /// Neighbours along the last dimension: so many units from this one on, among those that the region touches.
    struct Run {
        std::int64_t first = 0;
        std::int64_t count = 1;
    };

    /// Chooses regions that together hold all elements that may match.
    void choose_boxes(std::int64_t& left_out) {
        const auto bounds = index_ != nullptr && !info_.marks_missing ? bounds_of(condition_) : std::vector<Bound>();
        if (bounds.empty() || region_.empty() || region_.rank() == 0) {
            for_each_slice(info_, dtype_.size(), region_, io_.stop,
                           [&](const Region& slice) { slices_.push_back(slice); });
            return;
        }
        units_ = index_->units();
        touched_ = units_->overlapping(region_);
        const CountedVector<std::int64_t> excluded = units_without(bounds, *units_);
        for (std::int64_t n = 0; n < touched_.count(); ++n) {
            if (std::ranges::binary_search(excluded, units_->linear(index_in(touched_, n)))) {
                ++left_out;
            } else {
                add_unit(n);
            }
        }
    }

    void add_unit(std::int64_t n) {
        constexpr std::int64_t enough = std::int64_t{2} << 20;
        const std::int64_t row = touched_.extent[touched_.rank() - 1];
        const bool follows = !runs_.empty() && runs_.back().first + runs_.back().count == n && n % row != 0;
        if (follows && (runs_.back().count + 1) * byte_count(units_->chunks(), dtype_.size()) <= enough) {
            ++runs_.back().count;
        } else {
            runs_.push_back({n});
        }
    }

    /// The part of a run in the region; or a slice.
    [[nodiscard]] Region box(std::int64_t n) const {
        if (runs_.empty()) return slices_[static_cast<std::size_t>(n)];
        const Run& run = runs_[static_cast<std::size_t>(n)];
        Region box = units_->chunk_region(index_in(touched_, run.first));
        const Region last = units_->chunk_region(index_in(touched_, run.first + run.count - 1));
        for (int d = 0; d < box.rank(); ++d) {
            const std::int64_t start = std::max(box.start[d], region_.start[d]);
            box.extent[d] = std::min(last.start[d] + last.extent[d], region_.start[d] + region_.extent[d]) - start;
            box.start[d] = start;
        }
        return box;
    }

    /// The numbers of units of which an entry says that no element matches, ascending.
    [[nodiscard]] CountedVector<std::int64_t> units_without(const std::vector<Bound>& bounds,
                                                            const ChunkGrid& units) const {
        CountedVector<std::int64_t> numbers;
        CountedVector<std::int64_t> excluded;
        Buffer least;
        Buffer greatest;
        IoOptions io = io_;
        io.progress = nullptr;
        const auto known = index_->for_each_unit(
            {.region = region_, .entries = ChunkIndex::Entries::only},
            [&](const Region& unit, std::string_view summary) {
                const std::int64_t number = units.linear(units.overlapping(unit).start);
                const auto extremes = index_->extremes(summary);
                if (!extremes) return excluded.push_back(number);
                numbers.push_back(number);
                least.append(extremes->first);
                greatest.append(extremes->second);
            },
            io);
        if (!known) return {};
        std::vector<bool> may(numbers.size(), true);
        for (const Bound& bound : bounds) {
            NDArray extremes(dtype_, Shape{std::ssize(numbers)});
            std::ranges::copy((bound.greatest ? greatest : least).span(), extremes.bytes().begin());
            const NDArray holds = mask_of(extremes, false, bound.condition, elements_.name(), io_);
            for (std::size_t i = 0; i < numbers.size(); ++i) may[i] = may[i] && holds.bytes()[i] != std::byte{0};
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (!may[i]) excluded.push_back(numbers[i]);
        }
        std::ranges::sort(excluded);
        return excluded;
    }

    void look_in(const Region& box) {
        NDArray elements(dtype_, box.extent);
        elements_.read_into(box, elements.view(), {.threads = 1, .stop = io_.stop});
        const NDArray holds = mask_of(elements, info_.marks_missing, condition_, elements_.name(), {.threads = 1});
        Part part;
        const auto size = static_cast<std::size_t>(dtype_.size());
        for (std::int64_t i = 0; i < elements.count(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (holds.bytes()[at] == std::byte{0}) continue;
            part.positions.push_back(position_of(index_in(box, i)));
            part.values.append(elements.bytes().subspan(at * size, size));
        }
        if (io_.progress != nullptr) io_.progress->advance(byte_count(box.extent, dtype_.size()));
        if (part.positions.empty()) return;
        const std::lock_guard lock(mutex_);
        parts_.push_back(std::move(part));
    }

    [[nodiscard]] std::int64_t position_of(const Index& index) const {
        std::int64_t position = 0;
        for (int d = 0; d < index.rank(); ++d) position = position * info_.shape[d] + index[d];
        return position;
    }

    /// All parts, in C order of the array.
    [[nodiscard]] FoundElements joined(FoundElements found) const {
        CountedVector<std::pair<std::int64_t, const std::byte*>> all;
        for (const Part& part : parts_) {
            const std::byte* value = part.values.data();
            for (const std::int64_t position : part.positions) {
                all.emplace_back(position, value);
                value += dtype_.size();
            }
        }
        std::ranges::sort(all);
        found.values = NDArray(dtype_, Shape{std::ssize(all)});
        std::byte* to = found.values.bytes().data();
        for (const auto& [position, value] : all) {
            found.positions.push_back(position);
            to = std::copy_n(value, dtype_.size(), to);
        }
        return found;
    }

    const ArraySource& elements_;
    const ChunkIndex* index_;
    std::string_view condition_;
    const IoOptions& io_;
    ArrayInfo info_;
    DType dtype_;
    Region region_;
    std::optional<ChunkGrid> units_;
    Region touched_;                ///< units, by the region
    CountedVector<Run> runs_;       ///< to read, of an array with an index
    CountedVector<Region> slices_;  ///< to read, of any other
    std::mutex mutex_;
    std::vector<Part> parts_;
};

}  // namespace

Index FoundElements::index(std::size_t n) const {
    Index index = Index::filled(shape.rank(), 0);
    std::int64_t left = positions[n];
    for (int d = shape.rank() - 1; d >= 0; --d) {
        index[d] = left % shape[d];
        left /= shape[d];
    }
    return index;
}

bool FoundElements::lacks(std::size_t n) const {
    if (!marks) return false;
    const std::byte* const element = values.bytes().data() + n * static_cast<std::size_t>(values.dtype().size());
    if (values.dtype() == DType::of<std::int64_t>()) return load_number<std::int64_t>(element, 0) == missing_integer;
    double value = 0;
    to_doubles(values.dtype())(element, 1, &value);
    return std::isnan(value);
}

NDArray FoundElements::indices() const {
    NDArray rows(DType::of<std::int64_t>(), {std::ssize(positions), shape.rank()});
    auto to = rows.values<std::int64_t>().begin();
    for (std::size_t n = 0; n < positions.size(); ++n) to = std::ranges::copy(index(n), to).out;
    return rows;
}

FoundElements find_elements(std::unique_ptr<ArraySource> array, std::string_view condition,
                            const FindOptions& options) {
    const DType dtype = array->info().dtype;
    if (dtype.is_variable() || dtype.kind() == Kind::structure) {
        throw unsupported("{}: elements of {} are not looked for; rows of a table are taken by `get --where`",
                          array->name(), dtype.to_string());
    }
    const auto index = options.by_index ? ChunkIndex::there(*array, options.raw) : nullptr;
    if (!options.raw) array = decoded(std::move(array));
    const ArrayInfo info = array->info();
    FoundElements found = in_context([&] { return array->name(); },
                                     [&] { return Finder(*array, index.get(), condition, options).find(); });
    found.marks = info.marks_missing || ((dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer) &&
                                         info.dtype.kind() == Kind::real);
    return found;
}

std::vector<FoundColumn> found_columns(const ArraySource& array, const FoundElements& found, std::int64_t most) {
    const DimensionNames names = dimension_names_of(array);
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(most, std::ssize(found.positions)));
    std::vector<FoundColumn> columns;
    std::vector<FoundColumn> beside;
    const auto add = [](FoundColumn& column, const NDArray& values, std::int64_t i) {
        const std::byte* const element = values.bytes().data() + i * values.dtype().size();
        column.texts.push_back(element_to_text(values.dtype(), element));
        column.json.push_back(element_to_json(values.dtype(), element));
    };
    for (int d = 0; d < found.shape.rank(); ++d) {
        const std::string name = dimension_name(names, d);
        const bool named = !names.empty() && names[static_cast<std::size_t>(d)];
        std::optional<NDArray> coordinate;
        try {
            if (named) coordinate = shown_coordinate(array, name, found.shape[d]);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::unsupported) throw;  // text of variable length is left out
        }
        FoundColumn indices{.name = coordinate ? "index of " + name : name};
        FoundColumn values{.name = name, .coordinate = true};
        for (std::size_t n = 0; n < count; ++n) {
            const std::int64_t i = found.index(n)[d];
            indices.texts.push_back(fmt::format("{}", i));
            indices.json.push_back(i);
            if (coordinate) add(values, *coordinate, i);
        }
        columns.push_back(std::move(indices));
        if (coordinate) beside.push_back(std::move(values));
    }
    std::ranges::move(beside, std::back_inserter(columns));
    columns.push_back({.name = std::string(operand)});
    for (std::size_t n = 0; n < count; ++n) {
        if (!found.lacks(n)) {
            add(columns.back(), found.values, static_cast<std::int64_t>(n));
            continue;
        }
        columns.back().texts.emplace_back("--");  // as `get` shows it
        columns.back().json.push_back(Value());
    }
    return columns;
}

}  // namespace tessera
