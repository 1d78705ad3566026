// The dialect of zarr-python 1.0 and 1.1: `meta`, `attrs` (always there) and chunks `1.0` in one flat folder.
//
// A pitfall: only blosc honoured order F. With every other compressor the bytes are C-ordered although `meta` says F.
// So F becomes a transpose only with blosc; otherwise it is kept as a spelling without effect.
#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>

#include "dialects.h"
#include "metadata_json.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 2> document_keys{v1_metadata_name, v1_attributes_name};
constexpr std::array<std::string_view, 8> members{"chunks", "compression", "compression_opts", "dtype", "fill_value",
                                                  "order",  "shape",       "zarr_format"};
constexpr std::array<std::string_view, 6> compressions{"none", "zlib", "gzip", "bz2", "lzma", "blosc"};
constexpr std::array<std::string_view, 2> orders{"C", "F"};

// ---- reading

/// The compressor; nullopt for "none".
std::optional<CodecConfig> read_compressor(const Value& meta) {
    const std::string name = member(meta, "compression", [](const Value& v) { return read_choice(v, compressions); });
    return member(meta, "compression_opts", [&](const Value& v) -> std::optional<CodecConfig> {
        if (name == "none") return {};
        if (name == "blosc") return read_numbered_blosc(v);
        // zarr 1 wrote zlib's format under either name.
        CodecConfig codec{"numcodecs." + (name == "gzip" ? "zlib" : name)};
        if (name == "lzma") {
            (void)v.as_object();
            codec.configuration = v;
        } else {
            codec.configuration.set("level", read_number(v, name == "bz2" ? 1 : 0, 9));
        }
        return codec;
    });
}

ArrayMetadata parse_metadata(const Value& meta) {
    require_format(meta, 1);
    ArrayMetadata m;
    m.dtype = member(meta, "dtype", [](const Value& v) { return read_numpy_dtype(v, "v1"); });
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    m.chunks = member(meta, "chunks", [](const Value& v) { return read_dims(v, 1); });
    require_sizes(m);
    m.fill = member(meta, "fill_value", [&](const Value& v) { return read_plain_fill(m.dtype, v); });
    const auto compressor = read_compressor(meta);
    if (member(meta, "order", [](const Value& v) { return read_choice(v, orders); }) == "F") {
        if (compressor && compressor->name == "blosc" && m.shape.rank() > 1) {
            m.codecs.push_back(reversal(m.shape.rank()));
        } else {
            m.spelling.set("order", "F");
        }
    }
    m.codecs.push_back({"bytes"});
    if (compressor) m.codecs.push_back(*compressor);
    m.keys = v2_keys();
    m.unknown = unknown_members(meta, members);
    return m;
}

// ---- writing

/// compression and compression_opts; throws unsupported for a codec that zarr 1 lacked.
std::pair<Value, Value> compressor_json(const CodecConfig& codec, const DType& dtype) {
    const Value& configuration = codec.configuration;
    if (codec.name == "blosc") return {"blosc", numbered_blosc_json(codec, dtype, "v1")};
    for (const std::string_view name : {"zlib", "bz2"}) {
        if (codec.name != fmt::format("numcodecs.{}", name)) continue;
        const Value* level = configuration.find("level");
        return {name, level ? *level : Value(1)};
    }
    if (codec.name == "numcodecs.lzma") {
        Value options = Value::object();
        for (const auto& [name, otherwise] : std::initializer_list<std::pair<std::string_view, Value>>{
                 {"check", -1}, {"filters", nullptr}, {"format", 1}, {"preset", nullptr}}) {
            const Value* v = configuration.find(name);
            options.set(name, v ? *v : otherwise);
        }
        return {"lzma", options};
    }
    throw unsupported("v1 cannot express the codec {}: it has blosc, zlib, bz2, lzma or none", codec.name);
}

/// The compressor, null if there is none, and whether the order is F. Throws for codecs that v1 cannot express.
std::pair<const CodecConfig*, bool> compressor_of(const ArrayMetadata& m) {
    std::span<const CodecConfig> chain = m.codecs;
    const bool reversed = !chain.empty() && chain.front() == reversal(m.shape.rank());
    if (reversed) chain = chain.subspan(1);
    if (chain.empty() || chain.size() > 2 || chain.front().name != "bytes") {
        throw unsupported(
            "v1 cannot express the codecs {}: they must be [bytes] and at most one compressor, for order F [transpose] "
            "(all dimensions reversed) before them",
            chain_text(m.codecs));
    }
    const CodecConfig* const compressor = chain.size() == 2 ? &chain.back() : nullptr;
    if (reversed && (compressor == nullptr || compressor->name != "blosc")) {
        throw unsupported(
            "v1 cannot express order F with the codecs {}: zarr 1 read and wrote it with blosc only, and C order with "
            "all else",
            chain_text(m.codecs));
    }
    return {compressor, reversed};
}

