// The table of codecs, and the short notation of the program's --codec.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/added_rows.h>
#include <tessera/error_text.h>
#include <tessera/number_text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "codec_row.h"

namespace tessera {

// Each is defined at the end of its codec's file.
extern const CodecRow bytes_codec, sharding_codec, vlen_utf8_codec, vlen_bytes_codec, json2_codec, vlen_array_codec,
    blosc_codec, gzip_codec, zstd_codec, zlib_codec, lz4_codec, bz2_codec, lzma_codec, numcodecs_blosc_codec,
    numcodecs_gzip_codec, numcodecs_zstd_codec, shuffle_codec, crc32c_codec, numcodecs_crc32c_codec, crc32_codec,
    adler32_codec, fletcher32_codec, jenkins_lookup3_codec, delta_codec, fixedscaleoffset_codec, scale_offset_codec,
    quantize_codec, bitround_codec, astype_codec, packbits_codec, categorize_codec, transpose_codec, base64_codec,
    json_codec, msgpack2_codec, cast_value_codec, conditional_codec, n5_default_codec, packed_bits_codec, reshape_codec,
    rounded_bits_codec, small_type_codec, zfp_codec, zfpy_codec, pcodec_codec, optional_codec, zarrs_optional_codec;

namespace {

// References, because the rows in other files may be made later than this.
constexpr auto own_rows = std::tie(
    bytes_codec, sharding_codec, vlen_utf8_codec, vlen_bytes_codec, json2_codec, vlen_array_codec, blosc_codec,
    gzip_codec, zstd_codec, zlib_codec, lz4_codec, bz2_codec, lzma_codec, numcodecs_blosc_codec, numcodecs_gzip_codec,
    numcodecs_zstd_codec, shuffle_codec, crc32c_codec, numcodecs_crc32c_codec, crc32_codec, adler32_codec,
    fletcher32_codec, jenkins_lookup3_codec, delta_codec, fixedscaleoffset_codec, scale_offset_codec, quantize_codec,
    bitround_codec, astype_codec, packbits_codec, categorize_codec, transpose_codec, reshape_codec, cast_value_codec,
    rounded_bits_codec, packed_bits_codec, n5_default_codec, conditional_codec, small_type_codec, zfp_codec, zfpy_codec,
    pcodec_codec, optional_codec, zarrs_optional_codec, base64_codec, json_codec, msgpack2_codec);

std::span<const CodecRow> own_codecs() {
    static const std::vector<CodecRow> table =
        std::apply([](const auto&... rows) { return std::vector<CodecRow>{rows...}; }, own_rows);
    return table;
}

/// Rows added by programs before the first reading of the table.
AddedRows<CodecRow>& added_codecs() {
    static AddedRows<CodecRow> rows;
    return rows;
}

}  // namespace

std::span<const CodecRow> codec_table() {
    static const std::vector<CodecRow> table = added_codecs().table(own_codecs());
    return table;
}

void add_codec(const CodecRow& row) {
    const int makers = int{bool(row.array_to_array)} + int{bool(row.array_to_bytes)} + int{bool(row.bytes_to_bytes)};
    if (row.name.empty() || makers != 1) {
        throw invalid_argument("adding codec \"{}\": it needs a name and one maker", row.name);
    }
    added_codecs().add(row, own_codecs(), "codec", &CodecRow::name);
}

const CodecRow* find_codec(std::string_view name) {
    const auto table = codec_table();
    const auto row = std::ranges::find(table, name, &CodecRow::name);
    return row == table.end() ? nullptr : &*row;
}

bool is_shard(const CodecConfig& codec) {
    const CodecRow* row = find_codec(codec.name);
    return row != nullptr && row->shard;
}

std::optional<DType> sequence_items(std::span<const CodecConfig> codecs) {
    for (const CodecConfig& codec : codecs) {
        const CodecRow* row = find_codec(codec.name);
        if (row != nullptr && !row->items.empty()) return DType::parse(codec.configuration.at(row->items).as_string());
    }
    return std::nullopt;
}

Value decoding_configuration(const CodecRow& row, Value configuration) {
    if (row.encoding_only.empty()) return configuration;
    const Value settings = Value::parse(row.encoding_only);
    for (const auto& [name, value] : settings.as_object()) configuration.set(name, value);
    return configuration;
}

namespace {

constexpr std::string_view numcodecs_prefix = "numcodecs.";

/// Finds a codec by its name in the short notation, where "numcodecs." may be omitted if no other codec has that name
/// there.
const CodecRow* find_short(std::string_view name) {
    const CodecRow* const row = find_codec(name);
    if (row != nullptr && row->short_notation) return row;
    const CodecRow* const numcodecs = find_codec(std::string(numcodecs_prefix) + std::string(name));
    return numcodecs != nullptr ? numcodecs : row;
}

std::string_view short_name(std::string_view name) {
    if (!name.starts_with(numcodecs_prefix)) return name;
    const std::string_view rest = name.substr(numcodecs_prefix.size());
    const CodecRow* const other = find_codec(rest);
    return other != nullptr && other->short_notation ? name : rest;
}

std::vector<std::string_view> short_names() {
    std::vector<std::string_view> names;
    for (const CodecRow& row : codec_table()) {
        if (row.short_notation) names.push_back(short_name(row.name));
    }
    return names;
}

/// A part as JSON.
Value part_value(const CodecPart& part, std::string_view text) {
    const auto* const end = text.data() + text.size();
    const auto whole = [&](const std::from_chars_result& r) { return r.ec == std::errc() && r.ptr == end; };
    switch (part.type) {
        case CodecPart::Type::text:
            return text;
        case CodecPart::Type::flag:
            if (text == "true" || text == "false") return text == "true";
            throw invalid_argument("{} is \"{}\", expected true or false", part.member, text);
        case CodecPart::Type::number:
        case CodecPart::Type::whole:
            break;
    }
    std::int64_t number = 0;
    if (whole(std::from_chars(text.data(), end, number))) return number;
    double real = 0;
    if (part.type == CodecPart::Type::number && whole(number_from_text(text.data(), end, real))) return real;
    throw invalid_argument("{} is \"{}\", expected a {}number", part.member, text,
                           part.type == CodecPart::Type::whole ? "whole " : "");
}

/// The value of an omitted part; null if the member is omitted too.
Value otherwise(const CodecPart& part) {
    return part.otherwise.empty() ? Value() : Value::parse(part.otherwise);
}

/// The configuration for the parts of `text` (":lz4:5", or nothing).
Value parse_parts(const CodecRow& row, std::string_view text) {
    Value configuration = Value::object();
    for (const CodecPart& part : row.parts) {
        Value value = otherwise(part);
        if (!text.empty()) {
            text.remove_prefix(1);
            const std::string_view word = text.substr(0, text.find(':'));
            text.remove_prefix(word.size());
            value = part_value(part, word);
        }
        if (value.is_null() && part.required) {
            throw invalid_argument("{} is missing; {}", part.member, row.about);
        }
        if (!value.is_null()) configuration.set(part.member, std::move(value));
    }
    if (!text.empty()) throw invalid_argument("\"{}\" is left over; {}", text, row.about);
    return configuration;
}

/// Whether the member follows from the rest, so that the notation may omit it.
bool follows(const std::string& member, const Value& value, const Value& configuration) {
    if (member == "typesize" || member == "dtype" || member == "decode_dtype" || value.is_null()) return true;
    if (member == "blocksize") return value == Value(0);
    const Value* dtype = configuration.find("dtype");
    return member == "astype" && dtype && *dtype == value;
}

}  // namespace

CodecConfig parse_codec(std::string_view text) {
    const std::string_view name = text.substr(0, text.find(':'));
    const CodecRow* row = find_short(name);
    if (row == nullptr) {
        throw invalid_argument("codec \"{}\": no codec \"{}\"; choose one of {}", text, name,
                               fmt::join(short_names(), ", "));
    }
    if (!row->short_notation) {
        throw invalid_argument(
            "codec \"{}\": it has no short notation; give it as JSON, "
            "{{\"name\": \"{}\", \"configuration\": {{...}}}}",
            text, row->name);
    }
    return in_context([&] { return fmt::format("codec \"{}\"", text); },
                      [&] {
                          CodecConfig codec{std::string(row->name), parse_parts(*row, text.substr(name.size()))};
                          // The codec checks the values and names the choices.
                          if (row->bytes_to_bytes) (void)row->bytes_to_bytes(codec.configuration, 1);
                          return codec;
                      });
}

namespace {

/// A v3 list of codecs, or a single one. Bytes→bytes codecs are made once: other programs' arrays are read with any
/// settings of the encoder, but no new array is made that could not be written.
std::vector<CodecConfig> chain_from_json(const Value& json, int depth = 0) {
    constexpr int deepest = 8;  // as shards in metadata
    const Value list = json.is_array() ? json : Value(Value::Array{json});
    std::vector<CodecConfig> chain;
    for (const Value& item : list.as_array()) {
        const CodecConfig& codec = chain.emplace_back(codec_from_json(item));
        in_context([&] { return fmt::format("codec \"{}\"", codec.name); },
                   [&] {
                       const CodecRow* row = find_codec(codec.name);
                       if (row != nullptr && row->only_decodes) throw no_encoder();
                       if (row != nullptr && row->bytes_to_bytes) (void)row->bytes_to_bytes(codec.configuration, 1);
                       const Value* inner = row != nullptr && row->array_to_bytes && depth < deepest
                                                ? given_member(codec.configuration, "codecs")
                                                : nullptr;
                       if (inner != nullptr) (void)chain_from_json(*inner, depth + 1);
                   });
    }
    return chain;
}

}  // namespace

std::vector<CodecConfig> parse_codecs(std::string_view text) {
    if (text == "none") return {};
    if (text.starts_with('[') || text.starts_with('{')) return chain_from_json(Value::parse(text));
    std::vector<CodecConfig> chain;
    for (;;) {
        const std::size_t comma = text.find(',');
        chain.push_back(parse_codec(text.substr(0, comma)));
        if (comma == std::string_view::npos) return chain;
        text.remove_prefix(comma + 1);
    }
}

namespace {

/// Adds the members that may be omitted because the dtype of the codec's input determines them.
void complete_members(CodecConfig& codec, const DType& dtype) {
    const CodecRow* row = find_codec(codec.name);
    if (row != nullptr && row->complete != nullptr) row->complete(codec.configuration, dtype);
}

std::string_view array_to_bytes_for(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::variable_text:
            return "vlen-utf8";
        case Kind::variable_bytes:
            return "vlen-bytes";
        default:
            return "bytes";
    }
}

CodecConfig reversed_axes(int rank) {
    CodecConfig transpose{"transpose"};
    Value axes = Value::array();
    for (int d = rank; d-- > 0;) axes.push_back(d);
    transpose.configuration.set("order", std::move(axes));
    return transpose;
}

}  // namespace

