#include <tessera/find_elements.h>

#include <fmt/format.h>
#include <tessera/chunk_grid.h>
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
#include <cmath>
#include <mutex>
#include <utility>

#include "condition.h"
#include "coordinate_table.h"

namespace tessera {

namespace {

class Finder {
public:
    /// `array`: as it is stored; `elements`: what is looked at.
    Finder(const ArraySource& array, const ArraySource& elements, std::string_view condition,
           const FindOptions& options)
        : elements_(elements),
          condition_(elements, condition),
          io_(options.io),
          info_(elements.info()),
          region_(options.selection ? options.selection->bounds() : Region::whole(info_.shape)) {
        if (options.selection && !options.selection->is_region()) {
            throw invalid_argument("{}: a condition is looked for in a region, without steps", elements.name());
        }
        chunks_ = candidate_chunks(array, options.raw, options.by_index, condition_, region_, io_);
        if (chunks_) {
            choose_runs();
        } else {
            for_each_slice(info_, dtype().size(), region_, io_.stop,
                           [&](const Region& slice) { slices_.push_back(slice); });
        }
    }

    [[nodiscard]] FoundElements find() {
        const std::int64_t count = std::ssize(runs_) + std::ssize(slices_);
        if (io_.progress != nullptr) {
            std::int64_t bytes = 0;
            for (std::int64_t n = 0; n < count; ++n) bytes += byte_count(box(n).extent, dtype().size());
            io_.progress->start(bytes, "find");
        }
        IoOptions order = io_;
        if (info_.access != Access::any) order.threads = 1;
        parallel_in_memory(count, order, [&](std::int64_t n) { look_in(box(n)); });
        return joined();
    }

private:
    struct Part {
        CountedVector<std::int64_t> positions;
        Buffer values;
    };

    /// Neighbours along the last dimension: so many chunks from this one on.
    struct Run {
        std::int64_t first = 0;
        std::int64_t count = 1;
    };

    [[nodiscard]] const DType& dtype() const { return condition_.dtype(); }

    void choose_runs() {
        constexpr std::int64_t enough = std::int64_t{2} << 20;
        const std::int64_t row = chunks_->units.grid()[info_.shape.rank() - 1];
        const std::int64_t bytes = byte_count(chunks_->units.chunks(), dtype().size());
        for (const std::int64_t n : chunks_->numbers) {
            const bool follows = !runs_.empty() && runs_.back().first + runs_.back().count == n && n % row != 0;
            if (follows && (runs_.back().count + 1) * bytes <= enough) {
                ++runs_.back().count;
            } else {
                runs_.push_back({n});
            }
        }
    }

    /// The part of a run in the region; or a slice.
    [[nodiscard]] Region box(std::int64_t n) const {
        if (!chunks_) return slices_[static_cast<std::size_t>(n)];
        const Run& run = runs_[static_cast<std::size_t>(n)];
        const ChunkGrid& units = chunks_->units;
        Region box = units.chunk_region(units.index(run.first));
        const Region last = units.chunk_region(units.index(run.first + run.count - 1));
        for (int d = 0; d < box.rank(); ++d) {
            const std::int64_t start = std::max(box.start[d], region_.start[d]);
            box.extent[d] = std::min(last.start[d] + last.extent[d], region_.start[d] + region_.extent[d]) - start;
            box.start[d] = start;
        }
        return box;
    }

