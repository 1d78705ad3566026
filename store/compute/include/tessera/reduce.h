// Minimum, mean, median and so on along dimensions of an array, as an array.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

enum class Reduction : std::uint8_t { min, max, sum, mean, deviation, variance, count, argmin, argmax, median };

/// "std" is deviation and "var" is variance; all others have the names of their enumerators. Throws invalid_argument
/// for another word.
[[nodiscard]] Reduction parse_reduction(std::string_view word);
[[nodiscard]] std::string_view reduction_name(Reduction reduction);

struct ReduceOptions {
    Reduction with = Reduction::mean;
    std::vector<int> axes = {};    ///< axes to reduce; negative ones count from the last; empty: all
    bool keep_dimensions = false;  ///< keep the reduced dimensions, with length 1
    /// Ignore NaN and NaT, as NumPy's nanmin does; otherwise they make their result NaN or NaT.
    bool skip_nan = false;
    /// Memory for one call of read_into, in addition to its result. May be exceeded if it is too small for one chunk.
    std::int64_t memory = std::int64_t{64} << 20;
};

/// The dtype of the result, as in NumPy: 64-bit integers for sums of integers, float64 for means of integers, int64 for
/// count, argmin and argmax; otherwise the source's. For bfloat16 it is float32, except with min and max. Throws
/// unsupported if the reduction is undefined for `dtype`.
[[nodiscard]] DType reduced_dtype(const DType& dtype, Reduction with);

/// The reduction of an array, computed as it is read. If the requested blocks end where the array's chunks end, every
/// chunk is decoded once. `count` counts elements that are neither NaN nor NaT. argmin and argmax along several
/// dimensions give the position in C order. std and var divide by N.
///
/// Accuracy: min, max, count, argmin, argmax, the median, and sums of integers (modulo 2^64) are NumPy's bit for bit.
/// Sums and means of floats use compensated summation in doubles and are rounded once at the end. std and var are
/// Welford's, in doubles.
///
/// Throws invalid_argument for missing or repeated axes, and for min, max, argmin or argmax of no elements.
[[nodiscard]] std::unique_ptr<ArraySource> reduce_source(std::unique_ptr<ArraySource> array,
                                                         const ReduceOptions& options);

}  // namespace tessera
