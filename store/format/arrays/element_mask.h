// Which elements of a chunk were written. Private to the store module.
#pragma once

#include <tessera/shape.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera {

/// A bit for each element of a chunk, in C order. Thread rule: one thread at a time.
class ElementMask {
public:
    /// Of no chunk.
    ElementMask() = default;
    /// No element is marked.
    explicit ElementMask(const Shape& shape);

    /// Bytes for this many elements, as they count against a budget.
    [[nodiscard]] static std::uint64_t bytes(std::int64_t elements);

    /// Whether it is of no chunk.
    [[nodiscard]] bool empty() const { return words_.empty(); }
    void mark(const Region& region);
    /// Whether all elements of a region are marked.
    [[nodiscard]] bool covers(const Region& region) const;
    /// Calls each(begin, count) for each run of marked elements, in order.
    void for_each_run(const std::function<void(std::int64_t begin, std::int64_t count)>& each) const;

private:
    /// Calls row(begin, count) for the rows of a region until it returns false. Returns whether it never did.
    template <class Row>
    bool each_row(const Region& region, const Row& row) const;
    /// The first element from `from` on that is marked, or is not.
    [[nodiscard]] std::int64_t next(std::int64_t from, bool marked) const;

    Shape shape_;
    std::int64_t count_ = 0;
    std::vector<std::uint64_t> words_;
};

}  // namespace tessera
