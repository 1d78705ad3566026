// How many files may be open.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace tessera {

/// A share of the files that this process may have open, 1 / `divisor`, between `least` and `most`.
[[nodiscard]] inline std::int64_t share_of_open_files(rlim_t divisor, rlim_t least, rlim_t most) {
    rlimit limit{};
    const bool bound = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return static_cast<std::int64_t>(bound ? std::clamp(limit.rlim_cur / divisor, least, most) : most);
}

}  // namespace tessera
