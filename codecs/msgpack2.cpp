// "numcodecs.msgpack2": the elements as a list in MessagePack, nested as the array is, with NumPy's dtype and the shape
// at its end. Elements that are no text are kept as in json2.
#include <bit>
#include <cstring>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/no_text.h>

#include <tessera/unicode.h>
#include "codec_row.h"
#include "object_list.h"
#include "variable_slots.h"

namespace tessera {

namespace {

/// Reads one value after the other. Nothing is allocated for a length before so many bytes are there.
class MsgPackReader {
public:
    explicit MsgPackReader(ByteSpan bytes) : rest_(bytes) {}

    Value value(int depth = 0) {
        constexpr int deepest = 200;  // as JSON
        if (depth > deepest) throw corrupt("lists are nested more than {} deep", deepest);
        const std::uint64_t tag = number(1);
        if (tag < 0x80) return tag;
        if (tag < 0x90) return map(tag & 15, depth);
        if (tag < 0xa0) return list(tag & 15, depth);
        if (tag < 0xc0) return text(tag & 31);
        if (tag >= 0xe0) return static_cast<std::int64_t>(tag) - 0x100;
        return tag < 0xca || tag > 0xd3 ? tagged(tag, depth) : tagged_number(tag);
    }

    [[nodiscard]] ByteSpan rest() const { return rest_; }

private:
    Value tagged_number(std::uint64_t tag) {
        switch (tag) {
            case 0xca:
                return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(4))));
            case 0xcb:
                return std::bit_cast<double>(number(8));
            case 0xcc:
            case 0xcd:
            case 0xce:
            case 0xcf:
                return number(std::size_t{1} << (tag - 0xcc));
            case 0xd0:
                return static_cast<std::int8_t>(number(1));
            case 0xd1:
                return static_cast<std::int16_t>(number(2));
            case 0xd2:
                return static_cast<std::int32_t>(number(4));
            default:
                return static_cast<std::int64_t>(number(8));
        }
    }

    Value tagged(std::uint64_t tag, int depth) {
        switch (tag) {
            case 0xc0:
                return nullptr;
            case 0xc2:
            case 0xc3:
                return tag == 0xc3;
            case 0xd9:
            case 0xda:
            case 0xdb:
                return text(number(std::size_t{1} << (tag - 0xd9)));
            case 0xdc:
            case 0xdd:
                return list(number(tag == 0xdc ? 2 : 4), depth);
            case 0xde:
            case 0xdf:
                return map(number(tag == 0xde ? 2 : 4), depth);
            default:
                throw unsupported("it holds bytes or an extension (tag {:#04x}), which no text stands for", tag);
        }
    }

    ByteSpan take(std::uint64_t size) {
        if (size > rest_.size()) throw corrupt("a value ends beyond the end of the chunk");
        const ByteSpan bytes = rest_.first(static_cast<std::size_t>(size));
        rest_ = rest_.subspan(bytes.size());
        return bytes;
    }

    std::uint64_t number(std::size_t size) {
        std::uint64_t v = 0;
        for (const std::byte b : take(size)) v = v << 8 | std::to_integer<std::uint64_t>(b);
        return v;
    }

    Value text(std::uint64_t size) {
        const ByteSpan bytes = take(size);
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (!count_utf8(text)) throw corrupt("a text is not UTF-8");
        return text;
    }

    Value list(std::uint64_t count, int depth) {
        if (count > rest_.size()) throw corrupt("a list of {} values ends beyond the end of the chunk", count);
        held_.add(count * sizeof(Value));
        Value::Array items;
        items.reserve(static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i) items.push_back(value(depth + 1));
        return items;
    }

    Value map(std::uint64_t count, int depth) {
        if (count > rest_.size() / 2) throw corrupt("a map of {} values ends beyond the end of the chunk", count);
        held_.add(count * sizeof(Value::Member));
        std::vector<Value::Member> members;
        for (std::uint64_t i = 0; i < count; ++i) {
            const Value key = value(depth + 1);
            // No key in Python either; and the text of one within another would double with each level.
            if (key.is_array() || key.is_object()) throw corrupt("a map has a list or a map for a key");
            members.emplace_back(key.is_string() ? key.as_string() : key.dump(), value(depth + 1));
        }
        return members;
    }

    ByteSpan rest_;
    MemoryHold held_;
};

class MsgPackWriter {
public:
    void value(const Value& v) {
        if (v.is_null()) return put(0xc0);
        if (v.is_bool()) return put(v.as_bool() ? 0xc3 : 0xc2);
        if (v.is_string()) return text(v.as_string());
        if (v.is_integer()) return integer(v);
        if (v.is_number()) {
            put(0xcb);
            return number(std::bit_cast<std::uint64_t>(v.as_double()), 8);
        }
        if (v.is_array()) {
            length(v.as_array().size(), 0x90, 15, 0xdc);
            for (const Value& item : v.as_array()) value(item);
            return;
        }
        length(v.as_object().size(), 0x80, 15, 0xde);
        for (const auto& [name, item] : v.as_object()) {
            text(name);
            value(item);
        }
    }

