// DType: what one element is. NumPy's whole notation, and nothing about any file format.
//
// Kinds and their spelling, shared by every format: b1, i1 i2 i4 i8, u1…u8, f2 f4 f8, c8 c16, f16/c32 (x86 long double,
// opaque bytes), bfloat16, M8[10ns] m8[s] and generic M8/m8, S n, U n (4 bytes a character), V n, structures (nested,
// sub-array shapes, titles, padding), O (Python objects: recognised, never interpreted), and variable-length text and
// bytes.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

enum class Kind : std::uint8_t {
    boolean,
    integer,           // i1 i2 i4 i8
    unsigned_integer,  // u1 u2 u4 u8
    real,              // f2 f4 f8
    complex,           // c8 c16
    bfloat16,
    extended,          // f16: x86 long double in 16 bytes, never computed with
    extended_complex,  // c32
    datetime,          // M8
    timedelta,         // m8
    bytes,             // S
    text,              // U, UTF-32 code units
    raw,               // V
    structure,
    object,          // only names a file's dtype; its elements cannot be read
    variable_text,   // UTF-8, a slot of view.h
    variable_bytes,  // a slot of view.h
};

/// Byte order of an element. `none` if it has no meaning: one-byte items, S, V, structures, variable length.
enum class ByteOrder : std::uint8_t { little, big, none };
inline constexpr ByteOrder native_order =
    std::endian::native == std::endian::little ? ByteOrder::little : ByteOrder::big;

/// The unit of M8 and m8: `multiple` × `unit`. Generic (no unit) has multiple 1.
struct TimeUnit {
    enum class Base : std::uint8_t { generic, Y, M, W, D, h, m, s, ms, us, ns, ps, fs, as };
    Base base = Base::generic;
    std::int32_t multiple = 1;
    bool operator==(const TimeUnit&) const = default;
};

struct Field;

/// The dtype of further C++ types. dtype_of.h defines it for a program's structs (TESSERA_STRUCTURE) and for the times
/// of std::chrono.
template <class T>
struct DTypeOf;
template <class T>
concept RegisteredType = requires {
    DTypeOf<T>::dtype();
};

/// One element's type. Thread rule: an immutable value type, cheap to copy.
class DType {
public:
    DType() = default;  ///< V0; exists so that aggregates can be default-made
    DType(const char* text) : DType(parse(text)) {}
    DType(const std::string& text) : DType(parse(text)) {}

    /// NumPy's notation: "<i4", "=i4", "i4", "int32", "float", "M8[10ns]", "datetime64[s]", "S5", "U3", "V7", "bool",
    /// "i4,(2,3)f8", a list such as "[('a','<i4'),('b','>f8',(2,))]". Kinds that NumPy cannot spell are "bfloat16",
    /// "string" and "bytes" (the last two have variable length). Throws invalid_argument, quoting the text.
    [[nodiscard]] static DType parse(std::string_view text);

    /// A `descr`: a string, or a list of [name, type] / [name, type, shape] where name may be [title, name] and type is
    /// again a descr. (type, shape) pairs are read too. The name "" with a V type is padding with `Padding::skip` (as
    /// in .npy), and otherwise a field called f0, f1, … by its place (as in np.dtype()).
    enum class Padding : std::uint8_t { skip, name };
    [[nodiscard]] static DType from_descr(const Value& descr, Padding padding = Padding::skip);

    // Built in code. Sizes in bytes; throws invalid_argument for a size that the kind does not have.
    [[nodiscard]] static DType scalar(Kind kind, std::int64_t size, ByteOrder order = native_order);
    [[nodiscard]] static DType time(Kind kind, TimeUnit unit, ByteOrder order = native_order);
    [[nodiscard]] static DType bytes(std::int64_t length);                                     ///< S
    [[nodiscard]] static DType text(std::int64_t characters, ByteOrder order = native_order);  ///< U
    [[nodiscard]] static DType raw(std::int64_t length);                                       ///< V
    [[nodiscard]] static DType variable_text();
    [[nodiscard]] static DType variable_bytes();
    /// Fields in ascending, non-overlapping offsets; `size` covers them all. Names must be unique and not empty.
    [[nodiscard]] static DType structure(std::vector<Field> fields, std::int64_t size);

