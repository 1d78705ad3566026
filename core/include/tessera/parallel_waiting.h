// parallel_in_memory() for jobs that wait for answers over the network.
#pragma once

#include <cstdint>
#include <functional>

#include <tessera/parallel.h>

namespace tessera {

/// As parallel_in_memory(), for jobs that mostly wait for a server: from up to `waiters` threads, also if these are
/// more than thread_count(options).
void parallel_waiting(std::int64_t count, const IoOptions& options, int waiters,
                      const std::function<void(std::int64_t)>& job);

}  // namespace tessera
