// A dialect as one would add it: this file, and its name in store/dialects/dialect.cpp. `toy.json` holds everything,
// attributes too; chunks are `tiles/1.0`.
#include <algorithm>
#include <array>

#include "dialects.h"
#include "metadata_json.h"

namespace tessera {

namespace {

constexpr std::string_view document_name = "toy.json";
constexpr std::array<std::string_view, 1> document_keys{document_name};
constexpr std::array<std::string_view, 6> members{"attributes", "chunks", "codecs", "dtype", "fill", "shape"};

KeyScheme default_keys() {
    return {.prefix = "tiles/", .separator = ".", .suffix = "", .zero_d = "tiles/0"};
}

Value document_at(const KeyValueStore& store, std::string_view prefix) {
    return get_object(store, join_key(prefix, document_name)).value_or(Value::object());
}

ArrayMetadata parse(std::string_view document) {
    const Value meta = Value::parse(document);
    ArrayMetadata m;
    m.dtype = member(meta, "dtype", [](const Value& v) { return read_numpy_dtype(v, "toy"); });
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    m.chunks = member(meta, "chunks", [](const Value& v) { return read_dims(v, 1); });
    require_sizes(m);
    m.fill = member(meta, "fill", [&](const Value& v) { return read_plain_fill(m.dtype, v); });
    member(meta, "codecs", [&](const Value& v) {
        for (const Value& codec : v.as_array()) m.codecs.push_back(codec_from_json(codec));
        return 0;
    });
    m.keys = default_keys();
    m.unknown = unknown_members(meta, members);
    return m;
}

Value metadata_json(const ArrayMetadata& m) {
    require_numpy_dtype(m.dtype, "toy");
    require_sizes(m);
    require_keys(m, default_keys(), "toy");
    require_no_dimension_names(m, "toy");
    Value meta = m.unknown;
    Value codecs = Value::array();
    for (const CodecConfig& codec : m.codecs) codecs.push_back(codec_to_json(codec));
    meta.set("codecs", std::move(codecs));
    meta.set("dtype", m.dtype.descr());
    meta.set("shape", dims_json(m.shape));
    meta.set("chunks", dims_json(m.chunks));
    meta.set("fill", plain_fill_json("toy", m.dtype, m.fill));
    return meta;
}

bool probe(const KeyValueStore& store, std::string_view prefix) {
    return store.contains(join_key(prefix, document_name));
}

void require_expressible(const ArrayMetadata& metadata) {
    (void)metadata_json(metadata);
}

std::optional<Value> load_attributes(const KeyValueStore& store, std::string_view prefix) {
    const auto document = get_object(store, join_key(prefix, document_name));
    const Value* attributes = document ? document->find("attributes") : nullptr;
    return attributes == nullptr ? std::nullopt : std::optional(*attributes);
}

void save_attributes(KeyValueStore& store, std::string_view prefix, const Value& attributes) {
    Value document = document_at(store, prefix);
    document.set("attributes", attributes);
    put_object(store, join_key(prefix, document_name), document);
}

void save(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata, const Value* attributes) {
    Value json = metadata_json(metadata);
    const auto present = load_attributes(store, prefix);
    if (attributes != nullptr || present) json.set("attributes", attributes != nullptr ? *attributes : *present);
    put_object(store, join_key(prefix, document_name), json);
}

std::vector<std::string> remarks(const ArrayMetadata& /*metadata*/) {
    return {"No other program reads this."};
}

bool owns(const ArrayMetadata& /*metadata*/, std::string_view name) {
    return name == document_name || name == "tiles";
}

}  // namespace

extern constinit const Dialect toy_dialect{
    .name = "toy",
    .about = "a test's own (toy.json)",
    .metadata_key = document_name,
    .group_key = "",
    .probe = probe,
    .parse = parse,
    .save = save,
    .require_expressible = require_expressible,
    .probe_group = nullptr,
    .save_group = nullptr,
    .load_group_unknown = nullptr,
    .load_attributes = load_attributes,
    .save_attributes = save_attributes,
    .load_consolidated = nullptr,
    .save_consolidated = nullptr,
    .default_keys = default_keys,
    .default_fill = plain_default_fill,
    .remarks = remarks,
    .owns = owns,
    .documents = document_keys,
    .consolidated_key = "",
    .own_folder = true,
};

}  // namespace tessera
