// The elements at many indices: Array::read_points. Those of one unit (a chunk, or in a shard an inner chunk) are read
// together, and only its blocks that hold such elements are decoded.
#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/shard.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "picked.h"
#include "region_io.h"

namespace tessera {

namespace {

/// The indices, row by row, and the memory for the elements.
struct Points {
    std::span<const std::int64_t> indices;
    std::size_t rank;
    MutableArrayView out;

    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(out.shape[0]); }
    [[nodiscard]] const std::int64_t* operator[](std::size_t i) const { return indices.data() + i * rank; }
    [[nodiscard]] std::byte* to(std::size_t i) const {
        return out.data + static_cast<std::int64_t>(i) * out.strides[0];
    }
    [[nodiscard]] Index index(std::size_t i) const { return Index(indices.subspan(i * rank, rank)); }
};

/// Points sorted by chunk or shard, and in it by unit.
struct ByUnit {
    struct Unit {
        std::int64_t chunk;  ///< the number of the chunk or shard
        std::int64_t inner;  ///< the number of the inner chunk in the shard; else 0
        std::size_t begin;   ///< of its points in `order`
    };
    std::vector<std::size_t> order;
    std::vector<Unit> units;  ///< and one more, for the end

    [[nodiscard]] std::span<const std::size_t> of(std::size_t unit) const {
        return std::span(order).subspan(units[unit].begin, units[unit + 1].begin - units[unit].begin);
    }
};

/// Divides by the same number many times. A length of most chunks is a power of two.
class Divider {
public:
    explicit Divider(std::int64_t by) : by_(by) {
        if ((by & (by - 1)) == 0) shift_ = std::countr_zero(static_cast<std::uint64_t>(by));
    }
    [[nodiscard]] std::int64_t operator()(std::int64_t n) const { return shift_ >= 0 ? n >> shift_ : n / by_; }

private:
    std::int64_t by_;
    int shift_ = -1;
};

/// For each point the number of its unit: the number of its chunk or shard times the units in each, plus its number in
/// there.
std::vector<std::int64_t> unit_numbers(const Points& points, const LoadedArray& loaded, std::int64_t in_chunk) {
    const Shape& chunks = loaded.grid.chunks();
    const Shape& units = unit_shape(loaded);
    std::vector<Divider> by_chunk;
    std::vector<Divider> by_unit;
    for (const std::int64_t n : chunks) by_chunk.emplace_back(n);
    for (const std::int64_t n : units) by_unit.emplace_back(n);
    std::vector<std::int64_t> numbers(points.count());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::int64_t* const at = points[i];
        std::int64_t chunk = 0;
        std::int64_t inner = 0;
        for (std::size_t d = 0; d < points.rank; ++d) {
            const std::int64_t place = by_chunk[d](at[d]);
            chunk = chunk * loaded.grid.grid()[d] + place;
            if (in_chunk > 1) inner = inner * ceil_div(chunks[d], units[d]) + by_unit[d](at[d] - place * chunks[d]);
        }
        numbers[i] = chunk * in_chunk + inner;
    }
    return numbers;
}

