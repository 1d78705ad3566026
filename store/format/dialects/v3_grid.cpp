#include "v3_grid.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <tessera/error_text.h>

#include "v3_types.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 2> v3_separators{".", "/"};

/// The lengths of chunks along one dimension: a number, or a list of numbers and [length, count].
ChunkEdges read_edges(const Value& v) {
    if (!v.is_array()) return ChunkEdges(read_number(v, 1, INT64_MAX));
    std::vector<ChunkEdges::Run> runs;
    for (const Value& item : v.as_array()) {
        if (!item.is_array()) {
            runs.push_back({read_number(item, 1, INT64_MAX), 1});
            continue;
        }
        if (item.as_array().size() != 2) throw corrupt("{} is no pair of a length and a count", excerpt(item));
        runs.push_back({read_number(item.as_array()[0], 1, INT64_MAX), read_number(item.as_array()[1], 1, INT64_MAX)});
    }
    return ChunkEdges(runs);
}

Value edges_json(const ChunkEdges& edges) {
    const std::vector<ChunkEdges::Run> runs = edges.runs();
    if (edges.endless()) return runs.front().length;
    Value list = Value::array();
    for (const ChunkEdges::Run& run : runs) {
        list.push_back(run.count == 1 ? Value(run.length) : Value(Value::Array{run.length, run.count}));
    }
    return list;
}

}  // namespace

/// Sets the chunks of an array whose shape is known.
void read_chunk_grid(const Value& v, ArrayMetadata& m) {
    const CodecConfig grid = codec_from_json(v);
    if (grid.name == "regular") {
        m.chunks = member(grid.configuration, "chunk_shape", [](const Value& shape) { return read_dims(shape, 1); });
        return;
    }
    if (grid.name != "rectilinear") {
        throw unsupported("the grid \"{}\" was found; there are \"regular\" and \"rectilinear\"", grid.name);
    }
    const Value* kind = grid.configuration.find("kind");
    if (kind == nullptr || *kind != Value("inline")) {
        throw unsupported("kind is {}, expected \"inline\"", kind != nullptr ? kind->dump() : "missing");
    }
    std::vector<ChunkEdges> edges = member(grid.configuration, "chunk_shapes", [&](const Value& shapes) {
        std::vector<ChunkEdges> all;
        for (const Value& along : shapes.as_array()) all.push_back(read_edges(along));
        return all;
    });
    if (std::cmp_not_equal(edges.size(), m.shape.rank())) {
        throw corrupt("chunk_shapes has {} dimensions, the array has {}", edges.size(), m.shape.rank());
    }
    set_edges(m, std::move(edges));
}

Value chunk_grid_json(const ArrayMetadata& m) {
    if (m.edges.empty()) return named_json("regular", "chunk_shape", dims_json(m.chunks));
    Value shapes = Value::array();
    for (const ChunkEdges& along : m.edges) shapes.push_back(edges_json(along));
    CodecConfig grid{"rectilinear"};
    grid.configuration.set("kind", "inline");
    grid.configuration.set("chunk_shapes", std::move(shapes));
    return codec_to_json(grid);
}

KeyScheme v3_keys() {
    return {.prefix = "c/", .separator = "/", .suffix = "", .zero_d = "c"};
}

KeyScheme read_key_encoding(const Value& v) {
    const CodecConfig encoding = codec_from_json(v);
    if (encoding.name != "default" && encoding.name != "v2") {
        throw unsupported("\"{}\" was found, expected \"default\" or \"v2\"", encoding.name);
    }
    const KeyScheme keys = encoding.name == "v2" ? v2_keys() : v3_keys();
    const Value* separator = encoding.configuration.find("separator");
    return separator == nullptr ? keys : keys.with_separator(read_choice(*separator, v3_separators));
}

Value key_encoding_json(const KeyScheme& keys) {
    for (const auto& [name, scheme] : {std::pair("default", v3_keys()), std::pair("v2", v2_keys())}) {
        for (const std::string_view separator : v3_separators) {
            if (keys == scheme.with_separator(separator)) return named_json(name, "separator", separator);
        }
    }
    throw unsupported("v3 cannot express chunk keys such as {}: they are c/0/0 or c.0.0, or 0.0 or 0/0",
                      keys.key({0, 0}));
}

}  // namespace tessera
