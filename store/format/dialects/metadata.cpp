#include <tessera/dialect.h>

#include <tessera/error_text.h>

#include <algorithm>
#include <charconv>

namespace tessera {

std::string KeyScheme::key(const Index& chunk) const {
    if (chunk.empty()) return zero_d;
    std::string text = prefix;
    for (int d = 0; d < chunk.rank(); ++d) {
        if (d != 0) text += separator;
        text += std::to_string(chunk[d]);
    }
    return text += suffix;
}

std::optional<Index> KeyScheme::parse(std::string_view key, int rank) const {
    if (rank == 0) return key == zero_d ? std::optional(Index()) : std::nullopt;
    if (key.size() < prefix.size() + suffix.size() || !key.starts_with(prefix) || !key.ends_with(suffix)) return {};
    std::string_view rest = key.substr(prefix.size(), key.size() - prefix.size() - suffix.size());
    Index chunk;
    for (int d = 0; d < rank; ++d) {
        if (d != 0) {
            if (!rest.starts_with(separator)) return {};
            rest.remove_prefix(separator.size());
        }
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
        const auto length = static_cast<std::size_t>(end - rest.data());
        // key() never writes "007" or "-0", so they name no chunk.
        if (error != std::errc() || rest[0] == '-' || (rest[0] == '0' && length != 1)) return {};
        rest.remove_prefix(length);
        chunk.push_back(n);
    }
    return rest.empty() ? std::optional(chunk) : std::nullopt;
}

KeyScheme KeyScheme::with_separator(std::string_view other) const {
    if (other != "." && other != "/") {
        throw invalid_argument("separator \"{}\": between the indices of chunk keys stands . or /", other);
    }
    KeyScheme scheme = *this;
    // v3's prefix is "c" and the separator.
    if (prefix.size() > 1 && prefix.ends_with(separator) && suffix.empty()) {
        scheme.prefix.replace(prefix.size() - separator.size(), std::string::npos, other);
    }
    scheme.separator = other;
    return scheme;
}

ChunkGrid chunk_grid(const ArrayMetadata& metadata) {
    return metadata.edges.empty() ? ChunkGrid(metadata.shape, metadata.chunks)
                                  : ChunkGrid::of_edges(metadata.shape, metadata.edges);
}

void set_edges(ArrayMetadata& metadata, std::vector<ChunkEdges> edges) {
    metadata.edges = std::move(edges);
    if (!metadata.edges.empty()) metadata.chunks = chunk_grid(metadata).chunks();
}

CodecConfig sharding_codec(const Shape& chunks, std::vector<CodecConfig> codecs) {
    Value inner = Value::array();
    for (CodecConfig& codec : codecs) inner.push_back(codec_to_json(codec));
    CodecConfig little{"bytes"};
    little.configuration.set("endian", "little");
    CodecConfig shard{"sharding_indexed"};
    shard.configuration.set("chunk_shape", Value::Array(chunks.begin(), chunks.end()));
    shard.configuration.set("codecs", std::move(inner));
    shard.configuration.set("index_codecs", Value::Array{codec_to_json(little), codec_to_json({"crc32c"})});
    shard.configuration.set("index_location", "end");
    return shard;
}

Value dimension_names_json(std::span<const std::optional<std::string>> names) {
    Value list = Value::array();
    for (const auto& name : names) list.push_back(name ? Value(*name) : Value());
    return list;
}

void require_distinct_names(std::span<const std::optional<std::string>> names) {
    for (auto name = names.begin(); name != names.end(); ++name) {
        if (!*name || std::find(names.begin(), name, *name) == name) continue;
        throw invalid_argument(
            "two dimensions are named \"{0}\", and xarray tells dimensions apart by their names: give each its own, "
            "such as {0}1 and {0}2",
            **name);
    }
}

bool may_omit(const FillValue& fill) {
    return fill.bytes.has_value() && !fill.always_stored;
}

ElementBytes fill_element(const ArrayMetadata& metadata) {
    const FillValue& fill = metadata.fill;
    if (!fill.error.empty()) {
        throw invalid_argument(
            "the fill value {} cannot be used, and some of what is asked for was never "
            "written: {}",
            fill.spelling ? fill.spelling->dump() : "", fill.error);
    }
    return fill.bytes ? *fill.bytes : zero_element(metadata.dtype);
}

}  // namespace tessera
