// The state of a reduction for each of many columns of elements, which are a dimension of an array, or the blocks of
// one. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/reduce.h>

namespace tessera {

/// What an accumulator takes, and what it does with missing elements.
struct Elements {
    DType dtype;
    bool skip = false;   ///< leave missing ones out; else they make their result missing
    bool marks = false;  ///< ArrayInfo::marks_missing

    /// The dtype whose conversion to doubles makes NaN of what is missing.
    [[nodiscard]] DType for_doubles() const { return marks ? DType::time(Kind::timedelta, {}) : dtype; }
};

/// Thread rule: one thread at a time, but add() to and merge() into different columns from several.
class Accumulator {
public:
    /// For `columns` columns of elements of `from`, in host order.
    [[nodiscard]] static std::unique_ptr<Accumulator> make(const Elements& from, Reduction with, std::int64_t columns);
    /// Sums or means of real numbers that do not depend on the order of elements, for few long columns: from elements
    /// that are contiguous. Sums of integers are always so.
    [[nodiscard]] static std::unique_ptr<Accumulator> make_exact(const Elements& from, Reduction with,
                                                                 std::int64_t columns);
    /// For columns of at most `most` elements, as coarsen_source() reduces blocks. `with` is not nearest.
    [[nodiscard]] static std::unique_ptr<Accumulator> make(const Elements& from, Coarsening with, std::int64_t columns,
                                                           std::int64_t most);
    virtual ~Accumulator() = default;
    /// Adds one element to each of `n` columns from `first` on, from packed elements. The i-th has the index `place + i
    /// * place_step` within its column.
    virtual void add(const std::byte* elements, std::int64_t first, std::int64_t n, std::int64_t place,
                     std::int64_t place_step) = 0;
    /// Adds `n` packed elements: the first `run` to column `first`, the next ones to the column after it, and so on.
    virtual void add_runs(const std::byte* elements, std::int64_t first, std::int64_t n, std::int64_t run) = 0;
    /// Adds `n` packed elements to all columns in turn: the i-th, with the index `place + i`, to column i modulo their
    /// number.
    virtual void add_in_turn(const std::byte* elements, std::int64_t n, std::int64_t place) = 0;
    /// Merges column `column` of `other` into column `into`.
    virtual void merge(std::int64_t into, const Accumulator& other, std::int64_t column) = 0;
    /// Clears the state.
    virtual void reset() = 0;
    /// The results of all columns, packed, of result_dtype().
    virtual void results(std::byte* out) const = 0;
    [[nodiscard]] virtual DType result_dtype() const = 0;
};

/// Maximum bytes of an accumulator for each column.
constexpr std::int64_t accumulator_bytes = 40;
/// The same of make_exact().
constexpr std::int64_t exact_accumulator_bytes = 600;

}  // namespace tessera
