#include "byte_runs.h"

#include <cstring>

#include "unshuffle.h"

namespace tessera {

bool around_caches(const ByteRuns& runs) {
    constexpr std::size_t long_run = 256;
    constexpr std::int64_t cache_line = 64;
    constexpr std::int64_t near_by = 1 << 18;
    return runs.spread() >= near_by && (runs.size() >= long_run || runs.are_multiples_of(cache_line));
}

void copy_runs(ByteSpan packed, const ByteRuns& runs) {
    const std::size_t n = runs.size();
    const bool around = around_caches(runs);
    (void)runs.for_each([&](std::size_t from, std::byte* to) {
        if (around) {
            copy_around_caches(to, packed.data() + from, n);
        } else {
            std::memcpy(to, packed.data() + from, n);
        }
        return true;
    });
    if (around) finish_stores();
}

}  // namespace tessera
