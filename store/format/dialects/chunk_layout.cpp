#include <tessera/chunk_layout.h>
#include <tessera/error_text.h>

#include <algorithm>

namespace tessera {

namespace {

ChunkLayout inner_layout(const ChunkLayout& outer) {
    const auto shard = std::ranges::find_if(outer.codecs, is_shard);
    if (shard == outer.codecs.end()) return outer;
    ChunkLayout inner{.chunks = outer.chunks,
                      .shards = outer.shards.empty() ? outer.chunks : outer.shards,
                      .codecs = {},
                      .edges = outer.edges};
    Shape shape;
    for (const Value& length : shard->configuration.at("chunk_shape").as_array()) shape.push_back(length.as_int64());
    // The shape of inner chunks refers to the output of the preceding transposes.
    for (auto codec = shard; codec != outer.codecs.begin();) {
        --codec;
        if (codec->name != "transpose") continue;
        const Value::Array& order = codec->configuration.at("order").as_array();
        const Shape after = shape;
        for (int k = 0; k < after.rank(); ++k)
            shape[static_cast<int>(order.at(static_cast<std::size_t>(k)).as_int64())] = after[k];
    }
    inner.chunks = shape;
    inner.codecs.assign(outer.codecs.begin(), shard);
    for (const Value& codec : shard->configuration.at("codecs").as_array())
        inner.codecs.push_back(codec_from_json(codec));
    return inner_layout(inner);
}

}  // namespace

ChunkLayout chunk_layout(const ArrayMetadata& metadata) {
    return inner_layout({.chunks = metadata.chunks, .shards = {}, .codecs = metadata.codecs, .edges = metadata.edges});
}

void require_whole_chunks(std::span<const ChunkEdges> shards, const Shape& chunks) {
    for (std::size_t d = 0; d < shards.size(); ++d) {
        for (const ChunkEdges::Run& run : shards[d].runs()) {
            const std::int64_t length = chunks[static_cast<int>(d)];
            if (length > 0 && run.length % length == 0) continue;
            throw invalid_argument("a shard of length {} along dimension {} is no multiple of the chunks' length {}",
                                   run.length, d, length);
        }
    }
}

void set_lengths(ChunkLayout& layout, const Shape& shape, const std::optional<Shape>& chunks,
                 const std::optional<std::vector<ChunkEdges>>& edges, const std::optional<Shape>& shards,
                 const std::optional<std::vector<ChunkEdges>>& shard_edges) {
    if (chunks && edges) throw invalid_argument("chunks of one shape and chunks that differ in length were given");
    if (shards && shard_edges)
        throw invalid_argument("shards of one shape and shards that differ in length were given");
    if (edges && (shard_edges || (shards && !shards->empty()))) {
        throw invalid_argument(
            "chunks that differ in length were given for shards: the chunks in shards have one shape");
    }
    if (edges) {
        layout = {.chunks = ChunkGrid::of_edges(shape, *edges).chunks(),
                  .shards = {},
                  .codecs = layout.codecs,
                  .edges = *edges};
        return;
    }
    if (chunks) layout.chunks = *chunks;
    if (chunks && layout.shards.empty()) layout.edges.clear();
    if (shards) layout.shards = *shards;
    if (shards) layout.edges.clear();
    if (!shard_edges) return;
    layout.shards = ChunkGrid::of_edges(shape, *shard_edges).chunks();
    layout.edges = *shard_edges;
}

void set_chunk_layout(ArrayMetadata& metadata, const ChunkLayout& layout) {
    if (layout.shards.empty()) {
        metadata.chunks = layout.chunks;
        metadata.codecs = layout.codecs;
        set_edges(metadata, layout.edges);
        return;
    }
    bool fits = layout.shards.rank() == layout.chunks.rank();
    if (fits) require_whole_chunks(layout.edges, layout.chunks);
    for (int d = 0; fits && d < layout.shards.rank(); ++d) {
        fits = layout.chunks[d] > 0 && layout.shards[d] > 0 && layout.shards[d] % layout.chunks[d] == 0;
    }
    if (!fits) {
        throw invalid_argument("shards {} must be a multiple of chunks {} along every dimension",
                               layout.shards.to_string(), layout.chunks.to_string());
    }
    metadata.codecs = {sharding_codec(layout.chunks, layout.codecs)};
    metadata.chunks = layout.shards;
    set_edges(metadata, layout.edges);
}

}  // namespace tessera
