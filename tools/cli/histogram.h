// Histograms on the terminal.
#pragma once

#include <tessera/measure.h>

namespace tessera::cli {

/// One line for each bin: its lower end, a bar, its count.
void print_histogram(const Histogram& h);

}  // namespace tessera::cli
