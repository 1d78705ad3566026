// The three kinds of codecs that a chunk goes through, named as in Zarr v3.
//
//   array → array   changes elements or their order (transpose, delta, …)
//   array → bytes   lays elements out as bytes (bytes, sharding, vlen-utf8, …); exactly one in a chain
//   bytes → bytes   compresses or checks bytes (blosc, zstd, crc32c, …)
//
// A codec is made from its configuration for one chunk's dtype, shape and fill, and is immutable afterwards.
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
#include <tessera/row_function.h>
#include <tessera/value.h>
#include <tessera/view.h>

namespace tessera {

/// The type, shape and fill of a chunk at one place in the chain.
struct ChunkSpec {
    DType dtype;
    Shape shape;
    std::optional<ElementBytes> fill;  ///< nullopt if the fill is undefined
};

/// One codec as metadata names it: {"blosc", {"cname": "lz4", …}}, in v3's spelling of names and members.
struct CodecConfig {
    std::string name;
    Value configuration = Value::object();
    friend bool operator==(const CodecConfig&, const CodecConfig&) = default;
};

/// {"name": …, "configuration": …} as in v3 metadata; an empty configuration is omitted. codec_from_json also accepts a
/// bare string as a name, and throws invalid_argument for anything else.
[[nodiscard]] Value codec_to_json(const CodecConfig& codec);
[[nodiscard]] CodecConfig codec_from_json(const Value& json);

class ArrayToArrayCodec {
public:
    virtual ~ArrayToArrayCodec() = default;
    /// The spec of the encoded chunk.
    [[nodiscard]] virtual const ChunkSpec& encoded() const = 0;
    [[nodiscard]] virtual NDArray encode(const ArrayView& in) const = 0;
    /// `out` has the shape and dtype that this codec was made for.
    virtual void decode(const ArrayView& in, const MutableArrayView& out) const = 0;
    /// For codecs that only reorder dimensions: output dimension k is input dimension (*axes())[k]. Such a codec is
    /// applied to views and moves nothing. nullptr for every other codec.
    [[nodiscard]] virtual const Dims* axes() const { return nullptr; }
};

class ShardCodec;

class ArrayToBytesCodec {
public:
    virtual ~ArrayToBytesCodec() = default;
    /// Replaces the contents of `out`.
    virtual void encode(const ArrayView& in, Buffer& out) const = 0;
    virtual void decode(ByteSpan in, const MutableArrayView& out) const = 0;
    /// The same; may take over the memory of `in`, for variable-length elements to point to.
    virtual void decode_owned(Buffer& in, const MutableArrayView& out) const { decode(in, out); }
    /// The exact number of bytes that encode produces; nullopt if it differs between chunks.
    [[nodiscard]] virtual std::optional<std::uint64_t> encoded_size() const = 0;
    /// If the encoded bytes are elements packed in C order, their dtype, byte order included; decoding may then write
    /// straight into such memory. Else nullptr.
    [[nodiscard]] virtual const DType* memory_dtype() const { return nullptr; }
    /// This codec as a ShardCodec, if its bytes hold smaller chunks that are read and replaced one by one; else
    /// nullptr.
    [[nodiscard]] virtual const ShardCodec* shard() const { return nullptr; }
};

class ByteRuns;
struct CodecScratch;

class BytesToBytesCodec {
public:
    virtual ~BytesToBytesCodec() = default;
    virtual void encode(ByteSpan in, Buffer& out) const = 0;
    /// Decodes into exactly `out.size()` bytes; throws corrupt if `in` decodes to a different number. Checks every size
    /// that `in` claims before it writes.
    virtual void decode(ByteSpan in, MutableByteSpan out) const = 0;
    /// Decodes data of unknown decoded size. Returns false if that exceeds `limit` bytes.
    [[nodiscard]] virtual bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const = 0;
    /// The number of bytes at the end of `in` that decoding ignores; 0 for a codec that refuses such bytes. `in`
    /// decodes to `decoded_size` bytes, or to at most that many. Throws corrupt.
    [[nodiscard]] virtual std::uint64_t trailing_bytes(ByteSpan /*in*/, std::uint64_t /*decoded_size*/) const {
        return 0;
    }
    /// For block codecs: decodes only the blocks that `runs` touch, straight to their destinations, and reads no more
    /// of `in` than needed. `decoded_size` is the size of all blocks. Returns false if the codec or the bytes have no
    /// blocks, or if the bytes are damaged; call decode() for the error. The destinations are then indeterminate.
    [[nodiscard]] virtual bool decode_runs(const ByteSource& /*in*/, std::uint64_t /*decoded_size*/,
                                           const ByteRuns& /*runs*/, CodecScratch& /*scratch*/) const {
        return false;
    }
    /// For block codecs: re-encodes only the blocks that `runs` touch, with the new bytes, and copies the other blocks
    /// from `in`. Returns false if the codec cannot do this, or if encoding all `decoded_size` bytes would give another
    /// result; `out` is then indeterminate.
    [[nodiscard]] virtual bool encode_runs(ByteSpan /*in*/, std::uint64_t /*decoded_size*/, const ByteRuns& /*runs*/,
                                           CodecScratch& /*scratch*/, Buffer& /*out*/) const {
        return false;
    }
    /// The largest number of bytes that encoding `in_size` bytes can produce.
    [[nodiscard]] virtual std::uint64_t encoded_bound(std::uint64_t in_size) const = 0;
    /// Whether every encoding has exactly encoded_bound() bytes (checksums), as the index of a shard requires.
    [[nodiscard]] virtual bool fixed_size() const { return false; }
};

/// One part of a codec's short notation, in order: the member of the configuration that it sets.
struct CodecPart {
    enum class Type : std::uint8_t { whole, number, text, flag };
    std::string_view member;
    Type type;
    std::string_view otherwise = {};  ///< the default as JSON; empty: the member is omitted
    bool required = false;
};

/// One row of the table of codecs. Exactly one of the three makers is set.
struct CodecRow {
    std::string_view name;   ///< v3's name, or "numcodecs.*"
    std::string_view about;  ///< one line for --help
    RowFunction<std::unique_ptr<ArrayToArrayCodec>(const Value& configuration, const ChunkSpec& in)> array_to_array =
        {};
    RowFunction<std::unique_ptr<ArrayToBytesCodec>(const Value& configuration, const ChunkSpec& in)> array_to_bytes =
        {};
    /// `item_size` is the dtype's, for codecs that shuffle.
    RowFunction<std::unique_ptr<BytesToBytesCodec>(const Value& configuration, std::int64_t item_size)> bytes_to_bytes =
        {};

