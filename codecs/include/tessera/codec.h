// Codecs: the three kinds that a chunk goes through, in the terms of Zarr v3.
//
//   array → array   changes elements or their order (transpose, delta, …)
//   array → bytes   lays elements out as bytes (bytes, sharding, vlen-utf8, …); exactly one in a chain
//   bytes → bytes   compresses or checks bytes (blosc, zstd, crc32c, …)
//
// A codec is made from its configuration for one chunk's dtype, shape and fill, and is immutable from then on.
// Thread rule: every member function is const and may be called from several threads at once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

class ArrayToArrayCodec {
public:
    virtual ~ArrayToArrayCodec() = default;
    /// What `encode` makes of the spec that this codec was made for.
    [[nodiscard]] virtual const ChunkSpec& encoded() const = 0;
    [[nodiscard]] virtual NDArray encode(const ArrayView& in) const = 0;
    /// `out` has the shape and dtype that this codec was made for.
    virtual void decode(const ArrayView& in, const MutableArrayView& out) const = 0;
};

class ArrayToBytesCodec {
public:
    virtual ~ArrayToBytesCodec() = default;
    /// Appends nothing to `out` that was there: replaces it.
    virtual void encode(const ArrayView& in, Buffer& out) const = 0;
    virtual void decode(ByteSpan in, const MutableArrayView& out) const = 0;
    /// The exact number of bytes that encode makes, where every chunk has the same.
    [[nodiscard]] virtual std::optional<std::uint64_t> encoded_size() const = 0;
    /// Whether encoded bytes are the elements packed in C order, so that decoding may go straight into such memory.
    [[nodiscard]] virtual bool is_plain_memory() const { return false; }
};

class BytesToBytesCodec {
public:
    virtual ~BytesToBytesCodec() = default;
    virtual void encode(ByteSpan in, Buffer& out) const = 0;
    /// Decodes into exactly `out.size()` bytes; throws corrupt when `in` holds another number of bytes. Checks every
    /// size that `in` claims before it writes.
    virtual void decode(ByteSpan in, MutableByteSpan out) const = 0;
    /// Decodes what has no size known beforehand; throws corrupt when it is over `limit` bytes.
    virtual void decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const = 0;
    /// The most bytes that encoding `in_size` bytes can give.
    [[nodiscard]] virtual std::uint64_t encoded_bound(std::uint64_t in_size) const = 0;
};

/// One row of the table of codecs: exactly one of the three makers is set.
struct CodecRow {
    std::string_view name;   ///< v3's name, or "numcodecs.*"
    std::string_view about;  ///< one line for --help
    std::unique_ptr<ArrayToArrayCodec> (*array_to_array)(const Value& configuration, const ChunkSpec& in);
    std::unique_ptr<ArrayToBytesCodec> (*array_to_bytes)(const Value& configuration, const ChunkSpec& in);
    /// `item_size` is the dtype's, for codecs that shuffle.
    std::unique_ptr<BytesToBytesCodec> (*bytes_to_bytes)(const Value& configuration, std::int64_t item_size);
};

/// Every codec that Tessera has. A new codec is a file in codecs/ and a row here.
[[nodiscard]] std::span<const CodecRow> codec_table();

/// A codec chain from the program's short notation: "blosc:lz4:5:shuffle" (compressor, level, noshuffle | shuffle |
/// bitshuffle; trailing parts may be left out), for the last stage of a chain. Throws invalid_argument that says what
/// there is to choose from.
[[nodiscard]] CodecConfig parse_codec(std::string_view text);
/// The notation back: "blosc:lz4:5:shuffle".
[[nodiscard]] std::string codec_text(const CodecConfig& codec);

}  // namespace tessera
