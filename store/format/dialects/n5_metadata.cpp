#include "n5_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metadata_json.h"

namespace tessera {

namespace {

/// "compressionType" is the spelling of N5 1.0.
constexpr std::array<std::string_view, 6> members{"n5",       "dimensions",  "blockSize",
                                                  "dataType", "compression", "compressionType"};

struct NumberType {
    std::string_view name;
    const char* dtype;
};
constexpr std::array<NumberType, 10> number_types{{{"uint8", "|u1"},
                                                   {"uint16", ">u2"},
                                                   {"uint32", ">u4"},
                                                   {"uint64", ">u8"},
                                                   {"int8", "|i1"},
                                                   {"int16", ">i2"},
                                                   {"int32", ">i4"},
                                                   {"int64", ">i8"},
                                                   {"float32", ">f4"},
                                                   {"float64", ">f8"}}};

DType read_type(const Value& v) {
    const std::string& name = v.as_string();
    const auto* const found = std::ranges::find(number_types, name, &NumberType::name);
    if (found != number_types.end()) return DType::parse(found->dtype);
    std::vector<std::string_view> names;
    for (const NumberType& type : number_types) names.push_back(type.name);
    throw unsupported("elements of N5's type {} are not read; there are {}", excerpt(v), fmt::join(names, ", "));
}

Shape read_reversed(const Value& v, std::int64_t least) {
    Shape dims = read_dims(v, least);
    std::ranges::reverse(dims);
    return dims;
}

// ---- compression

/// A codec with a level, which Java writes as -1 where the library chooses it.
CodecConfig leveled(std::string_view codec, std::string_view member, const Value& compression, std::string_view given,
                    std::int64_t usual, std::int64_t most) {
    CodecConfig config{std::string(codec)};
    const Value* level = compression.find(given);
    const std::int64_t n = level == nullptr || level->is_null() ? usual : level->as_int64();
    config.configuration.set(member, n < 0 ? usual : std::min(n, most));
    return config;
}

CodecConfig read_gzip(const Value& compression) {
    const Value* zlib = compression.find("useZlib");
    const bool is_zlib = zlib != nullptr && *zlib == Value(true);
    return leveled(is_zlib ? "numcodecs.zlib" : "gzip", "level", compression, "level", 6, 9);
}

CodecConfig read_xz(const Value& compression) {
    CodecConfig xz = leveled("numcodecs.lzma", "preset", compression, "preset", 6, 9);
    xz.configuration.set("format", 1);
    xz.configuration.set("check", -1);
    xz.configuration.set("filters", nullptr);
    return xz;
}

/// Java's frames ("LZ4Block") and numcodecs' have one name, and only numcodecs configures an acceleration.
CodecConfig read_lz4(const Value& compression) {
    if (compression.find("acceleration") == nullptr) {
        throw unsupported(
            "blocks in Java's frames of lz4 are not read; the lz4 of zarr-python 2, which has an acceleration, is");
    }
    return leveled("numcodecs.lz4", "acceleration", compression, "acceleration", 1, INT32_MAX);
}

/// The codec of a type of compression; nullopt for "raw".
std::optional<CodecConfig> read_compression(const Value& compression) {
    const std::string type = member(compression, "type", [](const Value& v) { return v.as_string(); });
    if (type == "raw") return std::nullopt;
    if (type == "gzip") return read_gzip(compression);
    if (type == "bzip2") return leveled("numcodecs.bz2", "level", compression, "blockSize", 9, 9);
    if (type == "xz") return read_xz(compression);
    if (type == "lz4") return read_lz4(compression);
    if (type == "blosc") return read_numbered_blosc(compression);
    if (type == "zstd") return leveled("zstd", "level", compression, "level", 3, 22);
    throw unsupported(
        "blocks compressed by {} are not read; raw, gzip, bzip2, xz, blosc, zstd and zarr-python's lz4 are",
        excerpt(compression));
}

std::optional<CodecConfig> compression_of(const Value& document) {
    const Value* old = document.find("compressionType");
    if (document.find("compression") == nullptr && old != nullptr) {
        return in_member("compressionType", [&] { return read_compression(Value(Value::Object{{"type", *old}})); });
    }
    return member(document, "compression", read_compression);
}

// ---- the names of dimensions

/// A list of a name for each dimension, in the order of the array's; empty for anything else.
std::vector<std::optional<std::string>> names_in(const Value* list, int rank, bool reversed) {
    std::vector<std::optional<std::string>> names;
    if (list == nullptr || !list->is_array() || std::cmp_not_equal(list->as_array().size(), rank)) return names;
    for (const Value& name : list->as_array()) {
        if (!name.is_string()) return {};
        names.emplace_back(name.as_string());
    }
    if (reversed) std::ranges::reverse(names);
    for (auto name = names.begin(); name != names.end(); ++name) {
        if (std::find(names.begin(), name, *name) != name) return {};
    }
    return names;
}

/// `axes` is in N5's order. So is that of COSEM's `transform` where its `ordering` is F; it is C if that is not said.
std::vector<std::optional<std::string>> axes_of(const Value& document, int rank) {
    if (auto names = names_in(document.find("axes"), rank, true); !names.empty()) return names;
    const Value* transform = document.find("transform");
    if (transform == nullptr || !transform->is_object()) return {};
    const Value* ordering = transform->find("ordering");
    return names_in(transform->find("axes"), rank, ordering != nullptr && *ordering == Value("F"));
}

}  // namespace

bool is_n5_dataset(const Value& document) {
    return document.is_object() && document.find("dimensions") != nullptr && document.find("blockSize") != nullptr &&
           document.find("dataType") != nullptr;
}

ArrayMetadata n5_metadata(const Value& document) {
    ArrayMetadata m;
    m.dtype = member(document, "dataType", read_type);
    m.shape = member(document, "dimensions", [](const Value& v) { return read_reversed(v, 0); });
    m.chunks = member(document, "blockSize", [](const Value& v) { return read_reversed(v, 1); });
    if (m.shape.empty()) throw corrupt("member \"dimensions\": a data set has one at least");
    require_sizes(m);
    m.fill = zero_fill(m.dtype);
    m.codecs.push_back({"bytes"});
    if (auto compressor = compression_of(document)) m.codecs.push_back(*std::move(compressor));
    m.keys = dialect_named("v3").default_keys();
    m.dimension_names = axes_of(document, m.shape.rank());
    return m;
}

Value n5_attributes(const Value& document) {
    return unknown_members(document, members);
}

}  // namespace tessera
