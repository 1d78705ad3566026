// Fewer elements in place of many, as an array: minimum, mean, median and so on along dimensions, and downsampling by
// whole factors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

/// Which indices along a dimension belong together: by the calendar of its coordinate, or by labels.
struct Grouping {
    int axis = 0;
    std::string by;                ///< "month", or the name of the labels
    std::vector<std::int32_t> of;  ///< the group of each index along the axis; -1: in none
    std::int64_t count = 0;
    Value labels = Value::array();  ///< of the groups: years, "2020-01", "DJF", or the labels themselves
};

/// The words that group_by_time() takes.
[[nodiscard]] const std::vector<std::string_view>& grouping_words();
/// What Grouping::by is for one of them: "day-of-year" for "dayofyear", "hour-of-day" for "hour"; the word itself for
/// others.
[[nodiscard]] std::string_view grouping_name(std::string_view word);

/// Groups by the times of a dimension's coordinate (parse_selection() says which array that is), in its calendar:
/// `by` is "year", "month" or "year-month" (each month of each year), "month-of-year", "day-of-year" (or "dayofyear"),
/// "hour-of-day" (or "hour") or "season" (DJF, JJA, MAM, SON, each over all years). Years and months follow each other
/// without a gap, as in xarray's resample, so that some may be empty; of the others there are those that occur, sorted,
/// as in xarray's groupby. Indices without a time are in no group. Throws invalid_argument for another word, and for a
/// dimension without a coordinate that holds times.
[[nodiscard]] std::shared_ptr<const Grouping> group_by_time(const ArraySource& array, int axis, std::string_view by);

/// Groups by a one-dimensional array of integers, texts, booleans, times or floats, one for each index along the axis:
/// a group for each label, sorted. NaN and NaT are in no group. Throws invalid_argument for labels of another shape or
/// dtype.
[[nodiscard]] std::shared_ptr<const Grouping> group_by_labels(const ArraySource& array, int axis,
                                                              std::unique_ptr<ArraySource> labels);

/// The only dimension whose coordinate holds times. Throws invalid_argument if there is none, or more than one.
[[nodiscard]] int time_dimension(const ArraySource& array);

enum class Reduction : std::uint8_t {
    min,
    max,
    sum,
    mean,
    deviation,
    variance,
    count,
    argmin,
    argmax,
    median,
    percentile,  ///< ReduceOptions::percent
    any,         ///< whether some element is not zero
    all,         ///< whether no element is zero
};

/// "std" is deviation, "var" is variance, "p95" and "p2.5" are percentiles; all others have the names of their
/// enumerators. Throws invalid_argument for another word.
[[nodiscard]] Reduction parse_reduction(std::string_view word);
/// 2.5 of "p2.5", 50 of any other word.
[[nodiscard]] double parse_percent(std::string_view word);
[[nodiscard]] std::string_view reduction_name(Reduction reduction);

struct ReduceOptions {
    Reduction with = Reduction::mean;
    double percent = 50;           ///< of a percentile: 0 to 100
    std::vector<int> axes = {};    ///< axes to reduce; negative ones count from the last; empty: all
    bool keep_dimensions = false;  ///< keep the reduced dimensions, with length 1
    /// Ignore NaN and NaT, as NumPy's nanmin does; otherwise they make their result NaN or NaT. A result of missing
    /// elements alone is missing, a sum too.
    bool skip_nan = false;
    /// Reduce each group of indices along one dimension by itself; `axes` are then not used. The dimension stays, with
    /// an index for each group. An empty group is NaN, or 0 if the result is no float. Not for argmin and argmax.
    std::shared_ptr<const Grouping> groups = nullptr;
    /// How much each element counts, for mean, sum, std and var: finite numbers from 0 on, of the array's rank, with
    /// the length 1 along dimensions that they do not depend on. Missing elements count nothing. The mean is that of
    /// weights and products, the variance about it; where all weights are 0 there is no result, but a sum of 0. Results
    /// are float64 for integers. See weights.h.
    std::shared_ptr<const ArraySource> weights = nullptr;
    /// Memory for one call of read_into, in addition to its result. May be exceeded if it is too small for one chunk.
    /// Threads that read at the same time take it once each. It does not depend on IoOptions::max_memory, which plans
    /// the blocks of a copy. Only a MemoryScope bounds everything (memory_account.h).
    std::int64_t memory = std::int64_t{64} << 20;
};

/// The dtype of the result, as in NumPy: 64-bit integers for sums of integers, float64 for means and percentiles of
/// integers, int64 for count, argmin and argmax, bool for any and all; otherwise the source's. For bfloat16 it is
/// float32, except with min and max. Throws unsupported if the reduction is undefined for `dtype`.
[[nodiscard]] DType reduced_dtype(const DType& dtype, Reduction with);

/// The reduction of an array, computed as it is read. If the requested blocks end where the array's chunks end, every
/// chunk is decoded once. `count` counts elements that are neither NaN nor NaT. argmin and argmax along several
/// dimensions give the position in C order. std and var divide by N.
///
/// Percentiles are NumPy's "linear": they lie between two elements. They and the median are exact whatever the memory:
/// if the elements of a result do not fit, the array is read several times. With skip_nan, `any` and `all` leave NaN
/// out, which counts as not zero otherwise.
///
/// Accuracy: min, max, count, argmin, argmax, any, all, percentiles, and sums of integers (modulo 2^64) are NumPy's bit
/// for bit. Sums and means of floats use compensated summation in doubles and are rounded once at the end; those of
/// everything are exact until then. std and var are Welford's, in doubles.
///
/// The result owns `array`. `std::make_unique<Array>(a)` makes such a source of a handle, and open_source() of a path.
///
/// Throws invalid_argument for missing or repeated axes, and for min, max, argmin or argmax of no elements.
[[nodiscard]] std::unique_ptr<ArraySource> reduce_source(std::unique_ptr<ArraySource> array,
                                                         const ReduceOptions& options);

// Downsampling by whole factors.

enum class Coarsening : std::uint8_t { mean, max, min, mode, nearest };

/// Throws invalid_argument for any other word.
[[nodiscard]] Coarsening parse_coarsening(std::string_view word);
[[nodiscard]] std::string_view coarsening_name(Coarsening with);

/// One element for each block of `by` elements; blocks at the end may be smaller. The dtype is the source's: means of
/// integers are rounded half to even, whatever their size; float means are summed as doubles and rounded once. NaN and
/// NaT make the mean, max and min of their block NaN or NaT, unless `skip_missing` leaves them out. `mode` is the most
/// frequent element; in a tie, the smallest. `nearest` is the first element of each block, for any dtype: array[::4,
/// ::4]. A georeference among the attributes (GeoZarr) becomes that of the blocks. Throws invalid_argument for factors
/// below 1 or a wrong number of factors, and unsupported if the dtype does not allow this kind of coarsening.
[[nodiscard]] std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by,
                                                          Coarsening with, bool skip_missing = false);

/// The factors for an array: "4" for each dimension, "4,2", or "lat=4, lon=2" with 1 for dimensions that are not named.
/// Throws invalid_argument for other text, factors below 1 and names that the array does not have.
[[nodiscard]] Shape parse_factors(std::string_view text, const ArraySource& array);

/// The shape of a coarsened array.
[[nodiscard]] Shape coarsened(const Shape& shape, const Shape& by);

}  // namespace tessera
