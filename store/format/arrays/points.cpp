// The elements at many indices: Array::read_points. Those of one unit (a chunk, or in a shard an inner chunk) are read
// together, and only its blocks that hold such elements are decoded.
#include "points.h"

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/shard.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "far_parts.h"
#include "many_regions.h"
#include "picked_part.h"
#include "region_io.h"
#include "shard_io.h"

namespace tessera {

namespace {

/// The indices, row by row, and the memory for the elements.
struct Points {
    std::span<const std::int64_t> indices;
    std::size_t rank;
    MutableArrayView out;

    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(out.shape[0]); }
    [[nodiscard]] std::byte* to(std::size_t i) const {
        return out.data + static_cast<std::int64_t>(i) * out.strides[0];
    }
    [[nodiscard]] Index index(std::size_t i) const { return Index(indices.subspan(i * rank, rank)); }
};

/// Divides numbers below a limit by the same number many times.
class Divider {
public:
    Divider(std::int64_t by, std::int64_t limit)
        : by_(static_cast<std::uint64_t>(by)), by_one_(by == 1 ? ~std::uint64_t{0} : 0) {
        // Exact for numbers and divisors below 2³² (Lemire, Kaser, Kurz: Faster remainder by direct computation), and
        // for powers of two.
        multiplies_ = limit <= std::int64_t{1} << 32 || std::has_single_bit(by_);
        inverse_ = by == 1 ? 0 : UINT64_MAX / by_ + 1;
    }
    [[nodiscard]] std::uint64_t operator()(std::uint64_t n) const {
        if (!multiplies_) return n / by_;
        return static_cast<std::uint64_t>(static_cast<Product>(inverse_) * n >> 64) + (n & by_one_);
    }

private:
    __extension__ using Product = unsigned __int128;
    std::uint64_t by_;
    std::uint64_t by_one_;
    std::uint64_t inverse_ = 0;
    bool multiplies_ = false;
};

/// What the index in one dimension says about the place of an element.
struct PointAxis {
    std::uint64_t length, chunk, unit;
    Divider by_chunk, by_unit;
    std::uint64_t next_chunk;  ///< numbers of units from one chunk to the next
    std::uint64_t next_unit;   ///< the same from one unit to the next in a shard
    std::uint64_t step;        ///< bytes from one element to the next in a packed unit
};

/// Points sorted by chunk or shard, and in it by unit.
struct ByUnit {
    struct Unit {
        std::int64_t chunk;  ///< the number of the chunk or shard
        std::int64_t inner;  ///< the number of the inner chunk in the shard; else 0
        std::size_t begin;   ///< of its points in `places`
    };
    std::vector<ElementPlace> places;  ///< in units whose elements lie as `steps` say
    std::vector<Unit> units;           ///< and one more, for the end
    Strides steps;

    [[nodiscard]] std::span<ElementPlace> of(std::size_t unit) {
        return std::span(places).subspan(units[unit].begin, units[unit + 1].begin - units[unit].begin);
    }
};

/// The number of a point's unit: that of its chunk or shard times the units in each, plus its number in there; and
/// where it lies in the packed unit.
class PointPlaces {
public:
    /// `steps` are those of the elements of a packed unit.
    PointPlaces(const LoadedArray& loaded, const Strides& steps) : array_shape_(loaded.grid.shape()) {
        const Shape& chunks = loaded.grid.chunks();
        const Shape& units = unit_shape(loaded);
        std::uint64_t in_chunk = 1;
        std::uint64_t chunk_count = 1;
        for (int d = chunks.rank() - 1; d >= 0; --d) {
            const std::int64_t n = loaded.grid.shape()[d];
            axes_.push_back({.length = static_cast<std::uint64_t>(n),
                             .chunk = static_cast<std::uint64_t>(chunks[d]),
                             .unit = static_cast<std::uint64_t>(units[d]),
                             .by_chunk = Divider(chunks[d], n),
                             .by_unit = Divider(units[d], chunks[d]),
                             .next_chunk = chunk_count,
                             .next_unit = in_chunk,
                             .step = static_cast<std::uint64_t>(steps[d])});
            chunk_count *= static_cast<std::uint64_t>(loaded.grid.grid()[d]);
            in_chunk *= static_cast<std::uint64_t>(ceil_div(chunks[d], units[d]));
        }
        for (PointAxis& axis : axes_) axis.next_chunk *= in_chunk;
        std::ranges::reverse(axes_);
        in_chunk_ = in_chunk;
        count_ = chunk_count * in_chunk;
    }

