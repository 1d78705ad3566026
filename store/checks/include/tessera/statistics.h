// Statistics of an array's values, in one parallel pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/element.h>
#include <tessera/value.h>

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
    /// Elements of the dtype, of numbers and times but complex ones; −0.0 counts as less than 0.0. Of text and bytes
    /// the first and last in byte order.
    std::optional<std::string> min, max;  ///< as element_to_text
    Value min_json, max_json;             ///< the same as element_to_json; null where there is none
    /// Of real numbers; of times in their unit; integers of 64 bits are rounded to double first. However far from zero
    /// the values lie, the deviation has a relative error of about 1e-13, and the mean an error of about 1e-13 of the
    /// mean distance from it, beside the last place of the double (store/checks/moments.h says how). The last places
    /// may depend on the chunks and on the number of threads.
    std::optional<double> mean;
    std::optional<double> deviation;     ///< standard deviation, with N as divisor
    std::optional<Histogram> histogram;  ///< of real numbers
};

/// Statistics of every field, or one entry for plain elements. `fill` is the array's fill element, if it has one (see
/// ArrayMetadata): its bytes, or for variable-length elements the content. At most `bins` bins, which is 4 or more;
/// 0 for no histogram, which takes a third less time. Elements are looked at in blocks that stay in cache, with
/// kernels by C type. `selection`: of this part of the source alone.
[[nodiscard]] std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill,
                                                 int bins = 32, const IoOptions& io = {},
                                                 const std::optional<Selection>& selection = std::nullopt);

/// Statistics of what lies at each position along one axis of `source`, or of the part that `selection` leaves of it:
/// an entry for each position, each as statistics() gives it, without histograms. A negative axis counts from the last
/// one. Every chunk is decoded once. Throws out_of_bounds for an axis that is not there, and budget where so many
/// positions do not fit into the memory of this thread's account.
[[nodiscard]] std::vector<std::vector<Statistics>> statistics_along(
    const ArraySource& source, int axis, const std::optional<ElementBytes>& fill, const IoOptions& io = {},
    const std::optional<Selection>& selection = std::nullopt);

}  // namespace tessera
