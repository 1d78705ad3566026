// Rows of a chunk lie far apart in the caller's memory, and a cache line is read before part of it is written. The
// processor prefetches such lines itself only if the rows are a constant, whole number of lines apart. So the lines of
// later rows are prefetched here, which gains more than any choice of stores.
//
// Streaming stores need not read a line. They pay if rows are whole lines, or so long that the two lines at their ends
// hardly count. The first line is prefetched even then, because that also loads the translation of the page's address.
#include "byte_runs.h"

#include <bit>
#include <cstring>

#include "unshuffle.h"

namespace tessera {

namespace {

constexpr std::size_t long_run = 1024;
constexpr std::size_t few_lines = 256;  // bytes; shorter runs of whole cache lines are written faster through caches
constexpr std::size_t fetched_ahead = 8192;   // bytes; a fraction of the nearest cache
constexpr std::int64_t near_by = 1 << 18;     // bytes that stay in a nearby cache
constexpr std::int64_t read_again = 1 << 22;  // bytes; a single run may be our own memory, which is read at once

}  // namespace

RunStores::RunStores(const ByteRuns& runs) : runs_(runs) {
    if (runs.spread() < (runs.count() == 1 ? read_again : near_by)) return;
    streaming_ = runs.size() >= long_run || (runs.size() >= few_lines && runs.are_multiples_of(cache_line));
    // The processor prefetches lines itself if runs are adjacent.
    const auto apart = static_cast<std::size_t>(std::abs(runs.step_to()));
    if (apart <= runs.size() + cache_line && !streaming_) {
        assembling_ = runs.adjacent(long_run);
        return;
    }
    ahead_ =
        std::bit_floor(std::clamp<std::size_t>(fetched_ahead / std::max<std::size_t>(runs.size(), 1), 1, most_ahead));
}

void RunStores::fetch(const std::byte* to) const {
    const std::byte* const end = to + runs_.size();
    const bool ends_within = reinterpret_cast<std::uintptr_t>(end) % cache_line != 0;
    if (!streaming_) {
        for (; to < end; to += cache_line) fetch_line(to);
    } else {
        fetch_line(to);
    }
    if (ends_within) fetch_line(end - 1);
}

namespace {

/// Runs of a constant size: one load and one store each.
template <std::size_t Size>
void loop_over(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::size_t n,
               std::size_t /*size*/) {
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, Size);
}

/// Runs of Size to 2 * Size bytes: two loads and two stores each, which may overlap.
template <std::size_t Size>
void loop_around(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::size_t n,
                 std::size_t size) {
    const std::size_t rest = size - Size;
    for (; n > 0; --n, to += to_step, from += from_step) {
        std::array<std::byte, Size> first;
        std::array<std::byte, Size> last;
        std::memcpy(&first, from, Size);
        std::memcpy(&last, from + rest, Size);
        std::memcpy(to, &first, Size);
        std::memcpy(to + rest, &last, Size);
    }
}

/// Numbers whose byte order is swapped.
template <std::size_t Size>
void loop_swapping(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::size_t n,
                   std::size_t /*size*/) {
    for (; n > 0; --n, to += to_step, from += from_step) {
        std::array<std::byte, Size> number;
        for (std::size_t j = 0; j < Size; ++j) number[j] = from[Size - 1 - j];
        std::memcpy(to, number.data(), Size);
    }
}

RunLoop swapping_loop(std::size_t size) {
    return size == 2 ? loop_swapping<2> : size == 4 ? loop_swapping<4> : loop_swapping<8>;
}

void loop_of_any(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::size_t n,
                 std::size_t size) {
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, size);
}

}  // namespace

RunLoop run_loop(std::size_t size) {
    switch (size) {
        case 1:
            return loop_over<1>;
        case 2:
            return loop_over<2>;
        case 4:
            return loop_over<4>;
        case 8:
            return loop_over<8>;
        case 16:
            return loop_over<16>;
        default:
            break;
    }
    if (size > 8 && size < 16) return loop_around<8>;
    if (size > 16 && size <= 32) return loop_around<16>;
    if (size > 32 && size <= 64) return loop_around<32>;
    if (size > 64 && size <= 128) return loop_around<64>;
    return loop_of_any;
}