    [[nodiscard]] std::uint64_t in_chunk() const { return in_chunk_; }
    /// Of all units of the array.
    [[nodiscard]] std::uint64_t count() const { return count_; }

    /// Sets numbers and places, in bytes, of the points. Throws out_of_bounds.
    void find(const Points& points, std::vector<std::uint64_t>& numbers, std::vector<std::uint64_t>& places) const {
        numbers.resize(points.count());
        places.resize(points.count());
        constexpr std::size_t block = 1024;  // points whose numbers stay in the nearest cache
        for (std::size_t first = 0; first < points.count(); first += block) {
            const std::size_t n = std::min(block, points.count() - first);
            bool outside = false;
            for (std::size_t d = 0; d < axes_.size(); ++d) {
                const std::int64_t* const at = points.indices.data() + first * points.rank + d;
                const auto add = in_chunk_ > 1 ? add_axis<true> : add_axis<false>;
                outside |= add(axes_[d], at, points.rank, n, &numbers[first], &places[first]);
            }
            if (outside) throw_outside(points, first);
        }
    }

private:
    /// Adds what the index in one dimension contributes. Returns whether any lies outside.
    template <bool Sharded>
    static bool add_axis(const PointAxis& axis, const std::int64_t* at, std::size_t rank, std::size_t n,
                         std::uint64_t* numbers, std::uint64_t* places) {
        const PointAxis a = axis;  // which the stores below cannot change
        bool outside = false;
        for (std::size_t i = 0; i < n; ++i, at += rank) {
            const auto index = static_cast<std::uint64_t>(*at);
            outside |= index >= a.length;
            const std::uint64_t chunk = a.by_chunk(index);
            std::uint64_t within = index - chunk * a.chunk;
            numbers[i] += chunk * a.next_chunk;
            if constexpr (Sharded) {
                const std::uint64_t unit = a.by_unit(within);
                within -= unit * a.unit;
                numbers[i] += unit * a.next_unit;
            }
            places[i] += within * a.step;
        }
        return outside;
    }
    [[noreturn]] void throw_outside(const Points& points, std::size_t first) const {
        for (;; ++first) {
            const Index index = points.index(first);
            for (int d = 0; d < index.rank(); ++d) {
                if (index[d] >= 0 && index[d] < array_shape_[d]) continue;
                throw out_of_bounds("{} lies outside the shape {}", index.to_string(), array_shape_.to_string());
            }
        }
    }

    const Shape& array_shape_;
    std::vector<PointAxis> axes_;
    std::uint64_t in_chunk_ = 1;
    std::uint64_t count_ = 1;
};

ByUnit by_unit(const Points& points, const LoadedArray& loaded, const Strides& steps) {
    const PointPlaces all(loaded, steps);
    std::vector<std::uint64_t> numbers;
    std::vector<std::uint64_t> from;
    all.find(points, numbers, from);
    ByUnit sorted{.places = std::vector<ElementPlace>(numbers.size()), .units = {}, .steps = steps};
    const auto begin_unit = [&](std::uint64_t number, std::size_t begin) {
        sorted.units.push_back({static_cast<std::int64_t>(number / all.in_chunk()),
                                static_cast<std::int64_t>(number % all.in_chunk()), begin});
    };
    if (all.count() <= 4 * numbers.size() + 1024) {  // counting sort
        std::vector<std::size_t> next(static_cast<std::size_t>(all.count()) + 1);
        for (const std::uint64_t n : numbers) ++next[static_cast<std::size_t>(n) + 1];
        for (std::size_t n = 1; n < next.size(); ++n) {
            if (next[n] != 0) begin_unit(n - 1, next[n - 1]);
            next[n] += next[n - 1];
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            sorted.places[next[static_cast<std::size_t>(numbers[i])]++] = {static_cast<std::size_t>(from[i]),
                                                                           points.to(i)};
        }
    } else {
        std::vector<std::size_t> order(numbers.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(numbers[i], i); });
        for (std::size_t n = 0; n < order.size(); ++n) {
            const std::size_t i = order[n];
            if (n == 0 || numbers[i] != numbers[order[n - 1]]) begin_unit(numbers[i], n);
            sorted.places[n] = {static_cast<std::size_t>(from[i]), points.to(i)};
        }
    }
    begin_unit(0, numbers.size());
    return sorted;
}

