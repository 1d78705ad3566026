// A wait of random length, so that writers that were in each other's way are not so again. Private to the store module.
#pragma once

#include <chrono>

namespace tessera {

/// Waits before try number `tries` + 1: at most 20 ms after the first, twice as long after each further one, up to
/// `longest`. Throws cancelled if the thread is asked to stop.
void wait_before_retry(int tries, std::chrono::milliseconds longest);

}  // namespace tessera