    void list(std::size_t count) { length(count, 0x90, 15, 0xdc); }

    void text(std::string_view s) {
        if (s.size() < 32) {
            put(0xa0 | static_cast<unsigned>(s.size()));
        } else if (s.size() < 256) {
            put(0xd9);
            put(static_cast<unsigned>(s.size()));
        } else {
            length(s.size(), 0, 0, 0xda);
        }
        bytes.append(s);
    }

    std::string bytes;

private:
    void put(unsigned byte) { bytes += static_cast<char>(byte); }
    void number(std::uint64_t v, int size) {
        for (int i = size; i-- > 0;) put(static_cast<unsigned>(v >> 8 * i & 0xff));
    }
    /// Up to `most` in the byte `small` itself; else `tag` and 2 bytes, or the next tag and 4.
    void length(std::size_t n, unsigned small, std::size_t most, unsigned tag) {
        if (n > UINT32_MAX) throw unsupported("{} are more than 4 bytes count", n);
        if (n <= most) return put(small | static_cast<unsigned>(n));
        put(n < 65536 ? tag : tag + 1);
        number(n, n < 65536 ? 2 : 4);
    }
    void integer(const Value& v) {
        if (v.as_double() < 0) {
            const std::int64_t n = v.as_int64();
            if (n >= -32) return put(static_cast<unsigned>(n & 0xff));
            const int power = n >= INT8_MIN ? 0 : n >= INT16_MIN ? 1 : n >= INT32_MIN ? 2 : 3;
            put(0xd0U + static_cast<unsigned>(power));
            return number(static_cast<std::uint64_t>(n), 1 << power);
        }
        const std::uint64_t n = v.as_uint64();
        if (n < 128) return put(static_cast<unsigned>(n));
        const int power = n <= UINT8_MAX ? 0 : n <= UINT16_MAX ? 1 : n <= UINT32_MAX ? 2 : 3;
        put(0xccU + static_cast<unsigned>(power));
        number(n, 1 << power);
    }
};

class MsgPackCodec final : public ArrayToBytesCodec {
public:
    explicit MsgPackCodec(const ChunkSpec& in) : shape_(in.shape) {}

    void encode(const ArrayView& in, Buffer& out) const override {
        const std::vector<VariableSlot> slots = gather_slots(in);
        MsgPackWriter writer;
        auto slot = slots.begin();
        put_list(writer, 0, slot);
        writer.text("|O");
        writer.value(Value::Array(shape_.begin(), shape_.end()));
        out = Buffer(std::as_bytes(std::span(writer.bytes)));
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        const MemoryHold held(static_cast<std::uint64_t>(element_count(shape_)) * sizeof(VariableSlot));
        MsgPackReader reader(in);
        const Value list = reader.value();
        if (!reader.rest().empty()) throw corrupt("{} bytes follow the list", reader.rest().size());
        take_objects(list, shape_, true, {}, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    void put_list(MsgPackWriter& writer, int d, std::vector<VariableSlot>::const_iterator& slot) const {
        writer.list(static_cast<std::size_t>(shape_[d]) + (d == 0 ? 2 : 0));
        for (std::int64_t i = 0; i < shape_[d]; ++i) {
            if (d + 1 < shape_.rank()) {
                put_list(writer, d + 1, slot);
                continue;
            }
            const std::string_view element = (slot++)->view();
            if (element.starts_with(no_text_mark)) {
                writer.value(Value::parse(element.substr(1)));
            } else {
                writer.text(element);
            }
        }
    }

    Shape shape_;
};

std::unique_ptr<ArrayToBytesCodec> make_msgpack2_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"raw", "use_bin_type", "use_single_float"});
    if (in.dtype.kind() != Kind::variable_text) {
        throw invalid_argument("it is for variable-length text, not for {}", in.dtype.str());
    }
    if (in.shape.rank() == 0) throw unsupported("it cannot say an array without dimensions");
    if (bool_member(configuration, "raw", false)) throw unsupported("raw is true, so its elements are bytes");
    return std::make_unique<MsgPackCodec>(in);
}

}  // namespace

extern constinit const CodecRow msgpack2_codec{
    .name = "numcodecs.msgpack2",
    .about = "variable-length text as MessagePack",
    .array_to_bytes = make_msgpack2_codec,
    .objects = Kind::variable_text,
    .may_hold_no_text = true,
    .encoding_only = R"({"use_bin_type": null, "use_single_float": null})",
};

}  // namespace tessera