/// Reads the points of one unit after another.
class PointReader {
public:
    PointReader(const ArrayState& array, const LoadedArray& loaded, const DType& dtype)
        : array_(array), loaded_(loaded), dtype_(dtype), pipeline_(unit_pipeline()) {
        const auto steps = loaded.may_hold_no_text ? std::nullopt : pipeline_.element_steps(dtype);
        apart_ = steps.has_value();
        steps_ = steps.value_or(contiguous_strides(unit_shape(loaded), dtype.size()));
    }

    /// Whether single elements are decoded by elements().
    [[nodiscard]] bool apart() const { return apart_; }
    [[nodiscard]] std::size_t element_size() const { return static_cast<std::size_t>(dtype_.size()); }
    /// How the elements of a unit lie for `places`.
    [[nodiscard]] const Strides& steps() const { return steps_; }

    /// Decodes elements. `encoded` is nullptr for an absent unit.
    void elements(const Index& chunk, std::span<ElementPlace> places, const ByteSource* encoded,
                  WorkerScratch& scratch) const {
        if (encoded != nullptr) return pipeline_.decode_elements(*encoded, places, dtype_, scratch.codec);
        read_absent(array_, loaded_, chunk, one(places[0]));
        const auto size = static_cast<std::size_t>(dtype_.size());
        for (const ElementPlace& place : places) std::memmove(place.to, places[0].to, size);
    }

    /// Reads all of a unit and picks from it. `extent` is the part of the unit that lies inside the array.
    void whole(std::span<const ElementPlace> places, const Shape& extent, const ReadUnit& read,
               WorkerScratch& scratch) const {
        const Shape& shape = unit_shape(loaded_);
        if (places.size() == 1) {
            Region element{Index::filled(shape.rank(), 0), Shape::filled(shape.rank(), 1)};
            const auto from = static_cast<std::int64_t>(places[0].from);
            for (int d = 0; d < shape.rank(); ++d) element.start[d] = from / steps_[d] % shape[d];
            return read(element, one(places[0]), scratch);
        }
        NDArray& unit = scratch.unit;
        if (!(unit.dtype() == dtype_) || !(unit.shape() == shape)) unit = NDArray(dtype_, shape);
        MutableArrayView all = unit.view();
        all.strides = steps_;
        const Region inside = Region::whole(extent);
        read(inside, all.part(inside), scratch);
        const auto size = static_cast<std::size_t>(dtype_.size());
        for (const ElementPlace& place : places) std::memcpy(place.to, all.data + place.from, size);
    }

private:
    [[nodiscard]] const CodecPipeline& unit_pipeline() const {
        const ShardCodec* const shard = loaded_.pipeline.shard();
        return shard == nullptr ? loaded_.pipeline : shard->inner();
    }
    [[nodiscard]] MutableArrayView one(const ElementPlace& place) const {
        const int rank = steps_.rank();
        return {place.to, dtype_, Shape::filled(rank, 1), Strides::filled(rank, 0), nullptr};
    }

    const ArrayState& array_;
    const LoadedArray& loaded_;
    const DType& dtype_;
    const CodecPipeline& pipeline_;
    bool apart_ = false;
    Strides steps_;
};

/// The elements of one chunk, by the blocks that hold them where that is possible.
void read_elements(const FarParts& parts, const std::string& key, const Index& index, std::span<ElementPlace> places,
                   const PointReader& reader, WorkerScratch& scratch) {
    const auto [low, high] = std::ranges::minmax(places, {}, &ElementPlace::from);
    const auto first = parts.first(low.from, high.from + reader.element_size(), places.size());
    const auto decode = [&](const ByteSource& source) { reader.elements(index, places, &source, scratch); };
    const bool whole = parts.far() && !first;
    // By reference, which takes no memory.
    if (!(whole ? parts.read_whole(key, std::cref(decode)) : parts.read(key, first, std::cref(decode))))
        reader.elements(index, places, nullptr, scratch);
}

void read_from_chunks(const ArrayState& array, const LoadedArray& loaded, ByUnit& sorted, const PointReader& reader,
                      const IoOptions& io) {
    const FarParts parts(array, loaded);
    parallel_waiting(std::ssize(sorted.units) - 1, io, parts.waiters(0, false), [&](std::int64_t n) {
        const auto unit = static_cast<std::size_t>(n);
        const Index index = loaded.grid.index(sorted.units[unit].chunk);
        const Region box = loaded.grid.chunk_region(index);
        const auto chosen = sorted.of(unit);
        ScratchPool::Loan scratch(array.scratch);
        if (reader.apart()) {
            const std::string key = array.chunk_key(loaded, index);
            in_context([&] { return where(array, index, key); },
                       [&] { read_elements(parts, key, index, chosen, reader, *scratch); });
            return;
        }
        const auto read = [&](const Region& region, const MutableArrayView& out, WorkerScratch&) {
            Region there = region;
            for (int d = 0; d < there.rank(); ++d) there.start[d] += box.start[d];
            read_region(array, loaded, there, out, {.threads = 1});
        };
        reader.whole(chosen, box.extent, read, *scratch);
    });
}