ByUnit by_unit(const Points& points, const LoadedArray& loaded) {
    const ShardCodec* const shard = loaded.pipeline.shard();
    const std::int64_t in_chunk = shard == nullptr ? 1 : shard->grid().chunk_count();
    const std::vector<std::int64_t> numbers = unit_numbers(points, loaded, in_chunk);
    ByUnit sorted{.order = std::vector<std::size_t>(numbers.size()), .units = {}};
    const auto begin_unit = [&](std::int64_t number, std::size_t begin) {
        sorted.units.push_back({number / in_chunk, number % in_chunk, begin});
    };
    const auto possible = static_cast<std::uint64_t>(loaded.grid.chunk_count()) * static_cast<std::uint64_t>(in_chunk);
    if (possible <= 4 * numbers.size() + 1024) {  // counting sort
        std::vector<std::size_t> next(static_cast<std::size_t>(possible) + 1);
        for (const std::int64_t n : numbers) ++next[static_cast<std::size_t>(n) + 1];
        for (std::size_t n = 1; n < next.size(); ++n) {
            if (next[n] != 0) begin_unit(static_cast<std::int64_t>(n) - 1, next[n - 1]);
            next[n] += next[n - 1];
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) sorted.order[next[static_cast<std::size_t>(numbers[i])]++] = i;
    } else {
        for (std::size_t i = 0; i < numbers.size(); ++i) sorted.order[i] = i;
        std::ranges::sort(sorted.order, {}, [&](std::size_t i) { return std::pair(numbers[i], i); });
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const std::int64_t number = numbers[sorted.order[i]];
            if (i == 0 || number != numbers[sorted.order[i - 1]]) begin_unit(number, i);
        }
    }
    begin_unit(0, numbers.size());
    return sorted;
}

/// Reads the points of one unit after another.
class PointReader {
public:
    PointReader(const ArrayState& array, const LoadedArray& loaded, const Points& points)
        : array_(array), loaded_(loaded), points_(points), unit_shape_(unit_shape(loaded)), pipeline_(unit_pipeline()) {
        if (!loaded.may_hold_no_text) steps_ = pipeline_.element_steps(points.out.dtype);
    }

    [[nodiscard]] const CodecPipeline& pipeline() const { return pipeline_; }
    /// Whether single elements are decoded by elements().
    [[nodiscard]] bool apart() const { return steps_.has_value(); }

    /// Decodes elements. `encoded` is nullptr for an absent unit, `start` the index of the unit's first element.
    void elements(std::span<const std::size_t> chosen, const Index& start, const ByteSource* encoded,
                  WorkerScratch& scratch) const {
        if (encoded == nullptr) {
            for (const std::size_t i : chosen) read_absent(array_, loaded_, one(i));
            return;
        }
        std::vector<ElementPlace> places;
        places.reserve(chosen.size());
        for (const std::size_t i : chosen) places.push_back({place(points_[i], start, *steps_), points_.to(i)});
        pipeline_.decode_elements(*encoded, places, points_.out.dtype, scratch.codec);
    }

    /// Reads all of a unit and picks from it. `extent` is the part of the unit that lies inside the array.
    void whole(std::span<const std::size_t> chosen, const Region& box, const ReadUnit& read,
               WorkerScratch& scratch) const {
        if (chosen.size() == 1) {
            Region element{points_.index(chosen[0]), Shape::filled(box.rank(), 1)};
            for (int d = 0; d < box.rank(); ++d) element.start[d] -= box.start[d];
            return read(element, one(chosen[0]), scratch);
        }
        NDArray& unit = scratch.unit;
        const DType& dtype = points_.out.dtype;
        if (!(unit.dtype() == dtype) || !(unit.shape() == unit_shape_)) unit = NDArray(dtype, unit_shape_);
        const Region inside = Region::whole(box.extent);
        read(inside, unit.view().part(inside), scratch);
        const Strides steps = contiguous_strides(unit_shape_, dtype.size());
        const auto size = static_cast<std::size_t>(dtype.size());
        for (const std::size_t i : chosen) {
            std::memcpy(points_.to(i), unit.bytes().data() + place(points_[i], box.start, steps), size);
        }
    }

private:
    [[nodiscard]] const CodecPipeline& unit_pipeline() const {
        const ShardCodec* const shard = loaded_.pipeline.shard();
        return shard == nullptr ? loaded_.pipeline : shard->inner();
    }
    [[nodiscard]] static std::size_t place(const std::int64_t* at, const Index& start, const Strides& steps) {
        std::int64_t place = 0;
        for (int d = 0; d < steps.rank(); ++d) place += (at[d] - start[d]) * steps[d];
        return static_cast<std::size_t>(place);
    }
    [[nodiscard]] MutableArrayView one(std::size_t i) const {
        const int rank = unit_shape_.rank();
        return {points_.to(i), points_.out.dtype, Shape::filled(rank, 1), Strides::filled(rank, 0), nullptr};
    }

