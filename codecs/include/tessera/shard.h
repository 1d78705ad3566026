// Shards: chunks that hold smaller chunks, with an index of where each lies (v3's codec "sharding_indexed").
//
// ShardCodec knows the layout; Shard is one that is open for reading; ShardWriter puts one together, from new inner
// chunks and from those of an old shard, which it copies as they are.
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
    /// The shape of what is decoded whole: of an inner chunk, or where that is a shard again, of one within it.
    [[nodiscard]] const Shape& innermost() const;

    /// As CodecPipeline's. A whole shard, index included, is at most encoded_bound() bytes.
    [[nodiscard]] std::optional<std::uint64_t> encoded_bound() const;
    [[nodiscard]] std::uint64_t scratch_bytes() const;

    /// Sets every element to the fill, zeros where that is undefined; `out` may have the other byte order.
    void fill(const MutableArrayView& out) const;
    /// Whether these elements may be left out of a shard: the fill is known and they all equal it bit for bit.
    [[nodiscard]] bool is_fill(const ArrayView& elements) const;

    /// The place in the index of the inner chunk with this index in grid().
    [[nodiscard]] std::size_t number(const Index& inner) const;
    /// The index of a shard. Throws corrupt for one that cannot be true: beyond the shard's end, or overlapping.
    [[nodiscard]] std::vector<Place> read_index(const ByteSource& shard) const;
    [[nodiscard]] Buffer encode_index(const std::vector<Place>& places) const;
    [[nodiscard]] std::uint64_t index_size() const { return index_size_; }
    [[nodiscard]] bool index_at_start() const { return index_at_start_; }

private:
    void require_places(const std::vector<Place>& places, std::uint64_t shard_size) const;
    [[nodiscard]] const std::byte* fill_element() const;

    ChunkSpec chunk_;
    Dims axes_;
    ChunkGrid numbers_;  ///< grid_ as the index counts it, its dimensions permuted by axes_
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
    /// Decodes the part `region` of an inner chunk into `out`; fills it where the chunk is absent. One ranged read.
    void read(const Index& inner, const Region& region, const MutableArrayView& out, CodecScratch& scratch) const;
    /// Calls each(i, encoded) for inner chunks by their numbers in C order of grid(), in parallel; `encoded` is nullptr
    /// where one is absent. Small ones that lie one behind the other are read at once.
    void for_each(std::span<const std::int64_t> chunks, const IoOptions& io,
                  const std::function<void(std::size_t i, const ByteSource* encoded)>& each) const;
    /// As above, with what for_each() gave for the chunk.
    void read(const Index& inner, const ByteSource* encoded, const Region& region, const MutableArrayView& out,
              CodecScratch& scratch) const;

    [[nodiscard]] const ByteSource& bytes() const { return *bytes_; }
    [[nodiscard]] const std::vector<ShardCodec::Place>& places() const { return places_; }

private:
    [[nodiscard]] std::unique_ptr<const ByteSource> encoded(const ShardCodec::Place& at) const;

    const ShardCodec& codec_;
    std::shared_ptr<const ByteSource> bytes_;
    std::vector<ShardCodec::Place> places_;
    MemoryHold held_;  ///< for these
};

/// Puts a shard together in a sink. Memory: a few inner chunks per thread and the index. The same bytes come out
/// whatever the number of threads. Thread rule: one thread at a time.
class ShardWriter {
public:
    /// Memory for one inner chunk, holding what the old shard has there, or (`keep` false) the fill.
    using ChunkMemory = std::function<MutableArrayView(bool keep)>;
    /// The new elements of an inner chunk (whole, of the array's dtype), or nothing to leave it as it is. Called from
    /// several threads at once; what it returns may lie in `memory`.
    using Edit = std::function<std::optional<ArrayView>(const Index& inner, const ChunkMemory& memory)>;

    /// `old`, unless nullptr: what is replaced. `inside` is the part of the shard that lies inside the array: an inner
    /// chunk in which only that part equals the fill is left out. `create` is called once there is something to write.
    ShardWriter(const ShardCodec& codec, std::unique_ptr<const Shard> old, const Region& inside,
                std::function<std::unique_ptr<ByteSink>()> create);
    ~ShardWriter();

    [[nodiscard]] const Shard* old() const { return old_.get(); }
    /// Edits the inner chunks of `box`, a region of the grid, and appends them. Throws invalid_argument for one that
    /// was edited before.
    void write(const Region& box, const Edit& edit, const IoOptions& io);
    /// Whether there would be no inner chunk in it at all.
    [[nodiscard]] bool empty() const;
    /// Copies what was not edited from the old shard, adds the index and finishes the sink.
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
    Buffer held_;  ///< what the index must precede, in a sink that is written in order
    bool hold_ = false;
    std::uint64_t end_ = 0;
    std::vector<ShardCodec::Place> places_;
    std::vector<bool> edited_;
    std::vector<Slot> slots_;
};

}  // namespace tessera
