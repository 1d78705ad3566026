// What the dialects share: documents read and written whole, members read with their name in the error, fill values.
// Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/dialect.h>
#include <tessera/error.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// ---- documents

/// zarr-python 3's json.dumps(indent=2).
inline constexpr JsonStyle zarr3_json_style{.indent = 2, .sort_keys = false, .ascii = true};

/// "STORE/KEY", for messages.
[[nodiscard]] std::string name_of(const KeyValueStore& store, std::string_view key);

/// Runs `body` on what a file says: its complaints are about the file, not about what the caller asked for.
template <class Body>
decltype(auto) reading(std::string_view where, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        const bool about_content = e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::not_found;
        throw Error(about_content ? ErrorCode::corrupt : e.code(), fmt::format("{}: {}", where, e.what()));
    }
}

/// The object at `key`; nothing when it is absent. Throws corrupt for what is no JSON object.
[[nodiscard]] std::optional<Value> get_object(const KeyValueStore& store, std::string_view key);
/// Writes an object.
void put_object(KeyValueStore& store, std::string_view key, const Value& object, JsonStyle style = python_json_style);

[[nodiscard]] inline std::string_view text_of(const Buffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- members

/// Runs `body` with the member's name in what it throws.
template <class Body>
decltype(auto) in_member(std::string_view name, Body&& body) {
    return in_context([&] { return fmt::format("member \"{}\"", name); }, std::forward<Body>(body));
}

/// Reads one member; what goes wrong names it.
template <class Read>
auto member(const Value& object, std::string_view name, Read&& read) {
    const Value* v = object.find(name);
    if (!v) throw corrupt(fmt::format("the member \"{}\" is missing", name));
    return in_member(name, [&] { return read(*v); });
}

/// The beginning of a value's JSON, for messages.
[[nodiscard]] std::string excerpt(const Value& v);
[[nodiscard]] Shape read_dims(const Value& v, std::int64_t least);
[[nodiscard]] Value dims_json(const Dims& dims);
[[nodiscard]] std::int64_t read_number(const Value& v, std::int64_t least, std::int64_t most);
/// A string that is one of `choices`; throws corrupt that lists them.
[[nodiscard]] std::string read_choice(const Value& v, std::span<const std::string_view> choices);
/// Throws unsupported, saying what was found, unless zarr_format is `format`.
void require_format(const Value& meta, int format);
/// The members of `object` that are not among `known`.
[[nodiscard]] Value unknown_members(const Value& object, std::span<const std::string_view> known);

// ---- what metadata say of elements

/// NumPy's notation, or a descr. Throws unsupported for what NumPy cannot store in a file of fixed-size elements.
[[nodiscard]] DType read_numpy_dtype(const Value& v, std::string_view dialect);
/// Throws unsupported for a dtype that is none of NumPy's, or has Python objects in it.
void require_numpy_dtype(const DType& dtype, std::string_view dialect);
/// Throws unless ranks agree, elements have bytes, and no product overflows.
void require_sizes(const ArrayMetadata& m);
/// Throws unsupported unless chunks are named by the only scheme that the dialect knows.
void require_keys(const ArrayMetadata& m, const KeyScheme& only, std::string_view dialect);
void require_no_dimension_names(const ArrayMetadata& m, std::string_view dialect);

/// Whether `is` holds of a field at any depth of a structure.
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
    /// Throws invalid_argument for what is no fill value of this dtype.
    ElementBytes (*read)(const DType& dtype, const Value& v);
    /// How the bytes would be spelt. It need not read back as the same bytes: then they cannot be expressed.
    Value (*write)(const DType& dtype, const ElementBytes& bytes);
    /// Which values of a dtype can be expressed, for the refusal.
    std::string_view (*limits)(const DType& dtype);
};

/// What stands in the metadata for a fill that is not null: its spelling where that still reads as its bytes, else what
/// the rules give. Throws unsupported where nothing reads back as the bytes.
[[nodiscard]] Value fill_json(const FillRules& rules, std::string_view dialect, const DType& dtype,
                              const FillValue& fill);

// zmeta's and v1's: a bare JSON value, assigned as NumPy assigned it when it was needed.
[[nodiscard]] FillValue read_plain_fill(const DType& dtype, const Value& v);
[[nodiscard]] Value plain_fill_json(std::string_view dialect, const DType& dtype, const FillValue& fill);
[[nodiscard]] FillValue plain_default_fill(const DType& dtype);

/// A float, complex number or their like as zarr-python 2 and 3 spell it: the whole double (f4 0.1 is
/// 0.10000000149011612), "NaN", "Infinity", "-Infinity", a pair.
[[nodiscard]] Value strict_number_json(const DType& dtype, const std::byte* p);
/// Bytes from base64, padded with zeros to `size`; throws invalid_argument where that is not what `v` has.
[[nodiscard]] ElementBytes read_base64(const Value& v, std::int64_t least, std::int64_t most);
/// S without the zeros at its end, as Python sees it.
[[nodiscard]] std::span<const std::byte> without_trailing_zeros(std::span<const std::byte> bytes);
/// Zeros: false, 0, the empty string.
[[nodiscard]] FillValue zero_fill(const DType& dtype);

// ---- codecs

inline constexpr std::array<std::string_view, 6> blosc_cnames{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
inline constexpr std::array<std::string_view, 3> blosc_shuffles{"noshuffle", "shuffle", "bitshuffle"};  // by number

/// {"blosc", {cname, clevel, shuffle as v3's word}} from members that give the shuffle by number.
[[nodiscard]] CodecConfig read_numbered_blosc(const Value& object);
/// The number that stands for a blosc configuration's shuffle; throws unsupported for another word.
[[nodiscard]] Value shuffle_number(const Value& configuration, std::string_view dialect);
/// cname, clevel and shuffle by number, for dialects where blosc has no other members; throws unsupported for others
/// that are not what blosc chooses by itself.
[[nodiscard]] Value numbered_blosc_json(const CodecConfig& blosc, const DType& dtype, std::string_view dialect);
/// Throws unsupported where an optional member has another value than the only one that the dialect knows.
void require_member(const CodecConfig& codec, std::string_view name, const Value& only, std::string_view dialect);
/// "[bytes, blosc]", for messages.
[[nodiscard]] std::string chain_text(std::span<const CodecConfig> codecs);

/// The row of a codec; throws unsupported, naming it, when Tessera has none of that name.
[[nodiscard]] const CodecRow& codec_row(std::string_view name);
/// What the array→array codecs at the front of a chain make of a chunk.
[[nodiscard]] ChunkSpec encoded_spec(ChunkSpec spec, std::span<const CodecConfig> codecs);
/// The order of dimensions that stands for Order::F: [2, 1, 0].
[[nodiscard]] CodecConfig reversal(int rank);

}  // namespace tessera
