#include "thrift_compact.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tessera {

namespace {

constexpr int deepest = 16;

enum class Type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    i8 = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12,
};

class Reader {
public:
    explicit Reader(ByteSpan& in) : in_(in) {}

    ThriftValue structure(int depth) {
        if (depth > deepest) throw corrupt("structures are nested more than {} deep", deepest);
        ThriftValue value;
        int field = 0;
        for (;;) {
            const unsigned head = byte();
            const auto type = static_cast<Type>(head & 15);
            if (type == Type::stop) return value;
            field = head >> 4 != 0 ? field + static_cast<int>(head >> 4) : static_cast<int>(zigzag());
            value.fields.insert_or_assign(
                field, type == Type::yes || type == Type::no ? boolean(type == Type::yes) : of(type, depth));
        }
    }

private:
    unsigned byte() {
        if (in_.empty()) throw corrupt("the metadata are cut short");
        const auto value = std::to_integer<unsigned>(in_.front());
        in_ = in_.subspan(1);
        return value;
    }

    std::int64_t zigzag() {
        const std::uint64_t n = read_varint(in_);
        return static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1);
    }

    ByteSpan take(std::uint64_t size) {
        if (size > in_.size()) throw corrupt("the metadata are cut short");
        const ByteSpan taken = in_.first(static_cast<std::size_t>(size));
        in_ = in_.subspan(taken.size());
        return taken;
    }

    static ThriftValue boolean(bool is) {
        ThriftValue value;
        value.number = is ? 1 : 0;
        return value;
    }

    ThriftValue of(Type type, int depth) {
        ThriftValue value;
        switch (type) {
            case Type::yes:
            case Type::no:  // in a list each takes a byte
                return boolean(byte() == 1);
            case Type::i8:
                value.number = byte();
                if (value.number > std::numeric_limits<std::int8_t>::max()) value.number -= 256;  // two's complement
                return value;
            case Type::i16:
            case Type::i32:
            case Type::i64:
                value.number = zigzag();
                return value;
            case Type::real:
                (void)take(8);
                return value;
            case Type::binary: {
                const ByteSpan bytes = take(read_varint(in_));
                value.bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
                return value;
            }
            case Type::list:
            case Type::set:
                return list(depth);
            case Type::structure:
                return structure(depth + 1);
            default:
                throw corrupt("the metadata have a value of type {}, which Parquet's have not", static_cast<int>(type));
        }
    }

    ThriftValue list(int depth) {
        if (depth > deepest) throw corrupt("lists are nested more than {} deep", deepest);
        const unsigned head = byte();
        const std::uint64_t count = head >> 4 == 15 ? read_varint(in_) : head >> 4;
        // Each takes a byte at least.
        if (count > in_.size()) throw corrupt("the metadata are cut short");
        ThriftValue value;
        for (std::uint64_t n = 0; n < count; ++n) value.list.push_back(of(static_cast<Type>(head & 15), depth + 1));
        return value;
    }

    ByteSpan& in_;
};

}  // namespace

const ThriftValue& ThriftValue::at(int field) const {
    const auto found = fields.find(field);
    if (found == fields.end()) throw corrupt("the metadata lack field {}", field);
    return found->second;
}

std::int64_t ThriftValue::number_of(int field, std::int64_t otherwise) const {
    const auto found = fields.find(field);
    return found == fields.end() ? otherwise : found->second.number;
}

ThriftValue read_thrift(ByteSpan& in) {
    return Reader(in).structure(0);
}

std::uint64_t read_varint(ByteSpan& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in.empty()) break;
        const auto byte = std::to_integer<std::uint64_t>(in.front());
        in = in.subspan(1);
        value |= (byte & 127) << shift;
        if (byte < 128) return value;
    }
    throw corrupt("an integer is cut short");
}

}  // namespace tessera
