// A dialect as one would add it: this file, and its name in store/format/dialects/dialects.cpp. `toy.json` holds
// everything, attributes too; chunks are `tiles/1.0`.
#include <algorithm>
#include <array>

#include "dialects.h"
#include "metadata_json.h"

namespace tessera {

namespace {

constexpr std::string_view document_name = "toy.json";
constexpr std::array<std::string_view, 1> document_keys{document_name};
constexpr std::array<std::string_view, 6> members{"attributes", "chunks", "codecs", "dtype", "fill", "shape"};

KeyScheme toy_keys() {
    return {.prefix = "tiles/", .separator = ".", .suffix = "", .zero_d = "tiles/0"};
}

Value document_at(const PlaceView& place) {
    return get_object(place.store, place.key(document_name)).value_or(Value::object());
}

ArrayMetadata parse_metadata(std::string_view document) {
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
    m.keys = toy_keys();
    m.unknown = unknown_members(meta, members);
    return m;
}

Value metadata_json(const ArrayMetadata& m) {
    require_numpy_dtype(m.dtype, "toy");
    require_sizes(m);
    require_keys(m, toy_keys(), "toy");
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

struct Toy final : Dialect {
    constexpr Toy()
        : Dialect({.name = "toy",
                   .about = "a test's own (toy.json)",
                   .metadata_key = document_name,
                   .documents = document_keys,
                   .own_folder = true}) {}

    ArrayMetadata parse(std::string_view text) const override { return parse_metadata(text); }
    Value document(const ArrayMetadata& m) const override { return metadata_json(m); }
    void save(const PlaceRef& place, const ArrayMetadata& m, const Value* attributes) const override {
        Value json = metadata_json(m);
        const auto present = load_attributes(place);
        if (attributes != nullptr || present) json.set("attributes", attributes != nullptr ? *attributes : *present);
        put_object(place.store, place.key(document_name), json);
    }
    std::optional<Value> load_attributes(const PlaceView& place) const override {
        const auto json = get_object(place.store, place.key(document_name));
        const Value* attributes = json ? json->find("attributes") : nullptr;
        return attributes == nullptr ? std::nullopt : std::optional(*attributes);
    }
    void save_attributes(const PlaceRef& place, const Value& attributes) const override {
        Value json = document_at(place);
        json.set("attributes", attributes);
        put_object(place.store, place.key(document_name), json);
    }
    KeyScheme default_keys() const override { return toy_keys(); }
    FillValue default_fill(const DType& dtype) const override { return plain_default_fill(dtype); }
    std::vector<std::string> remarks(const ArrayMetadata& /*m*/) const override {
        return {"No other program reads this."};
    }
};

constexpr Toy toy;

}  // namespace

constinit const Dialect& toy_dialect = toy;

}  // namespace tessera