    std::span<const CodecPart> parts = {};  ///< of the short notation, after the name
    bool short_notation = true;             ///< false: the configuration is given as JSON only
    /// Adds members that may be omitted because the dtype of the codec's input determines them.
    void (*complete)(Value& configuration, const DType& dtype) = nullptr;
    bool compressor = false;              ///< v2's `compressor` may hold it; conversions may choose another
    bool self_describing = false;         ///< decodes its own encodings, whatever its configuration
    bool numcodecs = false;               ///< numcodecs has it under this name; "numcodecs.NAME" implies that
    Kind objects = Kind::object;          ///< the kind of |O elements in v2 that it encodes; Kind::object: none
    std::string_view decoded_dtype = {};  ///< the member that holds its decoded dtype
    bool keeps_dtype = false;             ///< encodes to the dtype of its input, in either byte order
    bool shard = false;                   ///< its chunks are shards, which hold smaller ones
    bool may_hold_no_text = false;        ///< its elements may be other than text: see no_text_mark
    std::string_view items = {};          ///< the member that holds the items' dtype, of sequences that are bytes
    bool only_decodes = false;            ///< its chunks are read, but not written
    /// The members that only encoding needs, as a JSON object with values that are right for every input. Chunks are
    /// decoded whatever an array's metadata say in these members.
    std::string_view encoding_only = {};
};

/// Every codec of Tessera, and those that the program added. The first call ends add_codec().
[[nodiscard]] std::span<const CodecRow> codec_table();
/// Adds a codec of a program's own to the table, for the whole process. Call it at the start: once an array was opened
/// or created, the table stays as it is, and this throws invalid_argument. So does a name that is taken. Everything the
/// row points to must stay valid until the process ends. Its codecs follow the rules of this header, and report
/// failures as Error. Any thread.
void add_codec(const CodecRow& row);
/// By v3's name; nullptr if there is none.
[[nodiscard]] const CodecRow* find_codec(std::string_view name);
/// If elements of variable-length bytes are sequences ("numcodecs.vlen-array"): the dtype of their items. Throws
/// invalid_argument.
[[nodiscard]] std::optional<DType> sequence_items(std::span<const CodecConfig> codecs);
/// Whether the codec's chunks hold smaller ones, with the configuration's "chunk_shape" and "codecs".
[[nodiscard]] bool is_shard(const CodecConfig& codec);
/// The configuration with the members that only encoding needs as in `encoding_only`.
[[nodiscard]] Value decoding_configuration(const CodecRow& row, Value configuration);

/// One codec from the program's short notation: "blosc:lz4:5:shuffle:16384" (compressor, level, noshuffle | shuffle |
/// bitshuffle, block size; trailing parts may be omitted), "zstd:3", "gzip:6", "crc32c", "delta". Throws
/// invalid_argument, listing the choices.
[[nodiscard]] CodecConfig parse_codec(std::string_view text);
/// A chain: such parts joined by ',' in the order in which they are applied ("delta,zstd:3"), "none" for no codec at
/// all, or v3's JSON list of codecs. complete_codecs adds what the array's elements need.
[[nodiscard]] std::vector<CodecConfig> parse_codecs(std::string_view text);
/// The short notation of a codec: "blosc:lz4:5:shuffle". JSON if the notation cannot express it.
[[nodiscard]] std::string codec_text(const CodecConfig& codec);

/// The whole chain for chunks of `rank` dimensions of this dtype: `chain` plus the parts that it omits. These are the
/// array→bytes codec ("bytes", "vlen-utf8", "vlen-bytes"), a "transpose" at the front for Order::F, and the members of
/// filters that follow from the dtype ("dtype" of delta, "elementsize" of shuffle).
[[nodiscard]] std::vector<CodecConfig> complete_codecs(const DType& dtype, int rank, Order order,
                                                       std::vector<CodecConfig> chain);

}  // namespace tessera
