// "numcodecs.json2": the elements as a JSON list, nested as the array is, with NumPy's dtype and the shape at its end.
// "numcodecs.json", its first version, lacks the shape.
//
// Python's object arrays also hold null, numbers and lists, even beyond an array's edge. Such an element is kept as
// no_text_mark and its JSON, and is written again unchanged. Code that hands elements to a user gives the JSON.
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/no_text.h>

#include "codec_row.h"
#include "object_list.h"
#include "variable_slots.h"

namespace tessera {

namespace {

void take_nested(std::span<const Value> list, const Shape& shape, int d, const JsonStyle& style, Arena& arena,
                 std::vector<VariableSlot>& slots) {
    if (std::cmp_not_equal(list.size(), shape[d])) {
        throw corrupt("a list has {} items, expected {}", list.size(), shape[d]);
    }
    for (const Value& item : list) {
        if (d + 1 < shape.rank()) {
            if (!item.is_array()) throw corrupt("expected a list, found {}", item.kind_name());
            take_nested(item.as_array(), shape, d + 1, style, arena, slots);
        } else {
            slots.push_back(arena.add(item.is_string() ? item.as_string() : no_text_mark + item.dump(style)));
        }
    }
}

}  // namespace

void take_objects(const Value& list, const Shape& shape, bool ends_with_shape, const JsonStyle& style,
                  const MutableArrayView& out) {
    const std::size_t least = ends_with_shape ? 2 : 1;
    const std::size_t items = list.is_array() ? list.as_array().size() : 0;
    if (items < least)
        throw corrupt("it is no JSON list that ends with a dtype{}", ends_with_shape ? " and a shape" : "");
    const Value expected(Value::Array(shape.begin(), shape.end()));
    if (ends_with_shape && list.as_array().back() != expected) {
        throw corrupt("the shape at its end is {}, expected {}", list.as_array().back().dump(), expected.dump());
    }
    std::vector<VariableSlot> slots;
    take_nested(std::span(list.as_array()).first(items - least), shape, 0, style, arena_of(out), slots);
    scatter_slots(slots, out);
}

namespace {

class JsonCodec final : public ArrayToBytesCodec {
public:
    JsonCodec(const ChunkSpec& in, JsonStyle style, std::string separator, bool ends_with_shape)
        : shape_(in.shape), style_(style), separator_(std::move(separator)), ends_with_shape_(ends_with_shape) {}

    void encode(const ArrayView& in, Buffer& out) const override {
        const std::vector<VariableSlot> slots = gather_slots(in);
        std::string text;
        auto slot = slots.begin();
        put_list(text, 0, slot);
        text.pop_back();
        if (shape_[0] > 0) text += separator_;
        text += "\"|O\"";
        if (ends_with_shape_) {
            text += separator_ + '[';
            for (int d = 0; d < shape_.rank(); ++d) text += (d > 0 ? separator_ : "") + std::to_string(shape_[d]);
            text += ']';
        }
        text += ']';
        out = Buffer(std::as_bytes(std::span(text)));
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        const MemoryHold held(static_cast<std::uint64_t>(element_count(shape_)) * sizeof(VariableSlot));
        const Value json = Value::parse({reinterpret_cast<const char*>(in.data()), in.size()});
        take_objects(json, shape_, ends_with_shape_, style_, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    void put_list(std::string& text, int d, std::vector<VariableSlot>::const_iterator& slot) const {
        text += '[';
        for (std::int64_t i = 0; i < shape_[d]; ++i) {
            if (i > 0) text += separator_;
            if (d + 1 < shape_.rank()) {
                put_list(text, d + 1, slot);
            } else {
                const std::string_view element = (slot++)->view();
                text += element.starts_with(no_text_mark) ? Value::parse(element.substr(1)).dump(style_)
                                                          : Value(element).dump(style_);
            }
        }
        text += ']';
    }

    Shape shape_;
    JsonStyle style_;
    std::string separator_;
    bool ends_with_shape_;
};

std::unique_ptr<ArrayToBytesCodec> make(const Value& configuration, const ChunkSpec& in, bool ends_with_shape) {
    require_known_members(configuration, {"encoding", "skipkeys", "ensure_ascii", "check_circular", "allow_nan",
                                          "sort_keys", "indent", "separators", "strict"});
    if (in.dtype.kind() != Kind::variable_text) {
        throw invalid_argument("it is for variable-length text, not for {}", in.dtype.str());
    }
    if (in.shape.rank() == 0) throw unsupported("it cannot say an array without dimensions");
    if (const Value* encoding = given_member(configuration, "encoding"); encoding && *encoding != Value("utf-8")) {
        throw unsupported("encoding is {}; only \"utf-8\" is read", encoding->dump());
    }
    // indent affects only white space, which is not written.
    const Value* separators = given_member(configuration, "separators");
    const std::string separator =
        separators && !separators->as_array().empty() ? separators->as_array().front().as_string() : std::string(",");
    if (separator != "," && separator != ", ") {
        throw unsupported("separators begin with \"{}\"; choose \",\" or \", \"", separator);
    }
    return std::make_unique<JsonCodec>(in, JsonStyle{.ascii = bool_member(configuration, "ensure_ascii", true)},
                                       separator, ends_with_shape);
}

std::unique_ptr<ArrayToBytesCodec> make_json2_codec(const Value& configuration, const ChunkSpec& in) {
    return make(configuration, in, true);
}

std::unique_ptr<ArrayToBytesCodec> make_json_codec(const Value& configuration, const ChunkSpec& in) {
    return make(configuration, in, false);
}

/// Python's options for writing.
constexpr std::string_view json_encoder = R"({"skipkeys": null, "ensure_ascii": null, "check_circular": null,
    "allow_nan": null, "sort_keys": null, "indent": null, "separators": null})";

}  // namespace

extern constinit const CodecRow json2_codec{
    .name = "numcodecs.json2",
    .about = "variable-length text as JSON",
    .array_to_bytes = make_json2_codec,
    .objects = Kind::variable_text,
    .may_hold_no_text = true,
    .encoding_only = json_encoder,
};

extern constinit const CodecRow json_codec{
    .name = "numcodecs.json",
    .about = "variable-length text as JSON without its shape",
    .array_to_bytes = make_json_codec,
    .objects = Kind::variable_text,
    .may_hold_no_text = true,
    .encoding_only = json_encoder,
};

}  // namespace tessera
