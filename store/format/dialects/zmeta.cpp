// The dialect of zarr-python 0.4, which is Tessera's own: `__zmeta__`, `__zattr__`, `__zdata__/1.0.blosc`.
//
// `__zmeta__` is written as by Python's json.dump(indent=4, sort_keys=True), byte for byte as zarr 0.4 would write it
// for the same array. Two things keep their original spelling: the fill value (300 for a u1 stays 300 until the fill
// changes) and members that 0.4 did not know.
#include <tessera/error_text.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>

#include "dialects.h"
#include "keys.h"
#include "metadata_json.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 2> document_keys{zmeta_metadata_name, zmeta_attributes_name};
constexpr std::array<std::string_view, 7> members{"chunks",     "clevel", "cname",  "dtype",
                                                  "fill_value", "shape",  "shuffle"};

// ---- reading

KeyScheme zmeta_keys() {
    return {.prefix = "__zdata__/", .separator = ".", .suffix = ".blosc", .zero_d = "__zdata__/0.blosc"};
}

Value parse_json(std::string_view text) {
    try {
        return Value::parse(text);
    } catch (const Error& e) {
        // 0.4 left this when Python could not write the given fill value.
        if (!text.ends_with("\"fill_value\": ")) throw;
        throw corrupt("{} (zarr 0.4 failed while it wrote the fill value: the array was never complete)", e.what());
    }
}

ArrayMetadata parse_metadata(std::string_view text) {
    if (text.starts_with("(dp0\n")) {
        throw unsupported(
            "this is the pickled metadata of zarr 0.3, which is not read because unpickling runs programs. The chunks "
            "are the same as in zarr 0.4: write a JSON __zmeta__ with the same members in its place");
    }
    const Value meta = parse_json(text);
    ArrayMetadata m;
    m.dtype = member(meta, "dtype", [](const Value& v) { return read_numpy_dtype(v, "zmeta"); });
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    m.chunks = member(meta, "chunks", [](const Value& v) { return read_dims(v, 1); });
    require_sizes(m);
    m.fill = member(meta, "fill_value", [&](const Value& v) { return read_plain_fill(m.dtype, v); });
    m.codecs = {{"bytes"}, read_numbered_blosc(meta)};
    m.keys = zmeta_keys();
    m.unknown = unknown_members(meta, members);
    return m;
}

// ---- writing

/// The content of `__zmeta__`; throws for metadata that it cannot express.
Value metadata_json(const ArrayMetadata& m) {
    require_numpy_dtype(m.dtype, "zmeta");
    require_sizes(m);
    if (m.codecs.size() != 2 || m.codecs[0].name != "bytes" || m.codecs[1].name != "blosc") {
        throw unsupported("zmeta cannot express the codecs {}: they must be [bytes, blosc]", chain_text(m.codecs));
    }
    require_keys(m, zmeta_keys(), "zmeta");
    require_no_dimension_names(m, "zmeta");
    require_one_chunk_shape(m, "zmeta");
    Value meta = m.unknown;
    const Value blosc = numbered_blosc_json(m.codecs[1], m.dtype, "zmeta");
    for (const auto& [name, value] : blosc.as_object()) meta.set(name, value);
    meta.set("chunks", dims_json(m.chunks));
    meta.set("dtype", m.dtype.descr());
    meta.set("fill_value", plain_fill_json("zmeta", m.dtype, m.fill));
    meta.set("shape", dims_json(m.shape));
    return meta;
}

std::vector<std::string> what_zarr_04_cannot(const ArrayMetadata& m) {
    std::vector<std::string> said;
    if (m.shape.rank() == 0) said.emplace_back("zarr 0.4 could not open arrays without dimensions.");
    if (any_field(m.dtype, [](const Field& f) { return f.shape.rank() != 0; })) {
        said.emplace_back("zarr 0.4 could not open structures with sub-array fields.");
    }
    if (any_field(m.dtype, [](const Field& f) { return f.title.has_value(); })) {
        said.emplace_back("zarr 0.4 could not open structures with titled fields.");
    }
    if (m.codecs.size() == 2 && m.codecs[1].configuration.find("cname") &&
        m.codecs[1].configuration.at("cname") == Value("zstd")) {
        said.emplace_back("zarr 0.4 could not read chunks compressed with zstd.");
    }
    return said;
}

struct Zmeta final : Dialect {
    constexpr Zmeta()
        : Dialect({.name = "zmeta",
                   .about = "zarr-python 0.4 (__zmeta__), Tessera's own",
                   .metadata_key = zmeta_metadata_name,
                   .cannot_read_zstd = "zarr 0.4",
                   .documents = document_keys,
                   .own_folder = true}) {}

    ArrayMetadata parse(std::string_view text) const override { return parse_metadata(text); }
    Value document(const ArrayMetadata& m) const override { return metadata_json(m); }
    KeyScheme default_keys() const override { return zmeta_keys(); }
    FillValue default_fill(const DType& dtype) const override { return plain_default_fill(dtype); }
    std::vector<std::string> remarks(const ArrayMetadata& m) const override { return what_zarr_04_cannot(m); }
    /// zarr 0.4's synchronized arrays leave lock files behind.
    bool owns(const ArrayMetadata& m, std::string_view child) const override {
        const std::string_view locked = is_lock_name(child) ? child.substr(0, child.rfind('.')) : child;
        return Dialect::owns(m, child) || std::ranges::count(document_keys, locked) > 0;
    }
};

constexpr Zmeta zmeta;

}  // namespace

constinit const Dialect& zmeta_dialect = zmeta;

}  // namespace tessera
