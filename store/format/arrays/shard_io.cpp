#include "shard_io.h"

#include <tessera/error_text.h>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "region_io.h"

namespace tessera {

namespace {

/// A stored shard; nullptr if there is none.
std::unique_ptr<const Shard> open_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key) {
    auto source = array.store->open(key);
    return source ? std::make_unique<const Shard>(*loaded.pipeline.shard(), std::move(source)) : nullptr;
}

/// The inner chunks of a shard, which covers the region `shard` of the array, that the selection's bounds touch.
Region touched_inner(const LoadedArray& loaded, const Region& shard, const Selection& selection) {
    Region common = intersection(shard, selection.bounds());
    for (int d = 0; d < common.rank(); ++d) common.start[d] -= shard.start[d];
    return loaded.pipeline.shard()->grid().overlapping(common);
}

/// The region of the array that an inner chunk covers, cut at the array's edge; empty beyond it.
Region inner_box(const LoadedArray& loaded, const Region& shard, const Index& inner) {
    Region box = loaded.pipeline.shard()->grid().chunk_region(inner);
    for (int d = 0; d < box.rank(); ++d) {
        box.extent[d] = std::clamp<std::int64_t>(shard.extent[d] - box.start[d], 0, box.extent[d]);
        box.start[d] += shard.start[d];
    }
    return box;
}

/// Writes the requested elements of one shard, which covers the region `shard` of the array. `keeps`: inner chunks keep
/// what lies beyond the array's edge (see keeps_beyond_edge).
void edit_shard(const LoadedArray& loaded, const Region& shard, const Request<ArrayView>& request, bool keeps,
                ShardWriter& writer, const IoOptions& io) {
    const Shape& whole = loaded.pipeline.shard()->grid().chunks();
    writer.write(
        touched_inner(loaded, shard, request.selection),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) {
            const Region box = inner_box(loaded, shard, inner);
            if (!keeps) return edited(loaded, request, box, whole, memory);
            return edited(loaded, request, box, whole, [&](bool /*keep*/) { return memory(true); });
        },
        io);
}

}  // namespace

void read_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                const Picked& part, const Request<MutableArrayView>& request, const IoOptions& io) {
    const std::unique_ptr<const Shard> shard = open_shard(array, loaded, key);
    if (!shard) {
        read_absent(array, loaded, index, request.elements.part(part.in_request));
        return;
    }
    const ShardCodec& codec = *loaded.pipeline.shard();
    const Region place = loaded.grid.chunk_region(index);
    const Region touched = touched_inner(loaded, place, request.selection);
    const auto part_of = [&](const Index& inner) {
        return picked_from(request.selection, inner_box(loaded, place, inner));
    };
    std::vector<std::int64_t> chunks;
    for (std::int64_t n = 0; n < touched.count(); ++n) {
        const Index inner = index_in(touched, n);
        if (!part_of(inner).in_request.empty()) chunks.push_back(codec.grid().linear(inner));
    }
    shard->for_each(chunks, io, [&](std::size_t i, const ByteSource* encoded) {
        const Index inner = codec.grid().index(chunks[i]);
        ScratchPool::Loan scratch(array.scratch);
        const Picked own = part_of(inner);
        const Ascending ascending(request.selection, own, request.elements.part(own.in_request));
        shard->read(inner, encoded, ascending.region, ascending.out, scratch->codec, ascending.steps);
    });
}

ShardWriter shard_writer(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                         bool replaced, ChunkOutput& output) {
    const ShardCodec& codec = *loaded.pipeline.shard();
    return {codec, replaced ? nullptr : open_shard(array, loaded, key),
            Region::whole(loaded.grid.chunk_region(index).extent), [&output] { return output.create(); }};
}

void finish_shard(ShardWriter& writer, ChunkOutput& output) {
    if (writer.empty() && output.erase()) return;
    output.leave_out(writer);
    writer.finish();
}

void write_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 bool whole, const Request<ArrayView>& request, ChunkOutput& output, const IoOptions& io) {
    output.begin(index, key, !whole);
    ShardWriter writer = shard_writer(array, loaded, key, index, whole, output);
    edit_shard(loaded, loaded.grid.chunk_region(index), request, keeps_beyond_edge(array, loaded, index), writer, io);
    finish_shard(writer, output);
}

void clear_shard_beyond(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        ChunkOutput& output, const IoOptions& io) {
    ShardWriter writer = shard_writer(array, loaded, key, index, false, output);
    if (writer.old() == nullptr) return;
    const Region shard = loaded.grid.chunk_region(index);
    std::atomic<bool> changed = false;
    writer.write(
        Region::whole(loaded.pipeline.shard()->grid().grid()),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) -> std::optional<ArrayView> {
            const Region box = inner_box(loaded, shard, inner);
            const Shape& whole = loaded.pipeline.shard()->grid().chunks();
            if (box.extent == whole || !writer.old()->place(inner).present()) return std::nullopt;
            changed = true;
            const MutableArrayView chunk = memory(!box.empty());
            fill_beyond(loaded, box.extent, chunk);
            return chunk;
        },
        io);
    if (changed) finish_shard(writer, output);
}

