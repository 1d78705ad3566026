// CodecPipeline: the codecs of one array, chained and bound to one chunk's dtype, shape and fill.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tessera/codec.h>
#include <tessera/element_place.h>

namespace tessera {

/// Scratch memory of one thread's work, reused from chunk to chunk. Thread rule: one thread at a time.
struct CodecScratch {
    Buffer encoded;
    Buffer decoded;
    Buffer other;
    Buffer part;
    Buffer block;  ///< for codecs that decode block by block
};

/// Thread rule: immutable; const members may be called from several threads, each with its own scratch.
class CodecPipeline {
public:
    /// Makes and checks the chain. Throws invalid_argument (configuration, order of the kinds) or unsupported (a codec
    /// that Tessera lacks), naming the codec. An error in a member that only encoding needs is kept for
    /// require_encoder().
    CodecPipeline(ChunkSpec chunk, std::span<const CodecConfig> codecs);
    CodecPipeline(CodecPipeline&&) noexcept;
    CodecPipeline& operator=(CodecPipeline&&) noexcept;
    ~CodecPipeline();

    [[nodiscard]] const ChunkSpec& chunk() const;
    /// Throws if encoding is impossible: a member that only encoding needs is wrong (a level unknown to the
    /// compressor), or a codec only decodes. encode() and encode_part() throw the same.
    void require_encoder() const;

    /// Encodes a whole chunk (of the chunk shape, with any strides). The result lies in `scratch.encoded`, or is the
    /// chunk's own memory if that is how it is encoded.
    [[nodiscard]] ByteSpan encode(const ArrayView& chunk, CodecScratch& scratch) const;
    /// The same in memory of its own.
    [[nodiscard]] Buffer encoded(const ArrayView& chunk) const;
    /// Encodes the chunk stored as `encoded` (not in `scratch`) with new elements in the part `region`. Only the
    /// blocks that these touch are decoded and encoded. Returns nullopt if the chain or the frame cannot be partially
    /// encoded, or if encoding the whole chunk would give other bytes.
    [[nodiscard]] std::optional<ByteSpan> encode_part(ByteSpan encoded, const Region& region, const ArrayView& elements,
                                                      CodecScratch& scratch) const;
    /// Decodes a whole chunk into `out` (any strides): directly if `out` is packed, else through `scratch`. Errors are
    /// `corrupt` and name the codec stage.
    void decode(ByteSpan encoded, const MutableArrayView& out, CodecScratch& scratch) const;
    /// The number of bytes after the data of an encoded chunk. decode() ignores them, as the original programs do.
    [[nodiscard]] std::uint64_t trailing_bytes(ByteSpan encoded) const;
    /// Decodes the part `region` of a chunk into `out` (shape region.extent). With `steps`, the elements are that far
    /// apart along each dimension, from region.start on, and region.extent counts them. From a shard, only the needed
    /// inner chunks are read.
    void decode_part(const ByteSource& encoded, const Region& region, const MutableArrayView& out,
                     CodecScratch& scratch, const Dims& steps = {}) const;

    /// The bytes of an encoded chunk that decode_part() reads first; nullopt if it reads all of them anyway.
    [[nodiscard]] std::optional<ByteSource::Extent> first_read(const Region& part) const;
    /// The same of decode_elements(), for elements that lie from byte `begin` to byte `end` of the decoded chunk.
    [[nodiscard]] std::optional<ByteSource::Extent> first_read(std::uint64_t begin, std::uint64_t end) const;
    /// Bytes from one element to the next along each dimension of the chunk, once it is decoded. nullopt if filters
    /// compute the elements, if these have no fixed size, or if they cannot become `dtype` by swapping bytes.
    [[nodiscard]] std::optional<Strides> element_steps(const DType& dtype) const;
    /// The elements of an uncompressed chunk where its encoded bytes hold them, in the chunk's dtype and shape. nullopt
    /// if they are encoded in any way beside byte order and the order of dimensions.
    [[nodiscard]] std::optional<ArrayView> elements_in(ByteSpan encoded) const;
    /// Decodes single elements into elements of `dtype`. May sort `places`. Requires element_steps(). Of a codec with
    /// blocks only the needed ones are decoded.
    void decode_elements(const ByteSource& encoded, std::span<ElementPlace> places, const DType& dtype,
                         CodecScratch& scratch) const;

    /// The codec that reads and replaces single inner chunks of a shard. nullptr if a chunk is read and written as a
    /// whole; that includes a shard that is compressed again.
    [[nodiscard]] const ShardCodec* shard() const;

    /// The exact number of bytes of an encoded chunk; nullopt if it differs between chunks.
    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const;
    /// The largest number of bytes of an encoded chunk; nullopt if that depends on its content (variable-length
    /// elements).
    [[nodiscard]] std::optional<std::uint64_t> encoded_bound() const;
    /// The size of the largest encoded chunk that is read. It is well above the size that any writer produces. Files of
    /// absurd size are thus refused before memory is allocated for them.
    [[nodiscard]] std::uint64_t encoded_limit() const;
    /// Bytes of scratch per thread, for memory budgets: an estimate for elements of variable length, else the maximum.
    [[nodiscard]] std::uint64_t scratch_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