void read_from_shards(const ArrayState& array, const LoadedArray& loaded, ByUnit& sorted, const PointReader& reader,
                      const IoOptions& io) {
    std::vector<std::size_t> begins;  // the first unit of each shard
    for (std::size_t n = 0; n + 1 < sorted.units.size(); ++n) {
        if (n == 0 || sorted.units[n].chunk != sorted.units[n - 1].chunk) begins.push_back(n);
    }
    begins.push_back(sorted.units.size() - 1);
    const SharedThreads threads = share_threads(loaded, std::ssize(begins) - 1, io);
    parallel_in_memory(std::ssize(begins) - 1, threads.outer, [&](std::int64_t n) {
        const std::size_t first = begins[static_cast<std::size_t>(n)];
        const Index shard = loaded.grid.index(sorted.units[first].chunk);
        const ChunkGrid& inner = loaded.pipeline.shard()->grid();
        std::vector<std::int64_t> numbers;
        for (std::size_t u = first; u < begins[static_cast<std::size_t>(n) + 1]; ++u) {
            numbers.push_back(sorted.units[u].inner);
        }
        read_units(array, loaded, shard, numbers, threads.within,
                   [&](std::size_t i, const ReadUnit& read, const ByteSource* encoded) {
                       ScratchPool::Loan scratch(array.scratch);
                       const Index number = inner.index(numbers[i]);
                       Region box = inner.chunk_region(number);
                       const Region inside = loaded.grid.chunk_region(shard);
                       for (int d = 0; d < box.rank(); ++d)
                           box.extent[d] = std::min(box.extent[d], inside.extent[d] - box.start[d]);
                       const auto chosen = sorted.of(first + i);
                       if (!reader.apart() || encoded == nullptr)
                           return reader.whole(chosen, box.extent, read, *scratch);
                       in_context([&] { return fmt::format("inner chunk {}", number.to_string()); },
                                  [&] { reader.elements(shard, chosen, encoded, *scratch); });
                   });
    });
}

void require_points(const Points& points, const LoadedArray& loaded) {
    const DType& dtype = loaded.metadata.dtype;
    if (points.indices.size() != points.count() * points.rank || !points.out.dtype.equal_but_order(dtype)) {
        throw invalid_argument("{} numbers are no indices of {} dimensions for {} elements of {}; the array is {}",
                               points.indices.size(), points.rank, points.count(), points.out.dtype.to_string(),
                               dtype.to_string());
    }
}

}  // namespace

void read_points(const ArrayState& array, const LoadedArray& loaded, std::span<const std::int64_t> indices,
                 const MutableArrayView& out, const IoOptions& io) {
    if (out.shape.rank() != 1) throw invalid_argument(array.name + ": elements at indices are read into one dimension");
    const Points points{indices, static_cast<std::size_t>(loaded.grid.shape().rank()), out};
    in_context([&] { return array.name; }, [&] { require_points(points, loaded); });
    if (points.count() == 0) return;
    // Units are numbered below by divisions, which take chunks of one shape.
    if (points.rank == 0 || out.dtype.is_variable() || !loaded.grid.regular()) {
        std::vector<RegionRead> parts;
        for (std::size_t i = 0; i < points.count(); ++i) {
            MutableArrayView element = out;
            element.data = points.to(i);
            element.shape = Shape::filled(loaded.grid.shape().rank(), 1);
            element.strides = Strides::filled(loaded.grid.shape().rank(), 0);
            parts.push_back({Region(points.index(i), element.shape), element});
        }
        return read_many(array, loaded, parts, io);
    }
    const PointReader reader(array, loaded, out.dtype);
    ByUnit sorted = in_context([&] { return array.name; }, [&] { return by_unit(points, loaded, reader.steps()); });
    if (loaded.pipeline.shard() == nullptr) {
        read_from_chunks(array, loaded, sorted, reader, io);
    } else {
        read_from_shards(array, loaded, sorted, reader, io);
    }
}

}  // namespace tessera
