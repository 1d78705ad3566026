// Shards: chunks that hold smaller chunks and an index of their places (v3's codec "sharding_indexed").
//
// ShardCodec knows the layout. Shard is a shard open for reading. ShardWriter assembles a shard from new inner chunks
// and from inner chunks of an old shard, which it copies as stored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tessera/chunk_grid.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <tessera/pipeline.h>

namespace tessera {

/// Thread rule: as every codec.
class ShardCodec final : public ArrayToBytesCodec {
public:
    /// Where an inner chunk lies in its shard.
    struct Place {
        std::uint64_t offset = UINT64_MAX;
        std::uint64_t size = UINT64_MAX;
        [[nodiscard]] bool present() const { return offset != UINT64_MAX || size != UINT64_MAX; }
    };

    /// `axes` is the combined permutation of the preceding transposes in the chain, or empty. `chunk` is the input of
    /// the first of them. All regions, indices and views here refer to that untransposed chunk: only inner chunks are
    /// ever transposed. Throws invalid_argument and unsupported.
    ShardCodec(const Value& configuration, ChunkSpec chunk, const Dims& axes = {});

    void encode(const ArrayView& in, Buffer& out) const override;
    void decode(ByteSpan in, const MutableArrayView& out) const override;
    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }
    [[nodiscard]] const ShardCodec* shard() const override { return this; }

    /// Decodes the part `region` of a shard into `out` (shape region.extent), in the calling thread.
    void decode_part(const ByteSource& shard, const Region& region, const MutableArrayView& out,
                     CodecScratch& scratch) const;

    [[nodiscard]] const ChunkSpec& chunk() const { return chunk_; }  ///< of a whole shard
    [[nodiscard]] const ChunkGrid& grid() const { return grid_; }    ///< of the inner chunks over a shard
    [[nodiscard]] const CodecPipeline& inner() const { return inner_; }
    /// The shape of the unit that is decoded whole: an inner chunk, or, if inner chunks are shards too, a chunk in
    /// those.
    [[nodiscard]] const Shape& innermost() const;

    /// As CodecPipeline's. A whole shard, index included, is at most encoded_bound() bytes.
    [[nodiscard]] std::optional<std::uint64_t> encoded_bound() const;
    [[nodiscard]] std::uint64_t scratch_bytes() const;

    /// Sets every element to the fill, or to zero if that is undefined; `out` may have the other byte order.
    void fill(const MutableArrayView& out) const;
    /// Whether these elements may be left out of a shard: the fill is known and they all equal it bit for bit.
    [[nodiscard]] bool is_fill(const ArrayView& elements) const;

    /// The position in the shard's index of the inner chunk with this index in grid().
    [[nodiscard]] std::size_t number(const Index& inner) const;
    /// Reads the index of a shard. Throws corrupt if an entry overlaps another or lies outside the shard's data.
    [[nodiscard]] std::vector<Place> read_index(const ByteSource& shard) const;
    [[nodiscard]] Buffer encode_index(const std::vector<Place>& places) const;
    [[nodiscard]] std::uint64_t index_size() const { return index_size_; }
    [[nodiscard]] bool index_at_start() const { return index_at_start_; }

private:
    void require_places(const std::vector<Place>& places, std::uint64_t shard_size) const;
    [[nodiscard]] const std::byte* fill_element() const;

    ChunkSpec chunk_;
    Dims axes_;
    ChunkGrid numbers_;  ///< grid_ in the order of the shard's index: its dimensions permuted by axes_
    ChunkGrid grid_;
    CodecPipeline inner_;
    CodecPipeline index_;
    std::uint64_t index_size_ = 0;
    bool index_at_start_ = false;
    ElementBytes fill_;
    VariableSlot slot_;  ///< fill_ as an element of a variable-length dtype
};

/// One shard, open for reading. The whole index is read at once, in one piece. Thread rule: const members may be called
/// from several threads at once.
class Shard {
public:
    /// Reads and checks the index.
    Shard(const ShardCodec& codec, std::shared_ptr<const ByteSource> bytes);

