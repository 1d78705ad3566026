// Arrays that show others in another way, as they are read: elements of another dtype, one field of structures, several
// arrays as one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/view.h>

namespace tessera {

// Conversion of elements to another dtype: NumPy's rules, and rules that refuse, round or clip values that do not fit.

/// The conversions that are allowed. The first three allow the same pairs of dtypes as numpy.can_cast.
enum class Cast : std::uint8_t {
    safe,       ///< only dtypes that hold every value of the source
    same_kind,  ///< within a kind, or to a higher one (u, i, f, c); a value that does not fit is refused
    unsafe,     ///< as numpy.astype: integers wrap; fractions, imaginary parts and excess text are dropped
    round,      ///< any number to any other except complex to real, rounded half to even; refuses values that do not
                ///< fit
    clip,       ///< the same, but values that do not fit become the nearest one; NaN to an integer is refused
};

/// "same_kind"; throws invalid_argument for another word.
[[nodiscard]] Cast parse_cast(std::string_view word);
[[nodiscard]] std::string_view cast_name(Cast rule);

/// Whether elements of `from` may become elements of `to`, whatever their values. Byte order never matters.
[[nodiscard]] bool can_cast(const DType& from, const DType& to, Cast rule);
/// Throws invalid_argument if can_cast() is false, naming a rule that allows the cast. `name` is the array's name.
void require_castable(const DType& from, const DType& to, Cast rule, std::string_view name);

/// Converts `n` packed elements, both in host order. Returns the first that does not fit, if any; the elements after it
/// in `out` are then indeterminate. The dtypes must be castable.
[[nodiscard]] std::optional<std::int64_t> cast_packed(const DType& from, const std::byte* elements, const DType& to,
                                                      std::byte* out, std::int64_t n, Cast rule);

/// A copy of elements in another dtype. Throws as require_castable, and for a value that does not fit, with its index.
[[nodiscard]] class NDArray cast_elements(const ArrayView& elements, const DType& dtype, Cast rule,
                                          const IoOptions& io = {});

/// An array with another dtype, converted as it is read. Throws as require_castable. Reading a value that does not fit
/// throws invalid_argument with its index.
class CastSource final : public ArraySource {
public:
    CastSource(std::unique_ptr<ArraySource> array, const DType& dtype, Cast rule);
    [[nodiscard]] ArrayInfo info() const override;
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override;
    [[nodiscard]] const ArraySource* converted_from() const override { return array_.get(); }

    [[nodiscard]] const ArraySource& array() const { return *array_; }  ///< the array before conversion
    [[nodiscard]] Cast rule() const { return rule_; }

private:
    std::unique_ptr<ArraySource> array_;
    DType dtype_;
    Cast rule_;
};

/// The source as a CastSource; nullptr if it is none.
[[nodiscard]] const CastSource* as_cast(const ArraySource& source);
/// What a source reads before it is converted, once or more often; the source itself, if it converts nothing.
[[nodiscard]] const ArraySource& before_cast(const ArraySource& source);

// One field of structures: a view of it in memory, and a source that presents it as an array of its own.

/// Where a field lies in each structure.
struct FieldPlace {
    DType dtype;
    Shape shape;  ///< of a sub-array, whose dimensions follow those of the array; rank 0 for none
    std::int64_t offset = 0;
};

/// The field `name`, or "n.x" for field x of the structures in field n. Throws not_found, listing the fields, and
/// invalid_argument for a dtype without fields. `array` is the array's name in messages.
[[nodiscard]] FieldPlace find_field(const DType& dtype, std::string_view name, std::string_view array);

/// A view of the field in existing elements, with the strides of the structures. Moves no data.
[[nodiscard]] ArrayView field_view(const ArrayView& structures, std::string_view name);
[[nodiscard]] MutableArrayView field_view(const MutableArrayView& structures, std::string_view name);

/// Presents a field of an array as an array. Files and chunks hold whole structures, so a read reads the whole
/// structures of its region, but nothing else, in slices that need little memory.
[[nodiscard]] std::unique_ptr<ArraySource> field_source(std::unique_ptr<ArraySource> array, std::string_view name);

// Several arrays as one: stacked along a new axis, or concatenated along an existing one. Nothing is copied: a region
// is read from the arrays that it touches.

struct JoinOptions {
    int axis = 0;
    /// Whether the axis is new, as with numpy.stack; otherwise as with numpy.concatenate.
    bool new_axis = false;
    /// The largest number of arrays that are kept open. The others are reopened when they are read.
    int most_open = 64;
};

/// The arrays of these names as one, each opened by `open`. Opens each of them once now; several threads may wait for a
/// later call of `open`. Throws invalid_argument, naming the first array whose dtype (except for byte order) or shape
/// does not fit the first one's. The dtype is that of the first. Reading an array that has changed its shape or dtype
/// since throws Error(corrupt).
[[nodiscard]] std::unique_ptr<ArraySource> join_sources(
    std::vector<std::string> names, std::function<std::unique_ptr<ArraySource>(const std::string&)> open,
    const JoinOptions& options = {});

/// The reverse: one sink with a new axis, along which each of `sinks` takes one step. All have one dtype and shape.
/// finish() finishes them in order.
[[nodiscard]] std::unique_ptr<ArraySink> split_sink(std::vector<std::unique_ptr<ArraySink>> sinks, int axis);

/// The same elements with one more axis, of length 1. `source` must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySource> with_new_axis(const ArraySource& source, int axis);

}  // namespace tessera
