// Minimum, mean, median and so on along dimensions of an array, as an array.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

enum class Reduction : std::uint8_t { min, max, sum, mean, deviation, count, argmin, argmax, median };

/// "std" is deviation, all others are named as they are; throws invalid_argument for another word.
[[nodiscard]] Reduction parse_reduction(std::string_view word);
[[nodiscard]] std::string_view reduction_name(Reduction reduction);

struct ReduceOptions {
    Reduction with = Reduction::mean;
    std::vector<int> axes = {};    ///< those that go; negative ones count from the last; empty: all
    bool keep_dimensions = false;  ///< as length 1
    /// NaN and NaT are left out, as NumPy's nanmin and its like do; otherwise they make their result NaN or NaT.
    bool skip_nan = false;
    /// Memory for one call of read_into beside its result. Less than a chunk takes is not kept to.
    std::int64_t memory = std::int64_t{64} << 20;
};

/// What the elements of the result are, as in NumPy: those of the source for min and max, 64-bit integers for sums of
/// integers, float64 for means of integers, int64 for count, argmin and argmax, and else the source's (bfloat16 gives
/// float32). Throws unsupported where the reduction has no meaning.
[[nodiscard]] DType reduced_dtype(const DType& dtype, Reduction with);

/// The reduction of an array, computed as it is read; every chunk of the array is decoded once where the blocks that
/// are asked for end where its chunks end. `count` counts elements that are neither NaN nor NaT. argmin and argmax of
/// several dimensions give the place among their elements in C order. std has N as divisor.
///
/// How exact: min, max, count, argmin, argmax, the median, and sums of integers (modulo 2^64) are NumPy's bit for bit.
/// Sums and means of floats are summed as doubles with what each addition loses kept beside, and rounded once at the
/// end; std is Welford's, in doubles.
///
/// Throws invalid_argument for axes that are not there or are given twice, and for min, max, argmin, argmax of nothing.
[[nodiscard]] std::unique_ptr<ArraySource> reduce_source(std::unique_ptr<ArraySource> array,
                                                         const ReduceOptions& options);

}  // namespace tessera