    [[nodiscard]] const ShardCodec::Place& place(const Index& inner) const { return places_[codec_.number(inner)]; }
    /// Decodes the part `region` of an inner chunk into `out`; an absent chunk gives the fill. One ranged read.
    void read(const Index& inner, const Region& region, const MutableArrayView& out, CodecScratch& scratch) const;
    /// Calls each(i, encoded) in parallel for the inner chunks `chunks`, numbered in C order of grid(). `encoded` is
    /// nullptr for an absent chunk. Small adjacent chunks are read together.
    void for_each(std::span<const std::int64_t> chunks, const IoOptions& io,
                  const std::function<void(std::size_t i, const ByteSource* encoded)>& each) const;
    /// As read() above, from the `encoded` that for_each() passed for the chunk; `steps` as for decode_part().
    void read(const Index& inner, const ByteSource* encoded, const Region& region, const MutableArrayView& out,
              CodecScratch& scratch, const Dims& steps = {}) const;

    [[nodiscard]] const ByteSource& bytes() const { return *bytes_; }
    [[nodiscard]] const std::vector<ShardCodec::Place>& places() const { return places_; }

private:
    [[nodiscard]] std::unique_ptr<const ByteSource> encoded(const ShardCodec::Place& at) const;

    const ShardCodec& codec_;
    std::shared_ptr<const ByteSource> bytes_;
    std::vector<ShardCodec::Place> places_;
    MemoryHold held_;  ///< for places_
};

/// Writes a shard to a sink. Memory: a few inner chunks per thread and the index. The bytes do not depend on the number
/// of threads. Thread rule: one thread at a time.
class ShardWriter {
public:
    /// Memory for one inner chunk. It holds the old shard's elements, or the fill if `keep` is false.
    using ChunkMemory = std::function<MutableArrayView(bool keep)>;
    /// The new elements of an inner chunk (all of them, in the array's dtype), or nullopt to leave it unchanged. Called
    /// from several threads at once; the result may lie in `memory`.
    using Edit = std::function<std::optional<ArrayView>(const Index& inner, const ChunkMemory& memory)>;

    /// `old` is the shard to replace, or nullptr. `inside` is the part of the shard that lies inside the array. An
    /// inner chunk is omitted if it equals the fill within that part. `create` is called when there is something to
    /// write.
    ShardWriter(const ShardCodec& codec, std::unique_ptr<const Shard> old, const Region& inside,
                std::function<std::unique_ptr<ByteSink>()> create);
    ~ShardWriter();

    [[nodiscard]] const Shard* old() const { return old_.get(); }
    /// Edits the inner chunks of `box`, a region of the grid, and appends them. Throws invalid_argument if one was
    /// edited before.
    void write(const Region& box, const Edit& edit, const IoOptions& io);
    /// Whether the shard would hold no inner chunk.
    [[nodiscard]] bool empty() const;
    /// The inner chunks that were edited and are left out, numbered in C order of the grid; but those that the old
    /// shard has not either, if there is one.
    [[nodiscard]] std::vector<std::int64_t> dropped() const;
    /// Copies unedited inner chunks from the old shard, adds the index and finishes the sink.
    void finish();

private:
    struct Slot;
    void edit_slot(Slot& slot, const Edit& edit, const Index& inner) const;
    void append(ByteSpan bytes);
    void copy_old(const ShardCodec::Place& from, ShardCodec::Place& to);

    const ShardCodec& codec_;
    std::unique_ptr<const Shard> old_;
    Region inside_;
    std::function<std::unique_ptr<ByteSink>()> create_;
    std::unique_ptr<ByteSink> sink_;
    Buffer held_;  ///< chunks that must follow the index, if the sink is sequential
    bool hold_ = false;
    std::uint64_t end_ = 0;
    std::vector<ShardCodec::Place> places_;
    std::vector<bool> edited_;
    std::vector<Slot> slots_;
};

}  // namespace tessera
