// Codecs: the three kinds that a chunk goes through, in the terms of Zarr v3.
//
//   array → array   changes elements or their order (transpose, delta, …)
//   array → bytes   lays elements out as bytes (bytes, sharding, vlen-utf8, …); exactly one in a chain
//   bytes → bytes   compresses or checks bytes (blosc, zstd, crc32c, …)
//
// A codec is made from its configuration for one chunk's dtype, shape and fill, and is immutable from then on.
// Thread rule: every member function is const and may be called from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <tessera/value.h>
#include <tessera/view.h>

namespace tessera {

/// What a chunk looks like at one place in the chain.
struct ChunkSpec {
    DType dtype;
    Shape shape;
    std::optional<ElementBytes> fill;  ///< none where the fill is undefined
};

/// One codec as metadata names it: {"blosc", {"cname": "lz4", …}}, in v3's spelling of names and members.
struct CodecConfig {
    std::string name;
    Value configuration = Value::object();
    friend bool operator==(const CodecConfig&, const CodecConfig&) = default;
};

/// {"name": …, "configuration": …} as v3 metadata spell it, without a configuration that is empty; and back, where a
/// bare string is a name. Throws invalid_argument for anything else.
[[nodiscard]] Value codec_to_json(const CodecConfig& codec);
[[nodiscard]] CodecConfig codec_from_json(const Value& json);

class ArrayToArrayCodec {
public:
    virtual ~ArrayToArrayCodec() = default;
    /// What `encode` makes of the spec that this codec was made for.
    [[nodiscard]] virtual const ChunkSpec& encoded() const = 0;
    [[nodiscard]] virtual NDArray encode(const ArrayView& in) const = 0;
    /// `out` has the shape and dtype that this codec was made for.
    virtual void decode(const ArrayView& in, const MutableArrayView& out) const = 0;
    /// Of a codec that only reorders dimensions: dimension k of what it encodes to is dimension (*axes())[k] of what
    /// goes in. Such a codec is applied to views and moves nothing. nullptr for every other codec.
    [[nodiscard]] virtual const Dims* axes() const { return nullptr; }
};

class ShardCodec;

class ArrayToBytesCodec {
public:
    virtual ~ArrayToBytesCodec() = default;
    /// Replaces the contents of `out`.
    virtual void encode(const ArrayView& in, Buffer& out) const = 0;
    virtual void decode(ByteSpan in, const MutableArrayView& out) const = 0;
    /// The same; may take the memory of `in` over, as what variable-length elements point to.
    virtual void decode_owned(Buffer& in, const MutableArrayView& out) const { decode(in, out); }
    /// The exact number of bytes that encode makes, where every chunk has the same.
    [[nodiscard]] virtual std::optional<std::uint64_t> encoded_size() const = 0;
    /// The dtype (byte order included) whose elements, packed in C order, are the encoded bytes, so that decoding may
    /// go straight into such memory; nullptr where the bytes are something else.
    [[nodiscard]] virtual const DType* memory_dtype() const { return nullptr; }
    /// For a codec whose bytes hold smaller chunks that are read and replaced one by one; otherwise nullptr.
    [[nodiscard]] virtual const ShardCodec* shard() const { return nullptr; }
};

class ByteRuns;
struct CodecScratch;

class BytesToBytesCodec {
public:
    virtual ~BytesToBytesCodec() = default;
    virtual void encode(ByteSpan in, Buffer& out) const = 0;
    /// Decodes into exactly `out.size()` bytes; throws corrupt when `in` holds another number of bytes. Checks every
    /// size that `in` claims before it writes.
    virtual void decode(ByteSpan in, MutableByteSpan out) const = 0;
    /// Decodes what has no size known beforehand; false when it is over `limit` bytes.
    [[nodiscard]] virtual bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const = 0;
    /// How many bytes at the end of `in` decoding ignores because they follow the encoded data; 0 for a codec that
    /// refuses such bytes. `in` decodes to `decoded_size` bytes, or to at most that many. Throws corrupt.
    [[nodiscard]] virtual std::uint64_t trailing_bytes(ByteSpan /*in*/, std::uint64_t /*decoded_size*/) const {
        return 0;
    }
    /// Of a codec whose encoded bytes are blocks that decode one by one: decodes those that `runs` touch of the
    /// `decoded_size` bytes, straight to where these go, and reads no more of `in` than that takes. false where the
    /// codec or these bytes have no such blocks, or are damaged: decode() then says how; what runs lead to is
    /// indeterminate.
    [[nodiscard]] virtual bool decode_runs(const ByteSource& /*in*/, std::uint64_t /*decoded_size*/,
                                           const ByteRuns& /*runs*/, CodecScratch& /*scratch*/) const {
        return false;
    }
    /// Of the same kind of codec: encodes the `decoded_size` bytes that `in` holds, with those that `runs` lead to in
    /// their places, and takes blocks without any of these from `in` as they are. false where the codec cannot, or
    /// where the result would not be what encoding all of it gives; `out` is indeterminate then.
    [[nodiscard]] virtual bool encode_runs(ByteSpan /*in*/, std::uint64_t /*decoded_size*/, const ByteRuns& /*runs*/,
                                           CodecScratch& /*scratch*/, Buffer& /*out*/) const {
        return false;
    }
    /// The most bytes that encoding `in_size` bytes can give.
    [[nodiscard]] virtual std::uint64_t encoded_bound(std::uint64_t in_size) const = 0;
    /// Whether every encoding has exactly that many bytes (checksums): what the index of a shard needs.
    [[nodiscard]] virtual bool fixed_size() const { return false; }
};

/// One part of a codec's short notation, in order: the member of the configuration that it stands for.
struct CodecPart {
    enum class Type : std::uint8_t { whole, number, text, flag };
    std::string_view member;
    Type type;
    std::string_view otherwise = {};  ///< as JSON, where the part is left out; empty: the member is left out too
    bool required = false;
};

/// One row of the table of codecs: all that is said of a codec by its name. Exactly one of the three makers is set.
struct CodecRow {
    std::string_view name;   ///< v3's name, or "numcodecs.*"
    std::string_view about;  ///< one line for --help
    std::unique_ptr<ArrayToArrayCodec> (*array_to_array)(const Value& configuration, const ChunkSpec& in) = nullptr;
    std::unique_ptr<ArrayToBytesCodec> (*array_to_bytes)(const Value& configuration, const ChunkSpec& in) = nullptr;
    /// `item_size` is the dtype's, for codecs that shuffle.
    std::unique_ptr<BytesToBytesCodec> (*bytes_to_bytes)(const Value& configuration, std::int64_t item_size) = nullptr;