void read_units(const ArrayState& array, const LoadedArray& all, const Index& chunk,
                std::span<const std::int64_t> inner, const IoOptions& io, const EachUnit& each) {
    const auto own = all.of(chunk);
    const LoadedArray& loaded = *own;
    const std::string key = array.chunk_key(loaded, chunk);
    in_context([&] { return where(array, chunk, key); },
               [&] {
                   const std::unique_ptr<const Shard> shard = open_shard(array, loaded, key);
                   const auto read = [&](std::size_t i, const ByteSource* encoded) {
                       const auto part = [&](const Region& region, const MutableArrayView& out,
                                             WorkerScratch& scratch) {
                           if (!shard) return read_absent(array, loaded, chunk, out);
                           const Index index = loaded.pipeline.shard()->grid().index(inner[i]);
                           shard->read(index, encoded, region, out, scratch.codec);
                           show_json(loaded, out);
                       };
                       each(i, part, encoded);
                   };
                   if (shard) return shard->for_each(inner, io, read);
                   for (std::size_t i = 0; i < inner.size(); ++i) read(i, nullptr);
               });
}

namespace {

/// See shard_sink().
class ShardSink final : public ArraySink {
public:
    ShardSink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded, const Region& region,
              const Index& index, StoreLock shape_lock)
        : array_(array),
          loaded_(std::move(loaded)),
          region_(region),
          index_(index),
          shard_(loaded_->grid.chunk_region(index)),
          key_(array.chunk_key(*loaded_, index)),
          shape_lock_(std::move(shape_lock)),
          whole_(region == shard_ && !keeps_beyond_edge(array, *loaded_, index)),
          notes_(array),
          output_(begun(array, *loaded_, index, key_, !whole_, notes_)),
          writer_(shard_writer(array, *loaded_, key_, index, whole_, output_)) {}

    [[nodiscard]] ArrayInfo info() const override {
        const Shape& chunks = loaded_->pipeline.shard()->grid().chunks();
        Index offset = region_.start;
        for (int d = 0; d < offset.rank(); ++d) offset[d] = (offset[d] - shard_.start[d]) % chunks[d];
        return {.dtype = loaded_->metadata.dtype, .shape = region_.extent, .chunks = chunks, .chunk_offset = offset};
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        in_context([&] { return where(array_, index_, key_); },
                   [&] {
                       tessera::require_inside(region, region_.extent);
                       const ArrayView elements = fitted(array_, *loaded_, in, region.extent);
                       if (region.empty()) return;
                       Region moved = region;
                       for (int d = 0; d < moved.rank(); ++d) moved.start[d] += region_.start[d];
                       edit_shard(*loaded_, shard_, {region_selection(moved), elements},
                                  keeps_beyond_edge(array_, *loaded_, index_), writer_, io);
                   });
    }
    void finish() override {
        in_context([&] { return where(array_, index_, key_); }, [&] { finish_shard(writer_, output_); });
    }
    [[nodiscard]] const std::string& name() const override { return array_.name; }

private:
    static ChunkOutput begun(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                             const std::string& key, bool keeps, ErasedNotes& notes) {
        ChunkOutput output(array, loaded, notes, nullptr);
        output.begin(index, key, keeps);
        return output;
    }

    const ArrayState& array_;
    std::shared_ptr<const LoadedArray> loaded_;
    Region region_;
    Index index_;
    Region shard_;
    std::string key_;
    StoreLock shape_lock_;
    bool whole_;
    ErasedNotes notes_;
    ChunkOutput output_;
    ShardWriter writer_;
};

/// A region of several shards, where they differ in length and blocks of one shape do not end with them.
class RegionSink final : public ArraySink {
public:
    RegionSink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded, const Region& region,
               StoreLock shape_lock)
        : array_(array), loaded_(std::move(loaded)), region_(region), shape_lock_(std::move(shape_lock)) {}

    [[nodiscard]] ArrayInfo info() const override {
        const Shape& chunks = unit_shape(*loaded_);
        Index offset = region_.start;
        for (int d = 0; d < offset.rank(); ++d) offset[d] %= chunks[d];
        return {.dtype = loaded_->metadata.dtype, .shape = region_.extent, .chunks = chunks, .chunk_offset = offset};
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        Region moved = region;
        for (int d = 0; d < moved.rank(); ++d) moved.start[d] += region_.start[d];
        write_region(array_, *loaded_, moved, in, io);
    }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return array_.name; }

private:
    const ArrayState& array_;
    std::shared_ptr<const LoadedArray> loaded_;
    Region region_;
    StoreLock shape_lock_;
};

}  // namespace

std::unique_ptr<ArraySink> shard_sink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded,
                                      const Region& region, StoreLock shape_lock) {
    require_inside(array, *loaded, region);
    const Region touched = loaded->grid.overlapping(region);
    if (!loaded->grid.regular() && loaded->pipeline.shard() != nullptr && touched.count() > 1) {
        return std::make_unique<RegionSink>(array, std::move(loaded), region, std::move(shape_lock));
    }
    if (loaded->pipeline.shard() == nullptr || region.empty() || touched.count() != 1) {
        throw invalid_argument("{}: region {} does not lie in one shard", array.name, region.to_string());
    }
    if (!loaded->grid.regular()) loaded = std::make_shared<const LoadedArray>(*loaded, touched.start);
    return std::make_unique<ShardSink>(array, std::move(loaded), region, touched.start, std::move(shape_lock));
}

}  // namespace tessera