std::vector<CodecConfig> complete_codecs(const DType& dtype, int rank, Order order, std::vector<CodecConfig> chain) {
    if (order == Order::F && rank > 1) chain.insert(chain.begin(), reversed_axes(rank));
    // Sorts by kind: array → array, array → bytes, bytes → bytes. The given order within a kind stays. The pipeline
    // refuses unknown codecs.
    const auto kind = [](const CodecConfig& codec) {
        const CodecRow* row = find_codec(codec.name);
        return row == nullptr || row->bytes_to_bytes ? 2 : row->array_to_bytes ? 1 : 0;
    };
    std::ranges::stable_sort(chain, {}, kind);
    ChunkSpec spec{dtype, Shape::filled(rank, 1), {}};
    auto codec = chain.begin();
    for (; codec != chain.end() && kind(*codec) == 0; ++codec) {
        complete_members(*codec, spec.dtype);
        const auto made =
            in_context([&] { return codec->name; },
                       [&] { return find_codec(codec->name)->array_to_array(codec->configuration, spec); });
        spec = made->encoded();
    }
    if (codec == chain.end() || kind(*codec) != 1) {
        codec = chain.insert(codec, {std::string(array_to_bytes_for(spec.dtype))});
    }
    for (++codec; codec != chain.end(); ++codec) complete_members(*codec, spec.dtype);
    return chain;
}

