// A v3 data type has no byte order; the "bytes" codec has it. Here the dtype has it instead. If a filter between the
// two changes the elements, the codec keeps its endian, and the dtype gets the byte order of the filter's decoded
// dtype. This is because zarr-python 3 writes filters over a big-endian array with their own dtypes and a little-endian
// "bytes".
#include "v3_codecs.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "v3_types.h"

namespace tessera {

namespace {

// ---- the byte order of elements

/// Whether a codec keeps the dtype of its input, whatever the byte order.
bool keeps_dtype(const CodecConfig& codec) {
    const CodecRow* row = find_codec(codec.name);
    return row != nullptr && row->keeps_dtype;
}

/// The byte order of a filter's decoded elements, if its configuration has one.
std::optional<ByteOrder> decoded_order(const CodecConfig& filter, const DType& dtype) {
    const CodecRow* row = find_codec(filter.name);
    if (row == nullptr || row->decoded_dtype.empty()) return {};
    const Value* decoded = filter.configuration.find(row->decoded_dtype);
    if (decoded == nullptr || decoded->is_null()) return {};
    const DType said = in_context([&] { return fmt::format("codec \"{}\": {}", filter.name, row->decoded_dtype); },
                                  [&] { return DType::parse(decoded->as_string()); });
    // The filter rejects elements of another size; in structures each field has its own byte order.
    if (said.size() != dtype.size() || dtype.order() == ByteOrder::none || said.order() == ByteOrder::none) return {};
    return said.order();
}

/// Moves the endian of the chain's "bytes", and of that of inner chunks, to the dtype.
void take_endian(DType& dtype, std::vector<CodecConfig>& codecs, int depth = 0) {
    constexpr int deepest = 8;  // each level is copied
    if (depth > deepest) throw unsupported("shards are nested more than {} deep", deepest);
    const auto innermost = std::ranges::find_if_not(codecs, keeps_dtype);
    if (innermost == codecs.end()) return;
    Value& configuration = innermost->configuration;
    if (is_shard(*innermost)) {
        auto inner = read_codecs(configuration.at("codecs"));
        take_endian(dtype, inner, depth + 1);
        configuration.set("codecs", plain_codecs_json(inner));
    }
    if (const auto order = decoded_order(*innermost, dtype)) dtype = dtype.with_order(*order);
    const Value* endian = innermost->name == "bytes" ? configuration.find("endian") : nullptr;
    if (endian == nullptr) return;
    constexpr std::array<std::string_view, 2> choices{"little", "big"};
    const bool big =
        in_context([] { return "codec \"bytes\": endian"; }, [&] { return read_choice(*endian, choices); }) == "big";
    if (big && dtype.kind() == Kind::structure) {
        throw unsupported("codec \"bytes\": the fields of a structure are little-endian, and endian is \"big\"");
    }
    dtype = dtype.with_order(big ? ByteOrder::big : ByteOrder::little);
    configuration.erase("endian");
}

// ---- small types

bool is_small(const CodecConfig& codec) {
    return codec.name == small_type_codec_name;
}

/// Where the codec of a small type stands: in front of the innermost chain whose elements are the array's. In a shard
/// each inner chunk can then be read alone.
template <class Body>
void change_first_chain(std::vector<CodecConfig>& codecs, const Body& body) {
    const auto first = std::ranges::find_if_not(codecs, keeps_dtype);
    if (first == codecs.end() || !is_shard(*first)) return body(codecs);
    auto inner = read_codecs(first->configuration.at("codecs"));
    change_first_chain(inner, body);
    first->configuration.set("codecs", plain_codecs_json(inner));
}

bool given_last_bit(const CodecConfig& codec) {
    const Value* last = codec.configuration.find("last_bit");
    return last != nullptr && !last->is_null();
}

/// The bits of packbits, which takes them from the data type.
void limit_bits(std::vector<CodecConfig>& codecs, const SmallType& type) {
    for (CodecConfig& codec : codecs) {
        if (codec.name != "packbits") continue;
        if (!given_last_bit(codec)) codec.configuration.set("last_bit", type.bits - 1);
        const Value& last = codec.configuration.at("last_bit");
        if (last.as_int64() < type.bits) continue;
        throw invalid_argument("codec \"packbits\": last_bit is {}, but an element of {} has {} bits", last.as_int64(),
                               type.name(), type.bits);
    }
}

void take_small_type(const SmallType& type, DType& dtype, std::vector<CodecConfig>& codecs) {
    // Where the parts are bytes, their order has no effect.
    if (type.part_bytes() == 1) dtype = type.in_memory();
    change_first_chain(codecs, [&](std::vector<CodecConfig>& chain) {
        limit_bits(chain, type);
        CodecConfig codec{std::string(small_type_codec_name)};
        codec.configuration.set("name", type.name());
        chain.insert(chain.begin(), std::move(codec));
    });
}

/// How often a chain and the chains in its codecs have the codec of small types.
std::int64_t small_types_in(const Value& codecs) {
    std::int64_t count = 0;
    for (const Value& json : codecs.as_array()) {
        const CodecConfig codec = codec_from_json(json);
        if (is_small(codec)) ++count;
        const Value* inner = codec.configuration.find("codecs");
        if (inner != nullptr && inner->is_array()) count += small_types_in(*inner);
    }
    return count;
}

// ---- writing

/// Sets a member that v3 requires but other dialects may omit.
void set_default(Value& configuration, std::string_view name, Value otherwise) {
    if (configuration.find(name) == nullptr) configuration.set(name, std::move(otherwise));
}

Value chain_json(ChunkSpec spec, std::span<const CodecConfig> codecs, bool structured);

/// Sets the members that v3 requires. `item_size` is that of the input's elements.
void set_defaults(CodecConfig& codec, std::int64_t item_size) {
    Value& configuration = codec.configuration;
    if (codec.name == "blosc") {
        set_default(configuration, "typesize", item_size > 255 ? 1 : item_size);
        set_default(configuration, "clevel", 5);
        set_default(configuration, "shuffle", "shuffle");
        set_default(configuration, "blocksize", 0);
    } else if (codec.name == "zstd") {
        set_default(configuration, "level", 0);
        set_default(configuration, "checksum", false);
    } else if (codec.name == "gzip") {
        set_default(configuration, "level", 5);
    }
}

/// The v3 JSON of one codec. `spec` is its input: the elements after the preceding codecs.
Value codec_json(CodecConfig codec, const ChunkSpec& spec, bool is_bytes, bool structured) {
    Value& configuration = codec.configuration;
    if (codec.name == "bytes") {
        const bool ordered = spec.dtype.order() != ByteOrder::none || spec.dtype.kind() == Kind::structure;
        if (ordered && !structured) {
            set_default(configuration, "endian", spec.dtype.order() == ByteOrder::big ? "big" : "little");
        }
        return codec_to_json(codec);
    }
    if (codec.name == "crc32c") return codec_to_json(codec);
    if (is_shard(codec)) {
        ChunkSpec inner = spec;
        inner.shape = read_dims(configuration.at("chunk_shape"), 1);
        configuration.set("codecs", chain_json(inner, read_codecs(configuration.at("codecs")), structured));
    }
    set_defaults(codec, is_bytes ? 1 : spec.dtype.size());
    Value json = Value::object();
    json.set("name", codec.name);
    json.set("configuration", std::move(configuration));  // even if empty: zarr-python requires it for numcodecs
    return json;
}

bool small_parts_are_swapped(const CodecConfig& codec) {
    const auto type = small_type(codec.configuration.at("name").as_string());
    return type && type->part_bytes() > 1;
}

Value chain_json(ChunkSpec spec, std::span<const CodecConfig> codecs, bool structured) {
    Value list = Value::array();
    bool is_bytes = false;  // the codec's input is bytes without items
    std::optional<ByteOrder> packed;
    for (std::size_t i = 0; i < codecs.size(); ++i) {
        CodecConfig codec = codecs[i];
        if (is_small(codec)) {  // which is the data_type
            if (small_parts_are_swapped(codec)) packed = spec.dtype.order();
            spec = encoded_spec(std::move(spec), codecs.subspan(i, 1));
            continue;
        }
        if (packed && codec.name == "bytes") {
            set_default(codec.configuration, "endian", *packed == ByteOrder::big ? "big" : "little");
        }
        in_context([&] { return fmt::format("codec \"{}\"", codec.name); },
                   [&] { list.push_back(codec_json(codec, spec, is_bytes, structured)); });
        const CodecRow& row = codec_row(codecs[i].name);
        is_bytes = row.bytes_to_bytes != nullptr || (row.array_to_bytes != nullptr && codecs[i].name != "bytes");
        if (row.array_to_array != nullptr) spec = encoded_spec(std::move(spec), codecs.subspan(i, 1));
    }
    return list;
}

}  // namespace

std::vector<CodecConfig> read_codecs(const Value& list) {
    std::vector<CodecConfig> codecs;
    for (const Value& codec : list.as_array()) codecs.push_back(codec_from_json(codec));
    return codecs;
}

Value plain_codecs_json(const std::vector<CodecConfig>& codecs) {
    Value list = Value::array();
    for (const CodecConfig& codec : codecs) list.push_back(codec_to_json(codec));
    return list;
}

void take_codecs(DType& dtype, std::vector<CodecConfig>& codecs, const std::optional<SmallType>& small) {
    take_endian(dtype, codecs);
    if (small) take_small_type(*small, dtype, codecs);
}

Value codecs_json(const ArrayMetadata& m, bool structured) {
    return chain_json({m.dtype, m.chunks, m.fill.bytes}, m.codecs, structured);
}

std::optional<SmallType> stored_type(const ArrayMetadata& m) {
    std::optional<SmallType> found;
    std::vector<CodecConfig> codecs = m.codecs;
    change_first_chain(codecs, [&](std::vector<CodecConfig>& chain) {
        const auto codec = std::ranges::find_if_not(chain, keeps_dtype);
        if (codec == chain.end() || !is_small(*codec)) return;
        found = small_type(codec->configuration.at("name").as_string());
        if (!found) return;
        std::vector<CodecConfig> after(std::next(codec), chain.end());
        for (const CodecConfig& packed : after) {
            if (packed.name != "packbits" || given_last_bit(packed)) continue;
            throw invalid_argument("codec \"packbits\": elements of {} need the last_bit, {}", found->name(),
                                   found->bits - 1);
        }
        limit_bits(after, *found);
    });
    return found;
}

void require_small_type_first(const ArrayMetadata& m, const std::optional<SmallType>& stored) {
    if (small_types_in(plain_codecs_json(m.codecs)) == (stored ? 1 : 0)) return;
    throw unsupported("v3 cannot express the codecs {}: {} is what the elements are, so that no filter comes before it",
                      chain_text(m.codecs), small_type_codec_name);
}

bool has_optional_codec(const ArrayMetadata& m) {
    const auto is_optional = [](const CodecConfig& codec) { return is_optional_name(codec.name); };
    bool found = false;
    std::vector<CodecConfig> codecs = m.codecs;
    change_first_chain(codecs, [&](const auto& chain) { found = std::ranges::any_of(chain, is_optional); });
    return found;
}

}  // namespace tessera
