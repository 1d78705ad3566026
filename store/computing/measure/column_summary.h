// A running summary of one column: a field of structures, or plain elements. Private to the store module.
#pragma once

#include <tessera/measure.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "exact_sum.h"

namespace tessera {

class IndexReader;
class IndexWriter;

/// The bins of histograms in the index of chunks.
inline constexpr int index_bins = 32;

/// What a reduction takes from summaries of the same column: numbers and times, not complex.
struct KnownElements {
    std::int64_t count = 0;
    std::int64_t missing = 0;  ///< of these: NaN, NaT, or marked so
    /// The extremes as doubles, −0.0 below 0.0; `low` is above `high` if all are missing.
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    /// The same of 64-bit integers and times; of unsigned ones with the highest bit inverted.
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    bool sums = false;        ///< whether there are these, of what is not missing; of times there are none
    ExactSum sum;             ///< of the elements as doubles
    std::uint64_t whole = 0;  ///< of integers, modulo 2^64

    void merge(const KnownElements& other);
};

/// What a summary in the index has beside extremes and moments.
struct SavedParts {
    bool bins = false;
    bool sums = false;
    bool none = false;  ///< no number at all, so that nothing is left to say
};
/// Of the saved summary of numbers. Throws corrupt.
[[nodiscard]] SavedParts saved_parts(std::string_view summary);

/// Thread rule: one thread at a time.
class ColumnSummary {
public:
    /// For elements of `dtype`, in host order. If `bins` is 0, there is no histogram. `marks`:
    /// ArrayInfo::marks_missing. `sums`: whether exact sums are needed.
    [[nodiscard]] static std::unique_ptr<ColumnSummary> make(const DType& dtype, std::size_t bins, bool marks,
                                                             bool sums = false);
    virtual ~ColumnSummary() = default;

    /// Adds `n` elements at a distance of `step` bytes, of any alignment. Counts elements equal to `fill` (for
    /// variable-length ones a slot), unless it is nullptr.
    void add(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill);
    /// Merges another summary of the same column.
    void merge(const ColumnSummary& other);
    [[nodiscard]] Statistics result() const;
    [[nodiscard]] KnownElements known() const;
    /// For the index of chunks: all of a summary, and reads it into a new one, made for the same elements. Of numbers
    /// and times only; complex ones are none here. Reading throws corrupt for what cannot be one of `most` elements.
    void save(IndexWriter& to) const;
    void load(IndexReader& from, std::int64_t most);

protected:
    explicit ColumnSummary(const DType& dtype) : dtype_(dtype) {}
    [[nodiscard]] const DType& dtype() const { return dtype_; }
    void add_nans(std::int64_t n) { nans_ += n; }
    [[nodiscard]] std::int64_t not_nan() const { return count_ - nans_; }
    void put_extremes(Statistics& s, const std::byte* min, const std::byte* max) const;

private:
    /// Adds elements as above, and returns how many of them equal the fill.
    virtual std::int64_t take(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill) = 0;
    virtual void merge_values(const ColumnSummary& other) = 0;
    virtual void put_values(Statistics& s) const = 0;
    virtual void put_known(KnownElements& known) const;
    virtual void save_values(IndexWriter& to) const;
    virtual void load_values(IndexReader& from);

    DType dtype_;
    std::int64_t count_ = 0;
    std::int64_t nans_ = 0;
    std::int64_t fills_ = 0;
};

}  // namespace tessera
