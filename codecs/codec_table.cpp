// The table of codecs, and the short notation of the program's --codec.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <vector>

#include "codec_makers.h"

namespace tessera {

namespace {

constexpr std::array<CodecRow, 2> table{{
    {"bytes", "elements packed in C order", nullptr, make_bytes_codec, nullptr},
    {"blosc", "fast compressors with a shuffle: blosc:COMPRESSOR:LEVEL:SHUFFLE", nullptr, nullptr, make_blosc_codec},
}};

/// One part of a notation, in order: the member of the configuration that it stands for, and what it is when left out.
struct Part {
    std::string_view member;
    Value otherwise;
};

/// The parts that a codec's notation has after its name.
std::vector<Part> notation(std::string_view codec) {
    if (codec == "blosc") return {{"cname", "lz4"}, {"clevel", 5}, {"shuffle", "shuffle"}};
    return {};
}

std::vector<std::string_view> compressor_names() {
    std::vector<std::string_view> names;
    for (const CodecRow& row : table) {
        if (row.bytes_to_bytes) names.push_back(row.name);
    }
    return names;
}

/// A part as JSON: an integer where the default is one, else a string.
Value part_value(const Part& part, std::string_view text) {
    if (!part.otherwise.is_integer()) return text;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw invalid_argument(fmt::format("{} is \"{}\", expected a whole number", part.member, text));
    }
    return number;
}

}  // namespace

void require_known_members(const Value& configuration, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : configuration.as_object()) {
        if (std::ranges::find(known, name) == known.end()) {
            throw invalid_argument(
                fmt::format("unknown member \"{}\" in the configuration; known are {}", name, fmt::join(known, ", ")));
        }
    }
}

std::span<const CodecRow> codec_table() {
    return table;
}

CodecConfig parse_codec(std::string_view text) {
    const std::string_view name = text.substr(0, text.find(':'));
    const auto* row = std::ranges::find(table, name, &CodecRow::name);
    if (row == table.end() || !row->bytes_to_bytes) {
        throw invalid_argument(fmt::format("codec \"{}\": no compressing codec \"{}\"; choose one of {}", text, name,
                                           fmt::join(compressor_names(), ", ")));
    }
    return in_context([&] { return fmt::format("codec \"{}\"", text); },
                      [&] {
                          CodecConfig codec{std::string(name)};
                          std::string_view rest = text.substr(name.size());
                          for (const Part& part : notation(name)) {
                              Value value = part.otherwise;
                              if (!rest.empty()) {
                                  rest.remove_prefix(1);
                                  const std::string_view word = rest.substr(0, rest.find(':'));
                                  rest.remove_prefix(word.size());
                                  value = part_value(part, word);
                              }
                              codec.configuration.set(part.member, std::move(value));
                          }
                          if (!rest.empty())
                              throw invalid_argument(fmt::format("\"{}\" is left over; {}", rest, row->about));
                          (void)row->bytes_to_bytes(codec.configuration, 1);  // it knows its choices and names them
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

std::vector<CodecConfig> complete_codecs(const DType& /*dtype*/, int rank, Order order,
                                         std::vector<CodecConfig> chain) {
    std::vector<CodecConfig> whole;
    if (order == Order::F && rank > 1) {
        CodecConfig transpose{"transpose"};
        Value axes = Value::array();
        for (int d = rank; d-- > 0;) axes.push_back(d);
        transpose.configuration.set("order", std::move(axes));
        whole.push_back(std::move(transpose));
    }
    const auto is_bytes = [](const CodecConfig& codec) { return codec.name == "bytes"; };
    if (std::ranges::none_of(chain, is_bytes)) whole.push_back({"bytes"});
    std::ranges::move(chain, std::back_inserter(whole));
    return whole;
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
    std::string text = codec.name;
    for (const Part& part : notation(codec.name)) {
        const Value* given = codec.configuration.find(part.member);
        const Value& value = given ? *given : part.otherwise;
        text += ':' + (value.is_string() ? value.as_string() : value.dump());
    }
    return text;
}

}  // namespace tessera
