// What a piece of work takes. C++17, as all that TensorStore is linked with.
#pragma once

#include <functional>

namespace bench {

/// What one run took. `memory` is how far the resident memory rose above what it was before, in MiB.
struct Cost {
    double wall = 0;
    double cpu = 0;
    double memory = 0;
};

/// Runs it. Programs that it runs and waits for count as its processor time.
Cost cost_of(const std::function<void()>& run);

}  // namespace bench