    void look_in(const Region& box) {
        NDArray elements(dtype(), box.extent);
        elements_.read_into(box, elements.view(), {.threads = 1, .stop = io_.stop});
        const NDArray holds = condition_.holds(elements, {.threads = 1});
        Part part;
        const auto size = static_cast<std::size_t>(dtype().size());
        for (std::int64_t i = 0; i < elements.count(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (holds.bytes()[at] == std::byte{0}) continue;
            part.positions.push_back(position_of(index_in(box, i)));
            part.values.append(elements.bytes().subspan(at * size, size));
        }
        if (io_.progress != nullptr) io_.progress->advance(byte_count(box.extent, dtype().size()));
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
    [[nodiscard]] FoundElements joined() const {
        FoundElements found{.shape = info_.shape};
        if (chunks_) found.left_out = chunks_->left_out;
        CountedVector<std::pair<std::int64_t, const std::byte*>> all;
        for (const Part& part : parts_) {
            const std::byte* value = part.values.data();
            for (const std::int64_t position : part.positions) {
                all.emplace_back(position, value);
                value += dtype().size();
            }
        }
        std::ranges::sort(all);
        found.values = NDArray(dtype(), Shape{std::ssize(all)});
        std::byte* to = found.values.bytes().data();
        for (const auto& [position, value] : all) {
            found.positions.push_back(position);
            to = std::copy_n(value, dtype().size(), to);
        }
        return found;
    }

    const ArraySource& elements_;
    ElementCondition condition_;
    const IoOptions& io_;
    ArrayInfo info_;
    Region region_;
    std::optional<CandidateChunks> chunks_;  ///< all that are to be read, if it is known
    CountedVector<Run> runs_;                ///< of these
    CountedVector<Region> slices_;           ///< otherwise
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

namespace {

void require_elements(const ArraySource& array) {
    const DType dtype = array.info().dtype;
    if (!dtype.is_variable() && dtype.kind() != Kind::structure) return;
    throw unsupported("{}: elements of {} are not looked for; rows of a table are taken by `get --where`", array.name(),
                      dtype.to_string());
}

std::unique_ptr<ArraySource> looked_at(const ArraySource& array, bool raw) {
    auto elements = borrowed_source(array);
    return raw ? std::move(elements) : decoded(std::move(elements));
}

}  // namespace

FoundElements find_elements(const ArraySource& array, std::string_view condition, const FindOptions& options) {
    require_elements(array);
    const DType dtype = array.info().dtype;
    const auto elements = looked_at(array, options.raw);
    const ArrayInfo info = elements->info();
    FoundElements found =
        in_context([&] { return array.name(); }, [&] { return Finder(array, *elements, condition, options).find(); });
    found.marks = info.marks_missing || ((dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer) &&
                                         info.dtype.kind() == Kind::real);
    return found;
}

std::optional<NDArray> chunks_that_may_match(const ArraySource& array, std::string_view condition,
                                             const FindOptions& options) {
    require_elements(array);
    const auto elements = looked_at(array, options.raw);
    const ElementCondition meets(*elements, condition);
    const auto chunks =
        candidate_chunks(array, options.raw, options.by_index, meets, Region::whole(array.info().shape), options.io);
    if (!chunks) return std::nullopt;
    NDArray may(DType::of<bool>(), chunks->units.grid());
    std::ranges::fill(may.bytes(), std::byte{0});
    for (const std::int64_t n : chunks->numbers) may.bytes()[static_cast<std::size_t>(n)] = std::byte{1};
    return may;
}

namespace {

void add_element(FoundColumn& column, const NDArray& values, std::int64_t i) {
    const std::byte* const element = values.bytes().data() + i * values.dtype().size();
    column.texts.push_back(element_to_text(values.dtype(), element));
    column.json.push_back(element_to_json(values.dtype(), element));
}

/// The coordinate of a dimension; nullopt if it has none, or one of text of variable length, which is left out.
std::optional<NDArray> coordinate_or_none(const ArraySource& array, const std::string& name, std::int64_t length) {
    try {
        return shown_coordinate(array, name, length);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported) throw;
        return std::nullopt;
    }
}

}  // namespace

std::vector<FoundColumn> found_columns(const ArraySource& array, const FoundElements& found, std::int64_t most) {
    const DimensionNames names = dimension_names_of(array);
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(most, std::ssize(found.positions)));
    std::vector<FoundColumn> columns;
    std::vector<FoundColumn> beside;
    for (int d = 0; d < found.shape.rank(); ++d) {
        const std::string name = dimension_name(names, d);
        const bool named = !names.empty() && names[static_cast<std::size_t>(d)];
        std::optional<NDArray> coordinate;
        if (named) coordinate = coordinate_or_none(array, name, found.shape[d]);
        FoundColumn indices{.name = coordinate ? "index of " + name : name};
        FoundColumn values{.name = name, .coordinate = true};
        for (std::size_t n = 0; n < count; ++n) {
            const std::int64_t i = found.index(n)[d];
            indices.texts.push_back(fmt::format("{}", i));
            indices.json.push_back(i);
            if (coordinate) add_element(values, *coordinate, i);
        }
        columns.push_back(std::move(indices));
        if (coordinate) beside.push_back(std::move(values));
    }
    std::ranges::move(beside, std::back_inserter(columns));
    columns.push_back({.name = std::string(condition_operand)});
    for (std::size_t n = 0; n < count; ++n) {
        if (!found.lacks(n)) {
            add_element(columns.back(), found.values, static_cast<std::int64_t>(n));
            continue;
        }
        columns.back().texts.emplace_back("--");  // as `get` shows it
        columns.back().json.push_back(Value());
    }
    return columns;
}

}  // namespace tessera
