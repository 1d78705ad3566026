// The values of a column, each once. Private to store/tasks/jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/counted.h>
#include <tessera/dtype.h>
#include <tessera/ndarray.h>

namespace tessera {

/// Numbers the values of a column in the order in which they come first. Its memory counts against the account of the
/// thread that makes it. Thread rule: one thread at a time.
class DistinctValues {
public:
    /// Of elements in host order and of fixed length.
    explicit DistinctValues(DType dtype);

    [[nodiscard]] const DType& dtype() const { return dtype_; }
    [[nodiscard]] std::uint32_t count() const { return count_; }
    /// The number of an element; -0.0 is 0.0. nullopt: it is NaN or NaT, or empty text.
    [[nodiscard]] std::optional<std::uint32_t> number_of(const std::byte* element);
    [[nodiscard]] const std::byte* at(std::uint32_t number) const { return values_.data() + number * size_; }

    /// Whether each is greater than the one before, or of numbers each is less.
    [[nodiscard]] bool ascend_or_descend() const;
    /// Puts them in ascending order, texts by code points. Returns where each number goes.
    [[nodiscard]] CountedVector<std::uint32_t> sort();
    /// All of them in one dimension.
    [[nodiscard]] NDArray values() const;

private:
    [[nodiscard]] bool less(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] std::size_t slot_of(const std::byte* element) const;
    [[nodiscard]] bool is_missing(const std::byte* element) const;
    void grow();

    DType dtype_;
    std::size_t size_;
    std::uint32_t count_ = 0;
    std::uint32_t last_ = 0;  ///< neighbours in a table are often the same, or follow each other
    CountedVector<std::byte> values_;
    CountedVector<std::uint32_t> slots_;  ///< number + 1; 0: free
};

}  // namespace tessera
