#include "random_wait.h"

#include <tessera/parallel.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>

namespace tessera {

void wait_before_retry(int tries, std::chrono::milliseconds longest) {
    using Clock = std::chrono::steady_clock;
    thread_local std::minstd_rand lots{std::random_device{}()};
    const std::int64_t most = std::min<std::int64_t>(longest.count(), std::int64_t{20} << std::min(tries - 1, 10));
    const auto end =
        Clock::now() + std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, most)(lots));
    while (Clock::now() < end) {
        require_not_stopped();
        std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), std::chrono::milliseconds(50)));
    }
    require_not_stopped();
}

}  // namespace tessera
