// Shapes, strides and regions: small int64 vectors, with every product checked for overflow.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The largest number of dimensions, as in NumPy 1. Files with more are refused.
inline constexpr int max_rank = 32;

enum class Order : std::uint8_t { C, F };  ///< last index fastest, or first index fastest

/// Up to `max_rank` int64 numbers, stored inline: a shape, a chunk index, strides in bytes, a start.
/// Thread rule: a value type.
class Dims {
public:
    using value_type = std::int64_t;

    Dims() = default;
    Dims(std::initializer_list<std::int64_t> v) : Dims(std::span(v.begin(), v.size())) {}
    explicit Dims(std::span<const std::int64_t> v);  ///< throws unsupported beyond max_rank
    Dims(const std::vector<std::int64_t>& v) : Dims(std::span(v)) {}
    Dims(const Dims& o) noexcept { assign(o); }
    Dims& operator=(const Dims& o) noexcept {
        if (this != &o) assign(o);
        return *this;
    }
    ~Dims() = default;

    [[nodiscard]] static Dims filled(int rank, std::int64_t value);

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rank_); }
    [[nodiscard]] bool empty() const { return rank_ == 0; }
    [[nodiscard]] std::int64_t operator[](std::integral auto i) const { return v_[i]; }
    [[nodiscard]] std::int64_t& operator[](std::integral auto i) { return v_[i]; }
    [[nodiscard]] const std::int64_t* begin() const { return v_; }
    [[nodiscard]] const std::int64_t* end() const { return v_ + rank_; }
    [[nodiscard]] std::int64_t* begin() { return v_; }
    [[nodiscard]] std::int64_t* end() { return v_ + rank_; }
    [[nodiscard]] std::int64_t back() const { return v_[rank_ - 1]; }
    void push_back(std::int64_t v);  ///< throws unsupported beyond max_rank

    [[nodiscard]] operator std::span<const std::int64_t>() const { return {v_, size()}; }
    friend bool operator==(const Dims& a, const Dims& b);

    /// "(3, 4)", "(3,)", "()", as Python prints a tuple.
    [[nodiscard]] std::string to_string() const;
    friend std::ostream& operator<<(std::ostream& out, const Dims& v);

private:
    void assign(const Dims& o) noexcept {
        rank_ = o.rank_;
        for (int i = 0; i < rank_; ++i) v_[i] = o.v_[i];
    }

    int rank_ = 0;
    std::int64_t v_[max_rank];  // only the first rank_ are ever read
};

using Shape = Dims;
using Strides = Dims;  ///< bytes between neighbours along each dimension; may be zero or negative
using Index = Dims;

/// a*b and a+b for numbers >= 0. On overflow they throw Error(invalid_argument), naming `what`.
[[nodiscard]] std::int64_t checked_multiply(std::int64_t a, std::int64_t b, const char* what);
[[nodiscard]] std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* what);

/// The number of elements. Throws invalid_argument for a negative length and on overflow of int64.
[[nodiscard]] std::int64_t element_count(const Shape& shape);
/// element_count * item_size, with the same checks.
[[nodiscard]] std::int64_t byte_count(const Shape& shape, std::int64_t item_size);
/// The byte strides of a contiguous array.
[[nodiscard]] Strides contiguous_strides(const Shape& shape, std::int64_t item_size, Order order = Order::C);
/// Throws the error of a division by a length of 0, which is a mistake in the code that divides.
[[noreturn]] void throw_zero_length();
/// a / b, rounded up, for a >= 0. A `b` of 0 throws, because a signal would end the whole process, also a server's.
[[nodiscard]] inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    if (b == 0) [[unlikely]]
        throw_zero_length();
    return a / b + (a % b != 0 ? 1 : 0);
}
/// "1000000,1000" or "(1000000, 1000)" or "[3]"; "" and "()" are 0-d. Throws invalid_argument.
[[nodiscard]] Shape parse_shape(std::string_view text);

/// A box: start + extent, one of each per dimension, always within int64.
struct Region {
    Index start;
    Shape extent;

    Region() = default;
    Region(const Index& start, const Shape& extent);  ///< throws invalid_argument when the ranks differ
    /// All of an array of this shape.
    [[nodiscard]] static Region whole(const Shape& shape);
    /// A box by its start and its extent: `Region::box({10, 0}, {2, 3})` is [10:12, 0:3].
    [[nodiscard]] static Region box(const Index& start, const Shape& extent) { return {start, extent}; }
    /// A box by its start and its end, which is not part of it: `Region::between({10, 0}, {12, 3})` is the same.
    [[nodiscard]] static Region between(const Index& start, const Index& end);

    [[nodiscard]] int rank() const { return start.rank(); }
    [[nodiscard]] std::int64_t count() const { return element_count(extent); }
    [[nodiscard]] bool empty() const;
    [[nodiscard]] std::string to_string() const;  ///< "[10:20, 0:5]"
    friend bool operator==(const Region&, const Region&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Region& v);
};

/// Throws out_of_bounds, naming both, unless `region` has the rank of `shape` and lies inside it.
void require_inside(const Region& region, const Shape& shape);
/// The common box (extent 0 if they do not meet).
[[nodiscard]] Region intersection(const Region& a, const Region& b);

}  // namespace tessera
