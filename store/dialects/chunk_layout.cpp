#include <tessera/chunk_layout.h>
#include <tessera/error_text.h>

#include <algorithm>

namespace tessera {

namespace {

ChunkLayout inner_layout(const ChunkLayout& outer) {
    const auto shard = std::ranges::find_if(outer.codecs, is_shard);
    if (shard == outer.codecs.end()) return outer;
    ChunkLayout inner{
        .chunks = outer.chunks, .shards = outer.shards.empty() ? outer.chunks : outer.shards, .codecs = {}};
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
    return inner_layout({.chunks = metadata.chunks, .shards = {}, .codecs = metadata.codecs});
}

void set_chunk_layout(ArrayMetadata& metadata, const ChunkLayout& layout) {
    if (layout.shards.empty()) {
        metadata.chunks = layout.chunks;
        metadata.codecs = layout.codecs;
        return;
    }
    bool fits = layout.shards.rank() == layout.chunks.rank();
    for (int d = 0; fits && d < layout.shards.rank(); ++d) {
        fits = layout.chunks[d] > 0 && layout.shards[d] > 0 && layout.shards[d] % layout.chunks[d] == 0;
    }
    if (!fits) {
        throw invalid_argument("shards {} must be a multiple of chunks {} along every dimension",
                               layout.shards.to_string(), layout.chunks.to_string());
    }
    metadata.codecs = {sharding_codec(layout.chunks, layout.codecs)};
    metadata.chunks = layout.shards;
}

}  // namespace tessera