    std::span<const CodecPart> parts = {};  ///< of the short notation, after the name
    bool short_notation = true;             ///< false: the configuration is given as JSON only
    /// Adds to a configuration what it may leave out because the dtype of the elements that go in says it.
    void (*complete)(Value& configuration, const DType& dtype) = nullptr;
    bool compressor = false;       ///< v2 has a place of its own for it, and conversions may choose another instead
    bool self_describing = false;  ///< decodes what it encoded with any other configuration
    bool numcodecs = false;        ///< numcodecs knows it by the same name; by "numcodecs.NAME" it knows it anyway
    Kind objects = Kind::object;   ///< what v2's elements of dtype |O are that it encodes; Kind::object: it does not
    std::string_view decoded_dtype = {};  ///< the member with the dtype that it decodes to
    bool keeps_dtype = false;             ///< it encodes to the dtype that it is given, in whichever byte order
    bool may_hold_no_text = false;        ///< what it encodes may hold elements that are no text: see no_text_mark
};

/// Every codec that Tessera has. A new codec is a file in codecs/ with its row, and that row's name in codec_table.cpp.
[[nodiscard]] std::span<const CodecRow> codec_table();
/// By v3's name; nullptr for none.
[[nodiscard]] const CodecRow* find_codec(std::string_view name);

/// One codec from the program's short notation: "blosc:lz4:5:shuffle:16384" (compressor, level, noshuffle | shuffle |
/// bitshuffle, block size; trailing parts may be left out), "zstd:3", "gzip:6", "crc32c", "delta". Throws
/// invalid_argument that says what there is to choose from.
[[nodiscard]] CodecConfig parse_codec(std::string_view text);
/// A chain: such parts joined by ',' in the order in which they are applied ("delta,zstd:3"), "none" for no codec at
/// all, or v3's JSON list of codecs. What an array's elements need besides is put in by complete_codecs.
[[nodiscard]] std::vector<CodecConfig> parse_codecs(std::string_view text);
/// The notation back: "blosc:lz4:5:shuffle"; a codec without a notation of its own as JSON.
[[nodiscard]] std::string codec_text(const CodecConfig& codec);

/// The whole chain for chunks of `rank` dimensions of this dtype: what `chain` has, with what it may leave out put in:
/// the array→bytes codec ("bytes", "vlen-utf8", "vlen-bytes"), a "transpose" at the front for Order::F, and the members
/// of filters that follow from the dtype ("dtype" of delta, "elementsize" of shuffle).
[[nodiscard]] std::vector<CodecConfig> complete_codecs(const DType& dtype, int rank, Order order,
                                                       std::vector<CodecConfig> chain);

}  // namespace tessera