/// The content of `meta`; throws for metadata that it cannot express.
Value metadata_json(const ArrayMetadata& m) {
    require_numpy_dtype(m.dtype, "v1");
    require_sizes(m);
    if (m.shape.rank() == 0) {
        throw unsupported("v1 cannot store an array without dimensions: the key of its chunk would be empty");
    }
    require_keys(m, v2_keys(), "v1");
    require_no_dimension_names(m, "v1");
    require_one_chunk_shape(m, "v1");

    const auto [compressor, reversed] = compressor_of(m);
    const bool blosc = compressor != nullptr && compressor->name == "blosc";
    // An F without effect is kept.
    const bool spelt_f = m.spelling.find("order") != nullptr && (!blosc || m.shape.rank() < 2);

    Value meta = m.unknown;
    auto [compression, options] =
        compressor != nullptr ? compressor_json(*compressor, m.dtype) : std::pair<Value, Value>("none", nullptr);
    meta.set("chunks", dims_json(m.chunks));
    meta.set("compression", std::move(compression));
    meta.set("compression_opts", std::move(options));
    meta.set("dtype", m.dtype.descr());
    meta.set("fill_value", plain_fill_json("v1", m.dtype, m.fill));
    meta.set("order", reversed || spelt_f ? "F" : "C");
    meta.set("shape", dims_json(m.shape));
    meta.set("zarr_format", 1);
    return meta;
}

std::vector<std::string> what_zarr_1_cannot(const ArrayMetadata& m) {
    std::vector<std::string> said;
    if (m.shape.rank() == 0) said.emplace_back("zarr 1 could not write arrays without dimensions.");
    if (any_field(m.dtype, [](const Field& f) { return f.shape.rank() != 0; })) {
        said.emplace_back("zarr 1 could not open structures with sub-array fields.");
    }
    if (std::ranges::count(m.shape, 0) != 0) said.emplace_back("zarr 1 fails at arrays with a length of 0.");
    if (m.spelling.find("order") != nullptr && m.shape.rank() > 1) {
        said.emplace_back("The chunks are in C order although the metadata say F, as zarr 1 wrote them.");
    }
    const Value* cname = m.codecs.back().configuration.find("cname");
    if (cname != nullptr && *cname == Value("zstd")) {
        said.emplace_back(
            "zarr 1 cannot read chunks compressed with zstd, except those that zarr 1.1 wrote itself: its zstd 0.7 "
            "does "
            "not know today's frames.");
    }
    return said;
}

struct V1 final : Dialect {
    constexpr V1()
        : Dialect({.name = "v1",
                   .about = "zarr-python 1 (meta, attrs)",
                   .metadata_key = v1_metadata_name,
                   .cannot_read_zstd = "zarr 1",
                   .documents = document_keys,
                   .common_key = true}) {}

    /// `meta` alone is too common a name.
    bool probe(const PlaceView& place) const override {
        return Dialect::probe(place) && place.store.contains(place.key(v1_attributes_name));
    }
    ArrayMetadata parse(std::string_view text) const override { return parse_metadata(Value::parse(text)); }
    Value document(const ArrayMetadata& m) const override { return metadata_json(m); }
    void save(const PlaceRef& place, const ArrayMetadata& m, const Value* attributes) const override {
        const Value none = Value::object();
        const bool kept = attributes != nullptr || place.store.open(place.key(v1_attributes_name)) != nullptr;
        Dialect::save(place, m, kept ? attributes : &none);
    }
    KeyScheme default_keys() const override { return v2_keys(); }
    FillValue default_fill(const DType& dtype) const override { return plain_default_fill(dtype); }
    std::vector<std::string> remarks(const ArrayMetadata& m) const override { return what_zarr_1_cannot(m); }
};

constexpr V1 v1;

}  // namespace

constinit const Dialect& v1_dialect = v1;

}  // namespace tessera
