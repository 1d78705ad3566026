// "vlen-utf8", "vlen-bytes" and "numcodecs.vlen-array": the number of elements, then each element after its length. All
// counts take 4 little-endian bytes.
#include <cstring>

#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/memory_account.h>

#include <tessera/unicode.h>
#include "codec_row.h"
#include "variable_slots.h"

namespace tessera {

namespace {

class VlenCodec final : public ArrayToBytesCodec {
public:
    VlenCodec(const ChunkSpec& in, std::int64_t item_size)
        : dtype_(in.dtype), count_(static_cast<std::uint64_t>(element_count(in.shape))), item_size_(item_size) {
        if (count_ > UINT32_MAX) {
            throw unsupported("a chunk of {} elements is more than 4 bytes count; choose smaller chunks", count_);
        }
    }

    void encode(const ArrayView& in, Buffer& out) const override {
        const MemoryHold held(count_ * sizeof(VariableSlot));
        const std::vector<VariableSlot> slots = gather_slots(in);
        std::uint64_t size = 4;
        for (const VariableSlot& slot : slots) {
            require_length(slot.size);
            size += 4 + slot.size;
        }
        out.reset(static_cast<std::size_t>(size));
        std::byte* to = out.data();
        store_little<std::uint32_t>(to, static_cast<std::uint32_t>(count_));
        to += 4;
        for (const VariableSlot& slot : slots) {
            store_little<std::uint32_t>(to, static_cast<std::uint32_t>(slot.size));
            if (slot.size > 0) std::memcpy(to + 4, slot.data, static_cast<std::size_t>(slot.size));
            to += 4 + slot.size;
        }
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        Buffer copy(in);
        decode_owned(copy, out);
    }

    void decode_owned(Buffer& in, const MutableArrayView& out) const override {
        if (in.size() < 4) throw corrupt("{} bytes are too few for the number of elements", in.size());
        if (load_little<std::uint32_t>(in.data()) != count_) {
            throw corrupt("there are {} elements, but a chunk has {}", load_little<std::uint32_t>(in.data()), count_);
        }
        // Each element takes at least 4 bytes, so the number of elements is trusted only as far as the bytes permit.
        if ((in.size() - 4) / 4 < count_) {
            throw corrupt("{} bytes are too few for {} elements", in.size(), count_);
        }
        Arena& arena = arena_of(out);
        const bool tight = in.capacity() <= in.size() + in.size() / 8;  // otherwise unused capacity would be kept
        ByteSpan rest = arena.adopt(tight ? std::move(in) : Buffer(in.span())).subspan(4);
        const MemoryHold held(count_ * sizeof(VariableSlot));
        std::vector<VariableSlot> slots(static_cast<std::size_t>(count_));
        for (VariableSlot& slot : slots) slot = take(rest);
        if (!rest.empty()) throw corrupt("{} bytes follow the last element", rest.size());
        scatter_slots(slots, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    void require_length(std::uint64_t size) const {
        if (size > UINT32_MAX) throw unsupported("an element of {} bytes is more than 4 bytes count", size);
        if (size % static_cast<std::uint64_t>(item_size_) != 0) {
            throw invalid_argument("an element of {} bytes is no whole number of items of {}", size, item_size_);
        }
    }

    [[nodiscard]] VariableSlot take(ByteSpan& rest) const {
        if (rest.size() < 4 || rest.size() - 4 < load_little<std::uint32_t>(rest.data())) {
            throw corrupt("an element ends beyond the end of the chunk");
        }
        const std::uint32_t size = load_little<std::uint32_t>(rest.data());
        const VariableSlot slot{reinterpret_cast<const char*>(rest.data() + 4), size};
        rest = rest.subspan(4 + std::size_t{size});
        if (dtype_.kind() == Kind::variable_text && !count_utf8(slot.view())) {
            throw corrupt("an element is not UTF-8");
        }
        if (size % item_size_ != 0) {
            throw corrupt("an element of {} bytes is no whole number of items of {}", size, item_size_);
        }
        return slot;
    }

    DType dtype_;
    std::uint64_t count_;
    std::int64_t item_size_;
};

std::unique_ptr<ArrayToBytesCodec> make(const ChunkSpec& in, Kind kind, std::int64_t item_size) {
    if (in.dtype.kind() != kind) {
        throw invalid_argument("it is for variable-length {}, not for {}",
                               kind == Kind::variable_text ? "text" : "bytes", in.dtype.str());
    }
    return std::make_unique<VlenCodec>(in, item_size);
}

std::unique_ptr<ArrayToBytesCodec> make_vlen_utf8_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {});
    return make(in, Kind::variable_text, 1);
}

std::unique_ptr<ArrayToBytesCodec> make_vlen_bytes_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {});
    return make(in, Kind::variable_bytes, 1);
}

std::unique_ptr<ArrayToBytesCodec> make_vlen_array_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"dtype"});
    const DType item = DType::parse(configuration.at("dtype").as_string());
    if (item.is_variable() || item.kind() == Kind::object || item.size() == 0) {
        throw invalid_argument("dtype is {}; the items of arrays need a fixed size", item.str());
    }
    return make(in, Kind::variable_bytes, item.size());
}

constexpr CodecPart vlen_array_parts[] = {{"dtype", CodecPart::Type::text, {}, true}};

}  // namespace

extern constinit const CodecRow vlen_utf8_codec{
    .name = "vlen-utf8",
    .about = "variable-length text",
    .array_to_bytes = make_vlen_utf8_codec,
    .numcodecs = true,
    .objects = Kind::variable_text,
};

extern constinit const CodecRow vlen_bytes_codec{
    .name = "vlen-bytes",
    .about = "variable-length bytes",
    .array_to_bytes = make_vlen_bytes_codec,
    .numcodecs = true,
    .objects = Kind::variable_bytes,
};

extern constinit const CodecRow vlen_array_codec{
    .name = "numcodecs.vlen-array",
    .about = "variable-length arrays: vlen-array:DTYPE",
    .array_to_bytes = make_vlen_array_codec,
    .parts = vlen_array_parts,
    .objects = Kind::variable_bytes,
    .items = "dtype",
};

}  // namespace tessera