    const ArrayState& array_;
    const LoadedArray& loaded_;
    const Points& points_;
    const Shape& unit_shape_;
    const CodecPipeline& pipeline_;
    std::optional<Strides> steps_;
};

void read_from_chunks(const ArrayState& array, const LoadedArray& loaded, const ByUnit& sorted,
                      const PointReader& reader, const IoOptions& io) {
    parallel_in_memory(std::ssize(sorted.units) - 1, io, [&](std::int64_t n) {
        const auto unit = static_cast<std::size_t>(n);
        const Index index = loaded.grid.index(sorted.units[unit].chunk);
        const Region box = loaded.grid.chunk_region(index);
        const auto chosen = sorted.of(unit);
        ScratchPool::Loan scratch(array.scratch);
        if (reader.apart()) {
            const std::string key = array.chunk_key(loaded, index);
            in_context([&] { return where(array, index, key); },
                       [&] { reader.elements(chosen, box.start, array.store->open(key).get(), *scratch); });
            return;
        }
        const auto read = [&](const Region& region, const MutableArrayView& out, WorkerScratch&) {
            Region there = region;
            for (int d = 0; d < there.rank(); ++d) there.start[d] += box.start[d];
            read_region(array, loaded, there, out, {.threads = 1});
        };
        reader.whole(chosen, box, read, *scratch);
    });
}

void read_from_shards(const ArrayState& array, const LoadedArray& loaded, const ByUnit& sorted,
                      const PointReader& reader, const IoOptions& io) {
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
                       for (int d = 0; d < box.rank(); ++d) {
                           box.extent[d] = std::min(box.extent[d], inside.extent[d] - box.start[d]);
                           box.start[d] += inside.start[d];
                       }
                       const auto chosen = sorted.of(first + i);
                       if (!reader.apart() || encoded == nullptr) return reader.whole(chosen, box, read, *scratch);
                       in_context([&] { return fmt::format("inner chunk {}", number.to_string()); },
                                  [&] { reader.elements(chosen, box.start, encoded, *scratch); });
                   });
    });
}

void require_points(const Points& points, const LoadedArray& loaded) {
    const Shape& shape = loaded.grid.shape();
    const DType& dtype = loaded.metadata.dtype;
    if (points.indices.size() != points.count() * points.rank || !points.out.dtype.equal_but_order(dtype)) {
        throw invalid_argument("{} numbers are no indices of {} dimensions for {} elements of {}; the array is {}",
                               points.indices.size(), points.rank, points.count(), points.out.dtype.to_string(),
                               dtype.to_string());
    }
    for (std::size_t i = 0; i < points.count(); ++i) {
        for (std::size_t d = 0; d < points.rank; ++d) {
            if (points[i][d] < 0 || points[i][d] >= shape[d]) {
                throw out_of_bounds("{} lies outside the shape {}", points.index(i).to_string(), shape.to_string());
            }
        }
    }
}

}  // namespace

void read_points(const ArrayState& array, const LoadedArray& loaded, std::span<const std::int64_t> indices,
                 const MutableArrayView& out, const IoOptions& io) {
    if (out.shape.rank() != 1) throw invalid_argument(array.name + ": elements at indices are read into one dimension");
    const Points points{indices, static_cast<std::size_t>(loaded.grid.shape().rank()), out};
    in_context([&] { return array.name; }, [&] { require_points(points, loaded); });
    if (points.count() == 0) return;
    if (points.rank == 0 || out.dtype.is_variable()) {
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
    const ByUnit sorted = by_unit(points, loaded);
    const PointReader reader(array, loaded, points);
    if (loaded.pipeline.shard() == nullptr) {
        read_from_chunks(array, loaded, sorted, reader, io);
    } else {
        read_from_shards(array, loaded, sorted, reader, io);
    }
}

}  // namespace tessera
