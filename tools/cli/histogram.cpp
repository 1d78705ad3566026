#include "histogram.h"

#include <fmt/format.h>

#include <tessera/json.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "report.h"

namespace tessera::cli {

void print_histogram(const Histogram& h) {
    const std::int64_t most = *std::ranges::max_element(h.counts);
    constexpr std::int64_t columns = 40;
    std::vector<std::string> labels;
    std::size_t width = 0;
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
        labels.push_back(python_float_repr(h.start + static_cast<double>(i) * h.width));
        width = std::max(width, labels.back().size());
    }
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
        const std::int64_t count = h.counts[i];
        // The smallest count is still visible.
        const auto bar =
            count == 0
                ? 0
                : std::max<std::int64_t>(
                      1, static_cast<std::int64_t>(static_cast<double>(count) / static_cast<double>(most) * columns));
        std::string line = fmt::format("  {:>{}}  ", labels[i], width);
        for (std::int64_t b = 0; b < bar; ++b) line += "█";
        print(line + (bar > 0 ? " " : "") + grouped(static_cast<std::uint64_t>(count)) + "\n");
    }
}

}  // namespace tessera::cli
