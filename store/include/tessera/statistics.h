// Statistics of an array's values, in one parallel pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/element.h>

namespace tessera {

/// Counts of values in bins of equal width, which is a power of two, so that two arrays' bins can be compared.
struct Histogram {
    double start = 0;  ///< the lower end of the first bin, a multiple of width
    double width = 0;
    std::vector<std::int64_t> counts;  ///< bin i counts start + i·width ≤ value < start + (i + 1)·width
};

/// Of one array, or one field of its structures. Min, max, mean and deviation leave out NaN and NaT, as NumPy's nanmin,
/// nanmean and nanstd do; infinities count in them as in NumPy, and are left out of the histogram alone.
struct Statistics {
    std::string field;  ///< "" for the elements themselves; "n.x" for a field
    DType dtype;
    std::int64_t count = 0;
    std::int64_t nans = 0;   ///< NaN or NaT
    std::int64_t fills = 0;  ///< elements that equal the array's fill value bit for bit
    /// Elements of the dtype, of numbers and times but complex ones; of text and bytes the first and last in byte
    /// order.
    std::optional<std::string> min, max;  ///< as element_to_text
    std::optional<double> mean;           ///< of real numbers; of times in their unit
    std::optional<double> deviation;      ///< standard deviation, with N as divisor
    std::optional<Histogram> histogram;   ///< of real numbers
};

/// Statistics of every field, or one entry for plain elements. `fill` is the array's fill element, if it has one (see
/// ArrayMetadata): its bytes, or for variable-length elements the content. At most `bins` bins.
[[nodiscard]] std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill,
                                                 int bins = 32, const IoOptions& io = {});

}  // namespace tessera
