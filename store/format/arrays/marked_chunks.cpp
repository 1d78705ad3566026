// Writing the dirty elements of chunks, as a cache holds them.
#include "marked_chunks.h"

#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <tessera/shard.h>
#include <optional>
#include <vector>

#include "element_mask.h"
#include "picked_part.h"
#include "shard_io.h"

namespace tessera {

namespace {

/// Part of write_marked. merged(chunk, stored) returns a chunk's new elements; stored() returns its stored ones.
template <class Merged>
void write_marked_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        const std::vector<MarkedChunk>& chunks, const Merged& merged, ChunkOutput& output,
                        const IoOptions& io) {
    ShardWriter writer = shard_writer(array, loaded, key, index, false, output);
    const ChunkGrid& grid = loaded.pipeline.shard()->grid();
    const Index first = first_unit(loaded, index);
    std::vector<const MarkedChunk*> marked(static_cast<std::size_t>(grid.chunk_count()));
    for (const MarkedChunk& chunk : chunks) {
        Index inner = chunk.index;
        for (int d = 0; d < inner.rank(); ++d) inner[d] -= first[d];
        marked[static_cast<std::size_t>(grid.linear(inner))] = &chunk;
    }
    writer.write(
        Region::whole(grid.grid()),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) -> std::optional<ArrayView> {
            const MarkedChunk* const chunk = marked[static_cast<std::size_t>(grid.linear(inner))];
            if (chunk == nullptr) return std::nullopt;
            return merged(*chunk, [&] { return memory(true); });
        },
        io);
    finish_shard(writer, output);
}

}  // namespace

void copy_marked(const ArrayView& from, const ElementMask& dirty_mask, const MutableArrayView& to) {
    const auto flat = [](auto view) {
        view.shape = {view.count()};
        view.strides = {view.dtype.size()};
        return view;
    };
    const auto source = flat(from);
    const auto target = flat(to);
    dirty_mask.for_each_run([&](std::int64_t begin, std::int64_t count) {
        const Region run{{begin}, {count}};
        copy_elements(source.part(run), target.part(run));
    });
}

void write_marked(const ArrayState& array, const LoadedArray& all, const Index& index,
                  const std::vector<MarkedChunk>& chunks, ChunkOutput& output, const IoOptions& io) {
    const auto own = all.of(index);
    const LoadedArray& loaded = *own;
    const std::string key = array.chunk_key(loaded, index);
    const auto merged = [&](const MarkedChunk& chunk, const auto& stored) -> ArrayView {
        if (chunk.dirty_mask == nullptr) return chunk.elements;
        const MutableArrayView memory = stored();
        copy_marked(chunk.elements, *chunk.dirty_mask, memory);
        const Region box = unit_grid(loaded).chunk_region(chunk.index);
        require_text(loaded, memory.part(Region::whole(box.extent)), box.start);
        return memory;
    };
    in_context([&] { return where(array, index, key); },
               [&] {
                   if (loaded.pipeline.shard() != nullptr) {
                       write_marked_shard(array, loaded, key, index, chunks, merged, output, io);
                       return;
                   }
                   ScratchPool::Loan scratch(array.scratch);
                   const ArrayView chunk = merged(chunks.front(), [&] {
                       const MutableArrayView memory = chunk_buffer(loaded, loaded.grid.chunks(), *scratch);
                       load_chunk(array, loaded, key, memory, *scratch);
                       return memory;
                   });
                   store_chunk(loaded, index, chunk, output, *scratch);
               });
}

}  // namespace tessera
