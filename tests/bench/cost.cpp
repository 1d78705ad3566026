#include "cost.h"

#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>

namespace bench {

namespace {

/// Of this process and of the programs that it ran and waited for.
double cpu_seconds() {
    double sum = 0;
    for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage use{};
        getrusage(who, &use);
        for (const timeval& t : {use.ru_utime, use.ru_stime}) {
            sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
        }
    }
    return sum;
}

/// A line of /proc/self/status, in MiB.
double resident(const std::string& what) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.compare(0, what.size(), what) == 0) return std::stod(line.substr(what.size() + 1)) / 1024;
    }
    throw std::runtime_error("/proc/self/status does not say " + what);
}

}  // namespace

Cost cost_of(const std::function<void()>& run) {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM begins anew
    const double before = resident("VmRSS");
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {wall.count(), cpu_seconds() - cpu, resident("VmHWM") - before};
}

}  // namespace bench
