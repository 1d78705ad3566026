// Destinations for a part of a packed chunk, run by run, for codecs that decode block by block.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <tessera/dtype.h>
#include <tessera/element_place.h>
#include <tessera/view.h>

#include "unshuffle.h"

namespace tessera {

/// Some runs, the same number of bytes apart in the packed chunk and in memory.
struct RunRow {
    std::size_t from;  ///< offset of the first one in the chunk
    std::byte* to;
    std::size_t n;
    std::size_t from_step;  ///< at least 1
    std::int64_t to_step;

    /// The end of the last one, for runs of `size` bytes.
    [[nodiscard]] std::size_t end(std::size_t size) const { return from + (n - 1) * from_step + size; }
    void skip(std::size_t some) {
        from += some * from_step;
        to += static_cast<std::int64_t>(some) * to_step;
        n -= some;
    }
};

class ByteRuns {
public:
    /// Single elements of a packed chunk, sorted by their offsets, whose memory is not for neighbours. nullopt as
    /// below.
    [[nodiscard]] static std::optional<ByteRuns> of(const DType& dtype, std::span<const ElementPlace> places,
                                                    const DType& there) {
        ByteRuns runs;
        runs.places_ = places;
        runs.size_ = dtype.size();
        if (!places.empty())
            runs.span_ = static_cast<std::int64_t>(places.back().from - places.front().from) + runs.size_;
        if (!runs.swaps(dtype, there)) return std::nullopt;
        return runs;
    }

    /// The runs of the part `region` of a chunk of this shape (packed in C order) to `out` (shape region.extent). With
    /// `steps`, the elements are that far apart in the chunk along each dimension; the region still counts elements.
    /// nullopt if the region is empty, or if adjacent elements of the chunk are not adjacent in `out`: every run would
    /// be one element.
    [[nodiscard]] static std::optional<ByteRuns> of(const Shape& chunk, const Region& region,
                                                    const MutableArrayView& out, const Dims& steps = {}) {
        Strides from = contiguous_strides(chunk, out.dtype.size());
        std::int64_t first = 0;
        for (int d = 0; d < chunk.rank(); ++d) {
            first += region.start[d] * from[d];
            if (!steps.empty()) from[d] *= steps[d];
        }
        std::optional<ByteRuns> runs = of(from, region.extent, out);
        if (runs) runs->first_ = first;
        return runs;
    }

    /// The same for a chunk of `dtype`. Also nullopt if the dtype of `out` differs in more than byte order, or if it
    /// differs in byte order and its elements are not single numbers of at most 8 bytes.
    [[nodiscard]] static std::optional<ByteRuns> of(const DType& dtype, const Shape& chunk, const Region& region,
                                                    const MutableArrayView& out, const Dims& steps = {}) {
        std::optional<ByteRuns> runs = of(chunk, region, out, steps);
        if (runs && !runs->swaps(dtype, out.dtype)) return std::nullopt;
        return runs;
    }
    /// The same for elements of a box that lie `from` bytes apart.
    [[nodiscard]] static std::optional<ByteRuns> of(const DType& dtype, const Shape& extent, const Strides& from,
                                                    const MutableArrayView& out) {
        std::optional<ByteRuns> runs = of(from, extent, out);
        if (runs && !runs->swaps(dtype, out.dtype)) return std::nullopt;
        return runs;
    }

    /// Bytes of every run.
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
    /// Whether the size and the address of every run are multiples of `n`.
    [[nodiscard]] bool are_multiples_of(std::int64_t n) const {
        const auto fits = [&](const Loop& loop) { return loop.to % n == 0; };
        return size_ % n == 0 && reinterpret_cast<std::uintptr_t>(to_) % static_cast<std::uintptr_t>(n) == 0 &&
               std::all_of(loops_.begin(), loops_.begin() + depth_, fits);
    }
    [[nodiscard]] std::size_t count() const {
        std::size_t n = std::max<std::size_t>(places_.size(), 1);
        for (int d = 0; d < depth_; ++d) n *= static_cast<std::size_t>(loops_[static_cast<std::size_t>(d)].n);
        return n;
    }
    /// The size of the numbers in the runs whose byte order is to be swapped on the way; 0 for none.
    [[nodiscard]] std::size_t swapped() const { return swapped_; }
    /// Bytes of memory from the start of the first run to the end of the last one.
    [[nodiscard]] std::int64_t spread() const { return spread_; }

