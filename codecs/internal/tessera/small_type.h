// The data types of Zarr v3 that neither C++ nor NumPy has: integers of 2 and 4 bits, floats of 4 to 8 bits, and
// complex numbers of small floats. In memory their elements are the smallest ordinary numbers that hold them: i1, u1,
// f4, c8. The codec "data_type" at the front of the chain packs each into its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

struct SmallType {
    enum class Form : std::uint8_t {
        signed_integer,
        unsigned_integer,
        ieee,       // infinities and NaN as in IEEE 754
        finite,     // no infinities; NaN where all bits but the sign are set
        no_nan,     // neither
        no_zero,    // neither; the negative zero is NaN
        exponents,  // powers of two alone, and NaN where all bits are set
    };
    std::string_view part;  ///< the name, without what complex ones have in front
    Form form;
    int bits;      ///< of one part
    int mantissa;  ///< of these; 0 for integers
    int bias;      ///< of the exponent
    int parts;     ///< 2 for complex numbers

    [[nodiscard]] std::string name() const;                                     ///< v3's
    [[nodiscard]] DType in_memory() const;                                      ///< little-endian
    [[nodiscard]] std::int64_t part_bytes() const { return bits > 8 ? 2 : 1; }  ///< as the codec "bytes" writes them
};

/// By v3's name; nullopt if it is no such type.
[[nodiscard]] std::optional<SmallType> small_type(std::string_view name);

/// The codec that packs elements of a small type.
inline constexpr std::string_view small_type_codec_name = "data_type";

}  // namespace tessera
