// Selection: NumPy's basic slices, as text ("10:20, ::2, 5, ...") or built in code.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/shape.h>

namespace tessera {

/// The elements that a basic slice picks from an array of a known shape: along each dimension `count` indices start,
/// start+step, … (step may be negative, never 0). It also records the dimensions that an integer index dropped.
/// Thread rule: a value type.
class Selection {
public:
    struct Axis {
        std::int64_t start = 0;
        std::int64_t step = 1;
        std::int64_t count = 0;
        bool dropped = false;  ///< picked by an integer: count is 1 and the result has no such dimension
        bool operator==(const Axis&) const = default;
    };

    /// All of an array of this shape.
    [[nodiscard]] static Selection all(const Shape& shape);
    /// A region, which must lie inside `shape`.
    Selection(const Region& region, const Shape& shape);
    /// From its axes, which the caller has checked against an array's shape.
    explicit Selection(std::vector<Axis> axes) : axes_(std::move(axes)) {}
    /// Parses NumPy's basic slices: integers, `a:b:c` with any part missing or negative, and one `...`. Brackets around
    /// the whole text are allowed, and the empty text selects everything. Slices are clipped to the shape as in NumPy.
    /// Throws out_of_bounds for an integer out of range, and invalid_argument for bad text or too many indices.
    [[nodiscard]] static Selection parse(std::string_view text, const Shape& shape);

    [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
    [[nodiscard]] int rank() const { return static_cast<int>(axes_.size()); }
    /// The shape of the result, without dropped dimensions.
    [[nodiscard]] Shape shape() const;
    /// The shape with dropped dimensions kept as 1.
    [[nodiscard]] Shape full_shape() const;
    /// The smallest region that contains every picked element.
    [[nodiscard]] Region bounds() const;
    /// Whether it is a plain region: every step 1 (dropped dimensions may occur).
    [[nodiscard]] bool is_region() const;
    /// The part of this selection given by `box`, a region of full_shape().
    [[nodiscard]] Selection part(const Region& box) const;
    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const Selection&, const Selection&) = default;

private:
    std::vector<Axis> axes_;
};

/// A selection as text, for the parameters of functions that also take a Region: braces are always a region. Does not
/// own the text.
class SelectionText {
public:
    template <std::convertible_to<std::string_view> T>
    SelectionText(const T& text) : text_(text) {}
    operator std::string_view() const { return text_; }

private:
    std::string_view text_;
};

}  // namespace tessera