    /// Bytes of the chunk from the start of the first run to the end of the last one.
    [[nodiscard]] std::size_t span() const { return static_cast<std::size_t>(span_); }
    /// Bytes of memory from one run to the next, of those in a row; 0 for single elements.
    [[nodiscard]] std::int64_t step_to() const { return depth_ == 0 ? 0 : loops_[0].to; }
    /// The same of the chunk.
    [[nodiscard]] std::size_t step_from() const { return depth_ == 0 ? 0 : static_cast<std::size_t>(loops_[0].from); }
    /// Runs in a row.
    [[nodiscard]] std::size_t in_row() const { return depth_ == 0 ? 1 : static_cast<std::size_t>(loops_[0].n); }
    /// Whether the runs of a row, each an element of `item` bytes, go to places that lie further apart than those of
    /// different rows: memory in another order of dimensions.
    [[nodiscard]] bool transpose(std::size_t item) const {
        const auto nearer = [&](const Loop& loop) { return std::abs(loop.to) < std::abs(loops_[0].to); };
        return size() == item && std::any_of(loops_.begin(), loops_.begin() + depth_, nearer);
    }
    /// The single elements, if these are such.
    [[nodiscard]] std::span<const ElementPlace> places() const { return places_; }
    /// Whether the runs of a row are adjacent in memory, and have at least `bytes` together.
    [[nodiscard]] bool adjacent(std::int64_t bytes) const {
        return depth_ > 0 && loops_[0].to == size_ && loops_[0].n * size_ >= bytes;
    }

    /// Calls each(offset in the packed chunk, destination) in ascending order of the offsets until it returns false.
    /// Returns whether it never did.
    template <class Each>
    bool for_each(const Each& each) const {
        return for_each_row([&](RunRow row) {
            for (; row.n > 0; row.skip(1)) {
                if (!each(row.from, row.to)) return false;
            }
            return true;
        });
    }
    /// The same row by row: each(RunRow).
    template <class Each>
    bool for_each_row(const Each& each) const {
        if (places_.empty()) return run(depth_, static_cast<std::size_t>(first_), to_, each);
        return std::ranges::all_of(places_, [&](const ElementPlace& place) {
            return each(RunRow{place.from, place.to, 1, size(), 0});
        });
    }

private:
    struct Loop {
        std::int64_t n = 0;
        std::int64_t from = 0;
        std::int64_t to = 0;
    };

    /// The runs of elements `from` bytes apart, from the first one's place on.
    [[nodiscard]] static std::optional<ByteRuns> of(const Strides& from, const Shape& extent,
                                                    const MutableArrayView& out) {
        ByteRuns runs;
        const std::int64_t item = out.dtype.size();
        runs.to_ = out.data;
        runs.size_ = runs.spread_ = runs.span_ = item;
        for (int d = extent.rank() - 1; d >= 0; --d) {
            const Loop loop{extent[d], from[d], out.strides[d]};
            if (loop.n == 0) return std::nullopt;
            if (loop.n == 1) continue;
            runs.spread_ += (loop.n - 1) * std::abs(loop.to);
            runs.span_ += (loop.n - 1) * loop.from;
            const bool innermost = runs.depth_ == 0 && runs.size_ == item;
            if (innermost && loop.from == item && loop.to != item) return std::nullopt;
            if (runs.depth_ == 0 && loop.from == runs.size_ && loop.to == runs.size_) {
                runs.size_ *= loop.n;
                continue;
            }
            if (runs.depth_ > 0) {
                Loop& within = runs.loops_[static_cast<std::size_t>(runs.depth_ - 1)];
                if (loop.from == within.n * within.from && loop.to == within.n * within.to) {  // both step as one
                    within.n *= loop.n;
                    continue;
                }
            }
            runs.loops_[static_cast<std::size_t>(runs.depth_++)] = loop;
        }
        return runs;
    }

    /// Sets swapped_. Returns whether elements of `dtype` can become `there`.
    bool swaps(const DType& dtype, const DType& there) {
        if (there == dtype) return true;
        const std::int64_t number = dtype.swap_unit();
        swapped_ = static_cast<std::size_t>(number);
        return there.equal_but_order(dtype) && number == dtype.size() && number <= 8;
    }

    static RunRow row_of(const Loop& loop, std::size_t from, std::byte* to) {
        return {from, to, static_cast<std::size_t>(loop.n), static_cast<std::size_t>(loop.from), loop.to};
    }

    template <class Each>
    bool run(int depth, std::size_t from, std::byte* to, const Each& each) const {
        if (depth == 0) return each(RunRow{from, to, 1, size(), 0});
        const Loop& loop = loops_[static_cast<std::size_t>(depth - 1)];
        if (depth == 1) return each(row_of(loop, from, to));
        if (depth == 2) {
            for (std::int64_t i = 0; i < loop.n; ++i, from += static_cast<std::size_t>(loop.from), to += loop.to) {
                if (!each(row_of(loops_[0], from, to))) return false;
            }
            return true;
        }
        for (std::int64_t i = 0; i < loop.n; ++i) {
            if (!run(depth - 1, from + static_cast<std::size_t>(i * loop.from), to + i * loop.to, each)) return false;
        }
        return true;
    }