    template <class T>
    [[nodiscard]] static DType of();  ///< bool, integers, float, double, complex of both, RegisteredType

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] std::int64_t size() const { return size_; }  ///< bytes of one element
    [[nodiscard]] ByteOrder order() const { return order_; }
    [[nodiscard]] TimeUnit time_unit() const { return unit_; }
    [[nodiscard]] std::span<const Field> fields() const;
    [[nodiscard]] bool is_variable() const { return kind_ == Kind::variable_text || kind_ == Kind::variable_bytes; }
    /// Whether an element is plain host-order data (structures: every field is).
    [[nodiscard]] bool is_native() const;
    /// The same type with every multi-byte part in this order (`none` is not allowed).
    [[nodiscard]] DType with_order(ByteOrder order) const;
    /// The same bytes with padding as V fields, named f0, f1, … by their position and marked `unnamed`. zarr 0.4 reads
    /// structures with padding back in this form. Throws invalid_argument if such a name is taken.
    [[nodiscard]] DType with_padding_named() const {
        return kind_ == Kind::structure ? from_descr(descr(), Padding::name) : *this;
    }
    /// Equal except for byte order: such elements convert by swapping alone.
    [[nodiscard]] bool equal_but_order(const DType& other) const;
    /// Bytes of the parts that are swapped as one unit: 4 for U and i4, 8 for c16; 1 if nothing is swapped.
    [[nodiscard]] std::int64_t swap_unit() const;

    /// NumPy's dtype.str: "<i4", "|b1", "|V12" for a structure, "<M8[ns]". bfloat16 is "<bfloat16"/">bfloat16".
    [[nodiscard]] std::string str() const;
    /// NumPy's dtype.descr for structures (padding as ["", "|Vn"]), else str().
    [[nodiscard]] Value descr() const;
    /// For people and for .npy headers: str(), or the descr as a Python literal: "[('a', '<i4'), ('b', '<f8', (2,))]".
    [[nodiscard]] std::string to_string() const;

    /// Same kind, size, order, unit, and for structures the same names, titles, offsets, sub-shapes and types.
    friend bool operator==(const DType& a, const DType& b);
    friend std::ostream& operator<<(std::ostream& out, const DType& v);  ///< to_string()

private:
    Kind kind_ = Kind::raw;
    ByteOrder order_ = ByteOrder::none;
    TimeUnit unit_;
    std::int64_t size_ = 0;
    std::shared_ptr<const std::vector<Field>> fields_;
};

/// One field of a structure.
struct Field {
    std::string name;
    std::optional<std::string> title;
    DType dtype;
    Shape shape;              ///< of a sub-array; rank 0 for none
    std::int64_t offset = 0;  ///< bytes from the start of the element
    bool unnamed = false;     ///< spelt "" in the metadata and shown as f1, … (zarr 0.4 padding); ignored by ==

    [[nodiscard]] std::int64_t size() const { return byte_count(shape, dtype.size()); }
};

// ---- implementation of the template above

template <class T>
DType DType::of() {
    if constexpr (std::is_same_v<T, bool>) {
        return scalar(Kind::boolean, 1);
    } else if constexpr (std::is_integral_v<T>) {
        return scalar(std::is_signed_v<T> ? Kind::integer : Kind::unsigned_integer, sizeof(T));
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        return scalar(Kind::real, sizeof(T));
    } else if constexpr (RegisteredType<T>) {
        return DTypeOf<T>::dtype();
    } else {
        static_assert(std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>,
                      "tessera::DType::of: no dtype corresponds to this C++ type; register a struct with "
                      "TESSERA_STRUCTURE, or pass a DType instead");
        return scalar(Kind::complex, sizeof(T));
    }
}

}  // namespace tessera
