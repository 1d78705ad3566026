// Statistics of an array's values, in one parallel pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <tessera/value.h>

namespace tessera {

/// Counts of values in bins of equal width. The width is a power of two, so that two arrays' bins can be compared.
struct Histogram {
    double start = 0;  ///< the lower end of the first bin, a multiple of width
    double width = 0;
    std::vector<std::int64_t> counts;  ///< bin i counts start + i·width ≤ value < start + (i + 1)·width
};

/// Statistics of one array, or of one field of its structures. Min, max, mean and deviation ignore NaN and NaT, as
/// NumPy's nanmin, nanmean and nanstd do. Infinities count, as in NumPy, except in the histogram.
struct Statistics {
    std::string field;  ///< "" for the elements themselves; "n.x" for a field
    DType dtype;
    std::int64_t count = 0;
    std::int64_t nans = 0;   ///< NaN or NaT
    std::int64_t fills = 0;  ///< elements that equal the array's fill value bit for bit
    /// Elements of the dtype, for real numbers and times; −0.0 is less than 0.0. For text and bytes, the first and last
    /// in byte order.
    std::optional<std::string> min, max;  ///< as element_to_text
    Value min_json, max_json;             ///< the same as JSON (see Difference); null if there is none
    /// Of real numbers, or of times in their unit; 64-bit integers are rounded to double first. The deviation has a
    /// relative error of about 1e-13. The error of the mean is about 1e-13 of the mean absolute deviation, plus the
    /// last place of the double. Both hold however far from zero the values lie (see store/measure/moments.h). The last
    /// places may depend on the chunks and the number of threads.
    std::optional<double> mean;
    std::optional<double> deviation;     ///< standard deviation, with N as divisor
    std::optional<Histogram> histogram;  ///< of real numbers
};

/// Statistics of every field, or one entry for plain elements. `fill` is the array's fill element, if it has one (see
/// ArrayMetadata): its bytes, or for variable-length elements the content. The histogram has at most `bins` bins, which
/// must be 4 or more; 0 omits it and takes a third less time. Elements are processed in blocks that stay in cache, with
/// kernels by C type. `selection` restricts them to a part of the source.
[[nodiscard]] std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill,
                                                 int bins = 32, const IoOptions& io = {},
                                                 const std::optional<Selection>& selection = std::nullopt);

/// Statistics of the elements at each position along one axis of `source`, or of the part given by `selection`: an
/// entry for each position, as from statistics(), without histograms. A negative axis counts from the last one. Every
/// chunk is decoded once. Throws out_of_bounds for an axis that does not exist, and budget if the positions are too
/// many for the memory of this thread's account.
[[nodiscard]] std::vector<std::vector<Statistics>> statistics_along(
    const ArraySource& source, int axis, const std::optional<ElementBytes>& fill, const IoOptions& io = {},
    const std::optional<Selection>& selection = std::nullopt);

/// One more statistic of the same elements without NaN and NaT: a reduction by its word (parse_reduction), "median",
/// "p95" or "var". Its shape is () or, with `axis`, which may be negative, the length of that axis. Exact whatever the
/// memory, as in reduce_source(), for which the array is read once more. Throws as that, and out_of_bounds for an axis
/// that does not exist.
[[nodiscard]] NDArray statistic(const ArraySource& source, std::string_view word,
                                std::optional<int> axis = std::nullopt, const IoOptions& io = {},
                                const std::optional<Selection>& selection = std::nullopt);

}  // namespace tessera