Value codec_to_json(const CodecConfig& codec) {
    Value json = Value::object();
    json.set("name", codec.name);
    if (!codec.configuration.as_object().empty()) json.set("configuration", codec.configuration);
    return json;
}

CodecConfig codec_from_json(const Value& json) {
    if (json.is_string()) return {json.as_string()};
    CodecConfig codec{json.at("name").as_string()};
    if (const Value* configuration = json.find("configuration")) {
        (void)configuration->as_object();
        codec.configuration = *configuration;
    }
    for (const auto& [name, value] : json.as_object()) {
        const bool optional = value.is_object() && value.find("must_understand") != nullptr &&
                              *value.find("must_understand") == Value(false);
        if (name != "name" && name != "configuration" && name != "must_understand" && !optional) {
            throw invalid_argument("unknown member \"{}\" in a codec; known are name, configuration", name);
        }
    }
    return codec;
}

std::string codec_text(const CodecConfig& codec) {
    const CodecRow* const row = find_codec(codec.name);
    const auto in_notation = [&](const Value::Member& m) {
        return std::ranges::find(row->parts, m.first, &CodecPart::member) != row->parts.end() ||
               follows(m.first, m.second, codec.configuration);
    };
    if (row == nullptr || !row->short_notation || !std::ranges::all_of(codec.configuration.as_object(), in_notation)) {
        return codec_to_json(codec).dump();
    }
    std::string text(short_name(codec.name));
    std::string skipped;  // parts that are written only if a later part is
    for (const CodecPart& part : row->parts) {
        const Value* given = given_member(codec.configuration, part.member);
        const Value value = given ? *given : otherwise(part);
        const std::string word = ':' + (value.is_string() ? value.as_string() : value.dump());
        const bool silent = value.is_null() || (part.type == CodecPart::Type::flag && value == otherwise(part)) ||
                            (!part.required && follows(std::string(part.member), value, codec.configuration));
        if (silent) {
            skipped += word;
        } else {
            text += std::exchange(skipped, {}) + word;
        }
    }
    return text;
}

}  // namespace tessera
