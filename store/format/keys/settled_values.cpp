#include "settled_values.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/file_system.h>

#include <optional>

namespace tessera {

namespace {

constexpr std::int64_t fine_grain = 100'000'000;      // ns: ten ticks of the slowest kernels
constexpr std::int64_t coarse_grain = 3'000'000'000;  // where times may be rounded to two seconds
constexpr std::int64_t second = 1'000'000'000;

}  // namespace

bool has_good_times(const std::string& folder) {
    return file_system_of(folder).limits.empty();
}

std::int64_t settled_before(KeyValueStore& own, const std::string& key) {
    // Another process that asks the clock may remove it in between.
    std::optional<ValueStamp> now;
    for (int tries = 0; tries < 100 && !now; ++tries) {
        own.put(key, {});
        now = own.stamp(key);
    }
    if (!now) throw Error(ErrorCode::io, fmt::format("{}: cannot be written", own.name_of(key)));
    own.erase(key);
    return now->changed - (now->changed % second == 0 ? coarse_grain : fine_grain);
}

}  // namespace tessera
