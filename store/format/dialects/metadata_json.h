// Code shared by the dialects: reading and writing documents, reading members with their name in errors, fill values.
// Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// ---- documents

/// zarr-python 3's json.dumps(indent=2).
inline constexpr JsonStyle zarr3_json_style{.indent = 2, .sort_keys = false, .ascii = true};

/// Runs `body` on the content of a file: turns its errors into errors about the file, not about the caller's arguments.
template <class Body>
decltype(auto) reading(std::string_view where, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        const bool about_content = e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::not_found;
        throw e.reworded(about_content ? ErrorCode::corrupt : e.code(), fmt::format("{}: {}", where, e.what()));
    }
}

/// The object at `key`; nullopt if it is absent. Throws corrupt if it is not a JSON object.
[[nodiscard]] std::optional<Value> get_object(const ReadableStore& store, std::string_view key);
/// Writes an object.
void put_object(KeyValueStore& store, std::string_view key, const Value& object, JsonStyle style = python_json_style);

[[nodiscard]] inline std::string_view text_of(const Buffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- members

/// Runs `body` and adds the member's name to its errors.
template <class Body>
decltype(auto) in_member(std::string_view name, Body&& body) {
    return in_context([&] { return fmt::format("member \"{}\"", name); }, std::forward<Body>(body));
}

/// Reads one member; errors name it.
template <class Read>
auto member(const Value& object, std::string_view name, Read&& read) {
    const Value* v = object.find(name);
    if (!v) throw corrupt("the member \"{}\" is missing", name);
    return in_member(name, [&] { return read(*v); });
}

/// The beginning of a value's JSON, for messages.
[[nodiscard]] std::string excerpt(const Value& v);
[[nodiscard]] Shape read_dims(const Value& v, std::int64_t least);
[[nodiscard]] Value dims_json(const Dims& dims);
[[nodiscard]] std::int64_t read_number(const Value& v, std::int64_t least, std::int64_t most);
/// A string that is one of `choices`; throws corrupt that lists them.
[[nodiscard]] std::string read_choice(const Value& v, std::span<const std::string_view> choices);
/// Throws unsupported, with the found value, unless zarr_format is `format`.
void require_format(const Value& meta, int format);
/// The members of `object` that are not among `known`.
[[nodiscard]] Value unknown_members(const Value& object, std::span<const std::string_view> known);

// ---- dtypes and shapes

/// Reads NumPy's notation or a descr. Throws unsupported for dtypes that NumPy cannot store as fixed-size elements.
[[nodiscard]] DType read_numpy_dtype(const Value& v, std::string_view dialect);
/// Throws unsupported for a dtype that NumPy lacks or that contains Python objects.
void require_numpy_dtype(const DType& dtype, std::string_view dialect);
/// Throws unless ranks agree, elements have bytes, and no product overflows.
void require_sizes(const ArrayMetadata& m);
/// The keys of chunks in Zarr v2, which are v1's, too, and which v3 may use.
[[nodiscard]] KeyScheme v2_keys();
/// Throws unsupported unless the keys of chunks follow the dialect's only scheme.
void require_keys(const ArrayMetadata& m, const KeyScheme& only, std::string_view dialect);
void require_one_chunk_shape(const ArrayMetadata& m, std::string_view dialect);
void require_no_dimension_names(const ArrayMetadata& m, std::string_view dialect);

/// Whether `is` is true for a field at any depth of a structure.
template <class Is>
bool any_field(const DType& dtype, const Is& is) {
    for (const Field& field : dtype.fields()) {
        if (is(field) || any_field(field.dtype, is)) return true;
    }
    return false;
}

/// Whether a name directly below an array's prefix is a chunk, or the folder of chunks.
[[nodiscard]] bool is_chunk_name(const ArrayMetadata& m, std::string_view name);

// ---- fill values

/// How a dialect spells fill values.
struct FillRules {
    /// Throws invalid_argument for an invalid fill value of this dtype.
    ElementBytes (*read)(const DType& dtype, const Value& v);
    /// The spelling of the bytes. If it does not read back as the same bytes, these cannot be expressed.
    Value (*write)(const DType& dtype, const ElementBytes& bytes);
    /// Which values of a dtype can be expressed, for the error.
    std::string_view (*limits)(const DType& dtype);
};

/// The JSON of a fill that is not null: its original spelling if that still reads as its bytes, else by the rules.
/// Throws unsupported if neither reads back as the bytes.
[[nodiscard]] Value fill_json(const FillRules& rules, std::string_view dialect, const DType& dtype,
                              const FillValue& fill);

// For zmeta and v1: a bare JSON value, assigned by NumPy's rules when it is needed.
[[nodiscard]] FillValue read_plain_fill(const DType& dtype, const Value& v);
[[nodiscard]] Value plain_fill_json(std::string_view dialect, const DType& dtype, const FillValue& fill);
[[nodiscard]] FillValue plain_default_fill(const DType& dtype);

/// A float, complex number or similar as zarr-python 2 and 3 spell it: the full double (f4 0.1 is 0.10000000149011612),
/// "NaN", "Infinity", "-Infinity", a pair.
[[nodiscard]] Value strict_number_json(const DType& dtype, const std::byte* p);
/// Bytes from base64; throws invalid_argument unless there are `least` to `most` of them.
[[nodiscard]] ElementBytes read_base64(const Value& v, std::int64_t least, std::int64_t most);
/// S without trailing zeros, as in Python.
[[nodiscard]] std::span<const std::byte> without_trailing_zeros(std::span<const std::byte> bytes);
/// Zeros: false, 0, the empty string.
[[nodiscard]] FillValue zero_fill(const DType& dtype);

// ---- codecs

inline constexpr std::array<std::string_view, 6> blosc_cnames{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
inline constexpr std::array<std::string_view, 3> blosc_shuffles{"noshuffle", "shuffle", "bitshuffle"};  // by number

/// {"blosc", {cname, clevel, shuffle as v3's word}} from members with the shuffle as a number.
[[nodiscard]] CodecConfig read_numbered_blosc(const Value& object);
/// The number of a blosc configuration's shuffle; throws unsupported for an unknown word.
[[nodiscard]] Value shuffle_number(const Value& configuration, std::string_view dialect);
/// cname, clevel and the shuffle's number, for dialects where blosc has no other members. Throws unsupported if another
/// member differs from blosc's default.
[[nodiscard]] Value numbered_blosc_json(const CodecConfig& blosc, const DType& dtype, std::string_view dialect);
/// Throws unsupported if an optional member has another value than the dialect's only one.
void require_member(const CodecConfig& codec, std::string_view name, const Value& only, std::string_view dialect);
/// "[bytes, blosc]", for messages.
[[nodiscard]] std::string chain_text(std::span<const CodecConfig> codecs);

/// The row of a codec; throws unsupported, naming it, if Tessera lacks it.
[[nodiscard]] const CodecRow& codec_row(std::string_view name);
/// The chunk spec after the array→array codecs at the front of a chain.
[[nodiscard]] ChunkSpec encoded_spec(ChunkSpec spec, std::span<const CodecConfig> codecs);
/// The transpose that is equivalent to Order::F: [2, 1, 0].
[[nodiscard]] CodecConfig reversal(int rank);

}  // namespace tessera
