// Rows of a chunk lie far apart in the caller's memory, and a cache line is read before part of it is written. The
// processor prefetches such lines itself only if the rows are a constant, whole number of lines apart. So the lines of
// later rows are prefetched here, which gains more than any choice of stores.
//
// Streaming stores need not read a line. They pay if rows are whole lines, or so long that the two lines at their ends
// hardly count. The first line is prefetched even then, because that also loads the translation of the page's address.
#include "byte_runs.h"

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
    ahead_ = std::clamp<std::size_t>(fetched_ahead / std::max<std::size_t>(runs.size(), 1), 1, most_ahead);
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

/// Copies runs of `Size` bytes: one load and one store each.
template <std::size_t Size>
void copy_short(ByteSpan packed, const RunStores& stores) {
    (void)stores.for_each([&](std::size_t from, std::byte* to) {
        std::memcpy(to, packed.data() + from, Size);
        return true;
    });
}

}  // namespace

void copy_runs(ByteSpan packed, const ByteRuns& runs) {
    const std::size_t n = runs.size();
    const std::size_t number = runs.swapped();
    const RunStores stores(runs);
    if (number == 0 && !stores.streaming()) {
        if (n == 2) return copy_short<2>(packed, stores);
        if (n == 4) return copy_short<4>(packed, stores);
        if (n == 8) return copy_short<8>(packed, stores);
        if (n == 16) return copy_short<16>(packed, stores);
        if (n == 32) return copy_short<32>(packed, stores);
    }
    const auto copy = [&](std::byte* to, const std::byte* from, std::size_t bytes) {
        if (stores.streaming()) {
            stream_copy(to, from, bytes);
        } else {
            std::memcpy(to, from, bytes);
        }
    };
    const auto copy_turned = [&](std::byte* to, const std::byte* from) {
        if (!stores.streaming()) return copy_swapped(to, from, n, number);
        std::array<std::byte, 1024> turned;
        for (std::size_t i = 0; i < n; i += turned.size()) {
            const std::size_t some = std::min(turned.size(), n - i);
            copy_swapped(turned.data(), from + i, some, number);
            copy(to + i, turned.data(), some);
        }
    };
    (void)stores.for_each([&](std::size_t from, std::byte* to) {
        if (number == 0) {
            copy(to, packed.data() + from, n);
        } else {
            copy_turned(to, packed.data() + from);
        }
        return true;
    });
    if (stores.streaming()) finish_stores();
}

}  // namespace tessera
