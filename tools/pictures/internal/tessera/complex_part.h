// Complex numbers as real ones: their magnitude, phase, real or imaginary part.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/array_io.h>

namespace tessera {

inline constexpr std::array<std::string_view, 4> complex_parts{"magnitude", "phase", "real", "imaginary"};

/// A part of an array of complex numbers, computed as it is read: float32 of complex64, else float64. The phase lies
/// between -π and π. Thread rule: as that of the whole.
class ComplexPart final : public ArraySource {
public:
    /// `part` is one of complex_parts. Throws invalid_argument for another one, or if the elements are not complex.
    ComplexPart(std::shared_ptr<const ArraySource> whole, std::string_view part);

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return whole_->name(); }
    [[nodiscard]] Value attribute_values() const override { return whole_->attribute_values(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;

    [[nodiscard]] const ArraySource& whole() const { return *whole_; }
    /// The part of one element of the whole, in that array's dtype.
    [[nodiscard]] double number_of(const std::byte* element) const;

private:
    [[nodiscard]] double number(const double pair[2]) const;

    std::shared_ptr<const ArraySource> whole_;
    std::size_t part_;
    ArrayInfo info_;
};

}  // namespace tessera