    std::span<const ElementPlace> places_;  ///< instead of loops
    std::array<Loop, max_rank> loops_;      ///< innermost first
    int depth_ = 0;
    std::int64_t first_ = 0;
    std::int64_t size_ = 0;
    std::int64_t spread_ = 0;
    std::int64_t span_ = 0;
    std::byte* to_ = nullptr;
    std::size_t swapped_ = 0;
};

/// Chooses the stores for the destinations of runs, so that they stall as little as possible.
class RunStores {
public:
    explicit RunStores(const ByteRuns& runs);

    /// Whether to use streaming stores.
    [[nodiscard]] bool streaming() const { return streaming_; }
    /// Whether the stores need no prefetching: then rows of runs are copied in one loop each, by a RowWriter.
    [[nodiscard]] bool plain() const { return ahead_ == 0; }
    /// Whether adjacent short runs are first put together in cache, and then streamed.
    [[nodiscard]] bool assembling() const { return assembling_; }
    /// As ByteRuns::for_each, but prefetches the lines of each run some runs ahead.
    template <class Each>
    bool for_each(const Each& each) const {
        if (ahead_ == 0) return runs_.for_each(each);
        std::array<std::pair<std::size_t, std::byte*>, most_ahead> next;
        std::size_t begun = 0;
        const bool all = runs_.for_each([&](std::size_t from, std::byte* to) {
            fetch(to);
            auto& place = next[begun & (ahead_ - 1)];
            if (begun++ >= ahead_ && !each(place.first, place.second)) return false;
            place = {from, to};
            return true;
        });
        for (std::size_t i = begun - std::min(begun, ahead_); all && i < begun; ++i) {
            const auto& place = next[i & (ahead_ - 1)];
            if (!each(place.first, place.second)) return false;
        }
        return all;
    }

private:
    static constexpr std::size_t most_ahead = 16;
    void fetch(const std::byte* to) const;

    const ByteRuns& runs_;
    bool streaming_ = false;
    bool assembling_ = false;
    std::size_t ahead_ = 0;  ///< a power of two, or 0
};

/// Copies n runs of `size` bytes, which are that far apart.
using RunLoop = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                         std::size_t n, std::size_t size);
/// The fastest one for runs of this size.
[[nodiscard]] RunLoop run_loop(std::size_t size);

/// Copies rows of runs from a packed chunk.
class RowCopy {
public:
    /// If `swapped`, each run is one number, whose byte order is swapped on the way.
    RowCopy(const ByteRuns& runs, bool swapped);
    /// `packed` are bytes of the chunk from offset `begin` on.
    void operator()(const RunRow& row, const std::byte* packed, std::size_t begin = 0) const {
        const std::byte* const from = packed + (row.from - begin);
        const std::size_t done = packer_ ? packer_->copy(row.to, from, row.n) : 0;
        loop_(row.to + static_cast<std::int64_t>(done) * row.to_step, row.to_step, from + done * row.from_step,
              static_cast<std::int64_t>(row.from_step), row.n - done, size_);
    }

private:
    std::size_t size_;
    RunLoop loop_;
    std::optional<ElementPacker> packer_;
};

/// Writes rows of runs.
class RowWriter {
public:
    RowWriter(const ByteRuns& runs, const RunStores& stores) : size_(runs.size()), assembling_(stores.assembling()) {}

    /// Calls copy(row) for the row, or for pieces of it whose destination is memory of this writer.
    template <class Copy>
    void write(const RunRow& row, const Copy& copy) {
        if (assembling_) {
            assemble(row, copy);
        } else {
            copy(row);
        }
    }
    /// Call at the end.
    void finish();

private:
    template <class Copy>
    void assemble(RunRow row, const Copy& copy) {
        while (row.n > 0) {
            if (row.to != end_ || have_ + size_ > bytes_.size()) begin(row.to);
            RunRow piece = row;
            if (row.n * size_ > bytes_.size() - have_) piece.n = (bytes_.size() - have_) / size_;
            piece.to = bytes_.data() + have_;
            copy(piece);
            have_ += piece.n * size_;
            row.skip(piece.n);
            end_ = row.to;
        }
    }
    void begin(std::byte* to);
    void flush();

    std::size_t size_;
    bool assembling_;
    std::byte* to_ = nullptr;   ///< the destination of what was put together
    std::byte* end_ = nullptr;  ///< and its end
    std::size_t first_ = 0;     ///< where it begins in bytes_, at the same place of a line
    std::size_t have_ = 0;      ///< where it ends
    alignas(64) std::array<std::byte, 4096> bytes_;
};

/// Copies bytes of a packed chunk to the destinations of the runs.
void copy_runs(ByteSpan packed, const ByteRuns& runs);

}  // namespace tessera
