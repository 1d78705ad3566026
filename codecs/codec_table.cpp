// The table of codecs, and the short notation of the program's --codec.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "codec_makers.h"

namespace tessera {

namespace {

constexpr std::array table{
    CodecRow{"bytes", "elements packed in C order", nullptr, make_bytes_codec, nullptr},
    CodecRow{"sharding_indexed", "smaller chunks and an index of them", nullptr, make_sharding_codec, nullptr},
    CodecRow{"vlen-utf8", "variable-length text", nullptr, make_vlen_utf8_codec, nullptr},
    CodecRow{"vlen-bytes", "variable-length bytes", nullptr, make_vlen_bytes_codec, nullptr},
    CodecRow{"numcodecs.json2", "variable-length text as JSON", nullptr, make_json2_codec, nullptr},
    CodecRow{"numcodecs.vlen-array", "variable-length arrays: vlen-array:DTYPE", nullptr, make_vlen_array_codec,
             nullptr},
    CodecRow{"blosc", "fast compressors with a shuffle: blosc:COMPRESSOR:LEVEL:SHUFFLE:BLOCKSIZE", nullptr, nullptr,
             make_blosc_codec},
    CodecRow{"gzip", "gzip:LEVEL, 0 to 9", nullptr, nullptr, make_gzip_codec},
    CodecRow{"zstd", "zstd:LEVEL:CHECKSUM, up to 22, negative ones are faster; true or false", nullptr, nullptr,
             make_zstd_codec},
    CodecRow{"numcodecs.zlib", "zlib:LEVEL, 0 to 9", nullptr, nullptr, make_zlib_codec},
    CodecRow{"numcodecs.lz4", "lz4:ACCELERATION", nullptr, nullptr, make_lz4_codec},
    CodecRow{"numcodecs.bz2", "bz2:LEVEL, 1 to 9", nullptr, nullptr, make_bz2_codec},
    CodecRow{"numcodecs.lzma", "lzma:PRESET, 0 to 9", nullptr, nullptr, make_lzma_codec},
    CodecRow{"numcodecs.blosc", "blosc as numcodecs configures it", nullptr, nullptr, make_numcodecs_blosc_codec},
    CodecRow{"numcodecs.gzip", "gzip under numcodecs' name", nullptr, nullptr, make_gzip_codec},
    CodecRow{"numcodecs.zstd", "zstd under numcodecs' name", nullptr, nullptr, make_zstd_codec},
    CodecRow{"numcodecs.shuffle", "bytes of elements grouped by place: shuffle:ELEMENTSIZE", nullptr, nullptr,
             make_shuffle_codec},
    CodecRow{"crc32c", "a checksum after the data", nullptr, nullptr, make_crc32c_codec},
    CodecRow{"numcodecs.crc32c", "a checksum after or before the data", nullptr, nullptr, make_numcodecs_crc32c_codec},
    CodecRow{"numcodecs.crc32", "a checksum before or after the data", nullptr, nullptr, make_crc32_codec},
    CodecRow{"numcodecs.adler32", "a checksum before or after the data", nullptr, nullptr, make_adler32_codec},
    CodecRow{"numcodecs.fletcher32", "HDF5's checksum after the data", nullptr, nullptr, make_fletcher32_codec},
    CodecRow{"numcodecs.jenkins_lookup3", "HDF5's checksum of metadata after the data", nullptr, nullptr,
             make_jenkins_lookup3_codec},
    CodecRow{"numcodecs.delta", "differences between neighbours: delta:ASTYPE", make_delta_codec, nullptr, nullptr},
    CodecRow{"numcodecs.fixedscaleoffset", "scaled and rounded: fixedscaleoffset:OFFSET:SCALE:ASTYPE",
             make_fixedscaleoffset_codec, nullptr, nullptr},
    CodecRow{"scale_offset", "scaled: scale_offset:OFFSET:SCALE", make_scale_offset_codec, nullptr, nullptr},
    CodecRow{"numcodecs.quantize", "floats rounded to decimal digits: quantize:DIGITS:ASTYPE", make_quantize_codec,
             nullptr, nullptr},
    CodecRow{"numcodecs.bitround", "floats rounded to bits: bitround:KEEPBITS", make_bitround_codec, nullptr, nullptr},
    CodecRow{"numcodecs.astype", "numbers cast: astype:DTYPE", make_astype_codec, nullptr, nullptr},
    CodecRow{"numcodecs.packbits", "booleans as bits", make_packbits_codec, nullptr, nullptr},
    CodecRow{"numcodecs.categorize", "texts as numbers of labels", make_categorize_codec, nullptr, nullptr},
    CodecRow{"transpose", "dimensions in another order", make_transpose_codec, nullptr, nullptr},
};

constexpr std::string_view numcodecs_prefix = "numcodecs.";

const CodecRow* find_row(std::string_view name) {
    const auto* row = std::ranges::find(table, name, &CodecRow::name);
    return row == table.end() ? nullptr : row;
}

/// A name as the notation has it: "numcodecs." may be left out where that is no other codec's name.
const CodecRow* find_short(std::string_view name) {
    if (const CodecRow* row = find_row(name)) return row;
    return find_row(std::string(numcodecs_prefix) + std::string(name));
}

std::string_view short_name(std::string_view name) {
    if (!name.starts_with(numcodecs_prefix)) return name;
    const std::string_view rest = name.substr(numcodecs_prefix.size());
    return find_row(rest) ? name : rest;
}

/// One part of a notation, in order: the member of the configuration that it stands for.
struct Part {
    enum class Type : std::uint8_t { whole, number, text, flag };
    std::string_view member;
    Type type;
    Value otherwise = {};  ///< null: the member is left out too
    bool required = false;
};

/// The parts that a codec's notation has after its name; nothing for a codec that needs JSON.
std::optional<std::vector<Part>> notation(std::string_view codec) {
    using enum Part::Type;
    if (codec == "transpose" || codec == "sharding_indexed" || codec == "numcodecs.categorize") return std::nullopt;
    if (codec == "bytes") return {{{"endian", text}}};
    if (codec == "blosc") {
        return {{{"cname", text, "lz4"}, {"clevel", whole, 5}, {"shuffle", text, "shuffle"}, {"blocksize", whole}}};
    }
    if (codec == "numcodecs.blosc") {
        return {{{"cname", text, "lz4"}, {"clevel", whole, 5}, {"shuffle", whole, 1}, {"blocksize", whole}}};
    }
    if (codec == "gzip" || codec == "numcodecs.gzip") return {{{"level", whole, 5}}};
    if (codec == "zstd" || codec == "numcodecs.zstd") return {{{"level", whole, 3}, {"checksum", flag, false}}};
    if (codec == "numcodecs.zlib" || codec == "numcodecs.bz2") return {{{"level", whole, 1}}};
    if (codec == "numcodecs.lz4") return {{{"acceleration", whole, 1}}};
    if (codec == "numcodecs.lzma") return {{{"preset", whole}}};
    if (codec == "numcodecs.shuffle") return {{{"elementsize", whole}}};
    if (codec == "numcodecs.vlen-array") return {{{"dtype", text, {}, true}}};
    if (codec == "numcodecs.delta") return {{{"astype", text}}};
    if (codec == "numcodecs.astype") return {{{"encode_dtype", text, {}, true}}};
    if (codec == "numcodecs.bitround") return {{{"keepbits", whole, {}, true}}};
    if (codec == "numcodecs.quantize") return {{{"digits", whole, {}, true}, {"astype", text}}};
    if (codec == "numcodecs.fixedscaleoffset") {
        return {{{"offset", number, {}, true}, {"scale", number, {}, true}, {"astype", text}}};
    }
    if (codec == "scale_offset") return {{{"offset", number, 0}, {"scale", number, 1}}};
    return std::vector<Part>{};
}

std::vector<std::string_view> short_names() {
    std::vector<std::string_view> names;
    for (const CodecRow& row : table) {
        if (notation(row.name)) names.push_back(short_name(row.name));
    }
    return names;
}

/// A part as JSON.
Value part_value(const Part& part, std::string_view text) {
    const auto* const end = text.data() + text.size();
    const auto whole = [&](const std::from_chars_result& r) { return r.ec == std::errc() && r.ptr == end; };
    switch (part.type) {
        case Part::Type::text:
            return text;
        case Part::Type::flag:
            if (text == "true" || text == "false") return text == "true";
            throw invalid_argument(fmt::format("{} is \"{}\", expected true or false", part.member, text));
        case Part::Type::number:
        case Part::Type::whole:
            break;
    }
    std::int64_t number = 0;
    if (whole(std::from_chars(text.data(), end, number))) return number;
    double real = 0;
    if (part.type == Part::Type::number && whole(std::from_chars(text.data(), end, real))) return real;
    throw invalid_argument(fmt::format("{} is \"{}\", expected a {}number", part.member, text,
                                       part.type == Part::Type::whole ? "whole " : ""));
}

/// The configuration that the parts of `text` (":lz4:5", or nothing) stand for.
Value parse_parts(const CodecRow& row, const std::vector<Part>& parts, std::string_view text) {
    Value configuration = Value::object();
    for (const Part& part : parts) {
        Value value = part.otherwise;
        if (!text.empty()) {
            text.remove_prefix(1);
            const std::string_view word = text.substr(0, text.find(':'));
            text.remove_prefix(word.size());
            value = part_value(part, word);
        }
        if (value.is_null() && part.required) {
            throw invalid_argument(fmt::format("{} is missing; {}", part.member, row.about));
        }
        if (!value.is_null()) configuration.set(part.member, std::move(value));
    }
    if (!text.empty()) throw invalid_argument(fmt::format("\"{}\" is left over; {}", text, row.about));
    return configuration;
}

/// Whether a member outside the notation follows from the rest, so that the notation says all without it.
bool follows(const std::string& member, const Value& value, const Value& configuration) {
    if (member == "typesize" || member == "dtype" || member == "decode_dtype" || value.is_null()) return true;
    if (member == "blocksize") return value == Value(0);
    const Value* dtype = configuration.find("dtype");
    return member == "astype" && dtype && *dtype == value;
}

}  // namespace

std::span<const CodecRow> codec_table() {
    return table;
}

CodecConfig parse_codec(std::string_view text) {
    const std::string_view name = text.substr(0, text.find(':'));
    const CodecRow* row = find_short(name);
    if (row == nullptr) {
        throw invalid_argument(
            fmt::format("codec \"{}\": no codec \"{}\"; choose one of {}", text, name, fmt::join(short_names(), ", ")));
    }
    const auto parts = notation(row->name);
    if (!parts) {
        throw invalid_argument(
            fmt::format("codec \"{}\": it has no short notation; give it as JSON, "
                        "{{\"name\": \"{}\", \"configuration\": {{...}}}}",
                        text, row->name));
    }
    return in_context(
        [&] { return fmt::format("codec \"{}\"", text); },
        [&] {
            CodecConfig codec{std::string(row->name), parse_parts(*row, *parts, text.substr(name.size()))};
            // It knows its choices and names them.
            if (row->bytes_to_bytes) (void)row->bytes_to_bytes(codec.configuration, 1);
            return codec;
        });
}

std::vector<CodecConfig> parse_codecs(std::string_view text) {
    std::vector<CodecConfig> chain;
    if (text == "none") return chain;
    if (text.starts_with('[') || text.starts_with('{')) {
        const Value json = Value::parse(text);
        const Value list = json.is_array() ? json : Value(Value::Array{json});
        for (const Value& codec : list.as_array()) chain.push_back(codec_from_json(codec));
        return chain;
    }
    for (;;) {
        const std::size_t comma = text.find(',');
        chain.push_back(parse_codec(text.substr(0, comma)));
        if (comma == std::string_view::npos) return chain;
        text.remove_prefix(comma + 1);
    }
}

namespace {

void set_missing(Value& configuration, std::string_view member, Value value) {
    if (!given_member(configuration, member)) configuration.set(member, std::move(value));
}

/// Puts in what a codec's configuration may leave out and the dtype that comes to it says.
void complete_members(CodecConfig& codec, const DType& dtype) {
    Value& c = codec.configuration;
    if (codec.name == "numcodecs.delta" || codec.name == "numcodecs.quantize" ||
        codec.name == "numcodecs.fixedscaleoffset") {
        // NumPy does not count with times; as integers they are as good.
        const bool time = dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
        set_missing(c, "dtype", (time ? DType::scalar(Kind::integer, 8, dtype.order()) : dtype).str());
        set_missing(c, "astype", *c.find("dtype"));
    } else if (codec.name == "numcodecs.astype") {
        set_missing(c, "decode_dtype", dtype.str());
    } else if (codec.name == "numcodecs.categorize") {
        set_missing(c, "dtype", dtype.is_variable() ? "|O" : dtype.str());
        set_missing(c, "astype", "|u1");
    } else if (codec.name == "numcodecs.shuffle") {
        set_missing(c, "elementsize", dtype.size());
    }
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
    // By kind: array → array, array → bytes, bytes → bytes; those of a kind as they were given. What is not known is
    // the pipeline's to refuse.
    const auto kind = [](const CodecConfig& codec) {
        const CodecRow* row = find_row(codec.name);
        return row == nullptr || row->bytes_to_bytes ? 2 : row->array_to_bytes ? 1 : 0;
    };
    std::ranges::stable_sort(chain, {}, kind);
    ChunkSpec spec{dtype, Shape::filled(rank, 1), {}};
    auto codec = chain.begin();
    for (; codec != chain.end() && kind(*codec) == 0; ++codec) {
        complete_members(*codec, spec.dtype);
        const auto made = in_context([&] { return codec->name; },
                                     [&] { return find_row(codec->name)->array_to_array(codec->configuration, spec); });
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
            throw invalid_argument(
                fmt::format("unknown member \"{}\" in a codec; known are name, configuration", name));
        }
    }
    return codec;
}

std::string codec_text(const CodecConfig& codec) {
    const auto parts = notation(codec.name);
    const auto in_notation = [&](const Value::Member& m) {
        return std::ranges::find(*parts, m.first, &Part::member) != parts->end() ||
               follows(m.first, m.second, codec.configuration);
    };
    if (!find_row(codec.name) || !parts || !std::ranges::all_of(codec.configuration.as_object(), in_notation)) {
        return codec_to_json(codec).dump();
    }
    std::string text(short_name(codec.name));
    std::string skipped;  // parts that need not be said unless one after them is
    for (const Part& part : *parts) {
        const Value* given = given_member(codec.configuration, part.member);
        const Value& value = given ? *given : part.otherwise;
        const std::string word = ':' + (value.is_string() ? value.as_string() : value.dump());
        const bool silent = value.is_null() || (part.type == Part::Type::flag && value == part.otherwise) ||
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
