// CodecPipeline: the codecs of one array, chained and bound to one chunk's dtype, shape and fill.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tessera/codec.h>

namespace tessera {

/// Scratch memory of one thread's work, reused from chunk to chunk. Thread rule: one thread at a time.
struct CodecScratch {
    Buffer encoded;
    Buffer decoded;
    Buffer other;
    Buffer part;
    Buffer block;  ///< of a codec that decodes block by block
};

/// Thread rule: immutable; const members may be called from several threads, each with its own scratch.
class CodecPipeline {
public:
    /// Makes and checks the chain. Throws invalid_argument (configuration, order of the kinds) or unsupported (a codec
    /// that Tessera lacks), naming the codec.
    CodecPipeline(ChunkSpec chunk, std::span<const CodecConfig> codecs);
    CodecPipeline(CodecPipeline&&) noexcept;
    CodecPipeline& operator=(CodecPipeline&&) noexcept;
    ~CodecPipeline();

    [[nodiscard]] const ChunkSpec& chunk() const;

    /// Encodes a whole chunk (shape of the chunk, any strides) into `scratch.encoded`, and returns that.
    [[nodiscard]] ByteSpan encode(const ArrayView& chunk, CodecScratch& scratch) const;
    /// The same for a chunk that is stored as `encoded` (not in `scratch`) and gets new elements in the part `region`:
    /// only the blocks that these touch are decoded and encoded. Returns nullopt if the chain or the frame cannot be
    /// partially encoded, or if encoding the whole chunk would give other bytes.
    [[nodiscard]] std::optional<ByteSpan> encode_part(ByteSpan encoded, const Region& region, const ArrayView& elements,
                                                      CodecScratch& scratch) const;
    /// Decodes a whole chunk into `out` (any strides): straight into its memory where it is packed, else by way of
    /// `scratch`. Errors are `corrupt` and name the codec stage.
    void decode(ByteSpan encoded, const MutableArrayView& out, CodecScratch& scratch) const;
    /// How many bytes at the end of an encoded chunk follow its data: decode() ignores them, as the original programs
    /// do.
    [[nodiscard]] std::uint64_t trailing_bytes(ByteSpan encoded) const;
    /// Decodes the part `region` of a chunk into `out` (shape region.extent). Of a shard, only the inner chunks needed
    /// are read.
    void decode_part(const ByteSource& encoded, const Region& region, const MutableArrayView& out,
                     CodecScratch& scratch) const;

    /// Where chunks are shards whose inner chunks can be read and replaced one by one: what does so. nullptr where a
    /// chunk is read and written as a whole, also for a shard that is compressed once more.
    [[nodiscard]] const ShardCodec* shard() const;

    /// The exact number of bytes of an encoded chunk, where every chunk has the same.
    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const;
    /// The most bytes that a chunk encodes to; none where that depends on its content (variable-length elements).
    [[nodiscard]] std::optional<std::uint64_t> encoded_bound() const;
    /// The most bytes that an encoded chunk is read for: generously more than any writer makes of one, so that a file
    /// of absurd size is refused before memory is taken for it.
    [[nodiscard]] std::uint64_t encoded_limit() const;
    /// Bytes of scratch that one thread needs: what a memory budget counts per thread. An estimate where elements have
    /// variable length, else the most.
    [[nodiscard]] std::uint64_t scratch_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
