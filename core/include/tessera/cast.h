// Conversion of elements to another dtype: NumPy's rules, and rules that refuse, round or clip values that do not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/view.h>

namespace tessera {

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

    [[nodiscard]] const ArraySource& array() const { return *array_; }  ///< the array before conversion
    [[nodiscard]] Cast rule() const { return rule_; }

private:
    std::unique_ptr<ArraySource> array_;
    DType dtype_;
    Cast rule_;
};

/// The source as a CastSource; nullptr if it is none.
[[nodiscard]] const CastSource* as_cast(const ArraySource& source);
/// What a source reads before it is converted: the source itself, if it is no CastSource.
[[nodiscard]] const ArraySource& before_cast(const ArraySource& source);

}  // namespace tessera