RowCopy::RowCopy(const ByteRuns& runs, bool swapped)
    : size_(runs.size()), loop_(swapped ? swapping_loop(size_) : run_loop(size_)) {
    constexpr std::size_t worth = 256;  // bytes of a row that pay for the packer
    const bool adjacent = runs.step_to() == static_cast<std::int64_t>(size_);
    if (adjacent && runs.in_row() * size_ >= worth) packer_ = ElementPacker::of(size_, runs.step_from(), swapped);
}

void RowWriter::begin(std::byte* to) {
    flush();
    to_ = to;
    first_ = have_ = reinterpret_cast<std::uintptr_t>(to) % cache_line;
}

void RowWriter::flush() {
    if (have_ > first_) stream_copy(to_, bytes_.data() + first_, have_ - first_);
}

void RowWriter::finish() {
    if (!assembling_) return;
    flush();
    finish_stores();
}

namespace {

/// Single elements, by one load and one store each. The memory that they go to is prefetched.
template <std::size_t Size>
void copy_places(const std::byte* packed, std::span<const ElementPlace> places) {
    constexpr std::size_t ahead = 16;
    const std::size_t n = places.size();
    for (std::size_t i = 0; i < n; ++i) {
        if (i + ahead < n) fetch_line(places[i + ahead].to);
        std::memcpy(places[i].to, packed + places[i].from, Size);
    }
}

void copy_places(const std::byte* packed, const ByteRuns& runs) {
    const std::size_t size = runs.size();
    if (runs.swapped() == 0) {
        switch (size) {
            case 1:
                return copy_places<1>(packed, runs.places());
            case 2:
                return copy_places<2>(packed, runs.places());
            case 4:
                return copy_places<4>(packed, runs.places());
            case 8:
                return copy_places<8>(packed, runs.places());
            default:
                break;
        }
    }
    const RunLoop loop = runs.swapped() != 0 ? swapping_loop(size) : run_loop(size);
    for (const ElementPlace& place : runs.places()) loop(place.to, 0, packed + place.from, 0, 1, size);
}

void copy_bytes(const RunStores& stores, std::byte* to, const std::byte* from, std::size_t bytes) {
    if (stores.streaming()) {
        stream_copy(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

/// Copies numbers of `number` bytes in the other byte order.
void copy_turned(const RunStores& stores, std::byte* to, const std::byte* from, std::size_t n, std::size_t number) {
    if (!stores.streaming()) return copy_swapped(to, from, n, number);
    std::array<std::byte, 1024> turned;
    for (std::size_t i = 0; i < n; i += turned.size()) {
        const std::size_t some = std::min(turned.size(), n - i);
        copy_swapped(turned.data(), from + i, some, number);
        copy_bytes(stores, to + i, turned.data(), some);
    }
}

}  // namespace

void copy_runs(ByteSpan packed, const ByteRuns& runs) {
    if (!runs.places().empty()) return copy_places(packed.data(), runs);
    const std::size_t n = runs.size();
    const std::size_t number = runs.swapped();
    const RunStores stores(runs);
    if (stores.plain() && (number == 0 || number == n)) {
        const RowCopy copy(runs, number != 0);
        RowWriter writer(runs, stores);
        (void)runs.for_each_row([&](const RunRow& row) {
            writer.write(row, [&](const RunRow& r) { copy(r, packed.data()); });
            return true;
        });
        writer.finish();
        return;
    }
    (void)stores.for_each([&](std::size_t from, std::byte* to) {
        if (number == 0) {
            copy_bytes(stores, to, packed.data() + from, n);
        } else {
            copy_turned(stores, to, packed.data() + from, n, number);
        }
        return true;
    });
    if (stores.streaming()) finish_stores();
}

}  // namespace tessera
