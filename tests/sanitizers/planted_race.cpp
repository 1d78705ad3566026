// A race on purpose, in two jobs of parallel_for. ThreadSanitizer has to report it: were tsan.supp to hide it, all
// other tests would pass under ThreadSanitizer whatever they did.
#include <chrono>
#include <thread>

#include <tessera/parallel.h>

int main() {
    long sum = 0;
    for (int round = 0; round < 100; ++round) {
        tessera::parallel_for(64, {.threads = 2}, [&](std::int64_t i) {
            sum += i;
            std::this_thread::sleep_for(std::chrono::microseconds(20));  // lets the other thread take a job too
        });
    }
    return sum == 0 ? 1 : 0;
}
