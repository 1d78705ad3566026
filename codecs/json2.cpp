// "numcodecs.json2": the elements as a JSON list, nested as the array is, with NumPy's dtype and the shape at its end.
//
// Python's object arrays also hold null, numbers and lists, even beyond an array's edge. Such an element is kept as
// no_text_mark and its JSON, and is written again unchanged. Code that hands elements to a user refuses it.
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/no_text.h>

#include "codec_row.h"
#include "variable_slots.h"

namespace tessera {

namespace {

class JsonCodec final : public ArrayToBytesCodec {
public:
    JsonCodec(const ChunkSpec& in, JsonStyle style, std::string separator)
        : shape_(in.shape), style_(style), separator_(std::move(separator)) {}

    void encode(const ArrayView& in, Buffer& out) const override {
        const std::vector<VariableSlot> slots = gather_slots(in);
        std::string text;
        auto slot = slots.begin();
        put_list(text, 0, slot);
        text.pop_back();
        if (shape_[0] > 0) text += separator_;
        text += "\"|O\"" + separator_ + '[';
        for (int d = 0; d < shape_.rank(); ++d) text += (d > 0 ? separator_ : "") + std::to_string(shape_[d]);
        text += "]]";
        out = Buffer(std::as_bytes(std::span(text)));
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        const MemoryHold held(static_cast<std::uint64_t>(element_count(shape_)) * sizeof(VariableSlot));
        const Value json = Value::parse({reinterpret_cast<const char*>(in.data()), in.size()});
        const std::size_t items = json.is_array() ? json.as_array().size() : 0;
        if (items < 2) throw corrupt("it is no JSON list that ends with a dtype and a shape");
        const Value::Array& list = json.as_array();
        Value shape = Value::array();
        for (const std::int64_t n : shape_) shape.push_back(n);
        if (list.back() != shape) {
            throw corrupt("the shape at its end is {}, expected {}", list.back().dump(), shape.dump());
        }
        std::vector<VariableSlot> slots;
        take_list(std::span(list).first(items - 2), 0, arena_of(out), slots);
        scatter_slots(slots, out);
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

    void take_list(std::span<const Value> list, int d, Arena& arena, std::vector<VariableSlot>& slots) const {
        if (std::cmp_not_equal(list.size(), shape_[d])) {
            throw corrupt("a list has {} items, expected {}", list.size(), shape_[d]);
        }
        for (const Value& item : list) {
            if (d + 1 < shape_.rank()) {
                if (!item.is_array()) throw corrupt("expected a list, found {}", item.kind_name());
                take_list(item.as_array(), d + 1, arena, slots);
            } else {
                slots.push_back(arena.add(item.is_string() ? item.as_string() : no_text_mark + item.dump(style_)));
            }
        }
    }

    Shape shape_;
    JsonStyle style_;
    std::string separator_;
};

std::unique_ptr<ArrayToBytesCodec> make_json2_codec(const Value& configuration, const ChunkSpec& in) {
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
                                       separator);
}

}  // namespace

extern constinit const CodecRow json2_codec{
    .name = "numcodecs.json2",
    .about = "variable-length text as JSON",
    .array_to_bytes = make_json2_codec,
    .objects = Kind::variable_text,
    .may_hold_no_text = true,
    .encoding_only =
        R"({"skipkeys": null, "ensure_ascii": null, "check_circular": null, "allow_nan": null, "sort_keys": null, "indent": null, "separators": null})",
};

}  // namespace tessera
