// "packbits": some bits of each element, without gaps, the lowest bit of an element and of a byte first, as zarrs has
// it. v3. ("numcodecs.packbits" begins with the highest bit: packbits.cpp.)
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <array>
#include <cstring>

#include "codec_row.h"

namespace tessera {

namespace {

enum class Padding : std::uint8_t { none, first_byte, last_byte };
constexpr std::array<std::string_view, 3> padding_names{"none", "first_byte", "last_byte"};

/// Elements as numbers: complex ones are two.
struct Component {
    std::int64_t bytes;
    int bits;
    int count;  ///< of one element
    bool is_signed;
};

Component component_of(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
            return {1, 1, 1, false};
        case Kind::complex:
            return {dtype.size() / 2, static_cast<int>(4 * dtype.size()), 2, false};
        case Kind::integer:
        case Kind::datetime:
        case Kind::timedelta:
            return {dtype.size(), static_cast<int>(8 * dtype.size()), 1, true};
        case Kind::unsigned_integer:
        case Kind::real:
        case Kind::bfloat16:
            return {dtype.size(), static_cast<int>(8 * dtype.size()), 1, false};
        case Kind::raw:  // of a small type: each part is a byte
            if (dtype.size() <= 2) return {1, 8, static_cast<int>(dtype.size()), false};
            [[fallthrough]];
        default:
            throw invalid_argument("it is for booleans and numbers, not for {}", dtype.to_string());
    }
}

/// The dtype of the packed elements: little-endian.
DType little(const DType& dtype) {
    return dtype.order() == ByteOrder::none ? dtype : dtype.with_order(ByteOrder::little);
}

std::uint64_t low_bits(int n) {
    return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

class PackedBitsCodec final : public ArrayToBytesCodec {
public:
    PackedBitsCodec(const ChunkSpec& in, Padding padding, int first, int last)
        : dtype_(little(in.dtype)),
          shape_(in.shape),
          component_(component_of(in.dtype)),
          padding_(padding),
          first_(first),
          bits_(last - first + 1) {
        const std::int64_t total = checked_multiply(element_count(shape_), component_.count * std::int64_t{bits_},
                                                    "the number of bits of a chunk");
        bytes_ = static_cast<std::size_t>(ceil_div(total, 8));
        unused_ = static_cast<std::uint8_t>(static_cast<std::int64_t>(8 * bytes_) - total);
    }

    void encode(const ArrayView& in, Buffer& out) const override {
        NDArray elements(dtype_, shape_);
        copy_elements(in, elements);
        out.reset(bytes_ + (padding_ == Padding::none ? 0 : 1));
        std::byte* to = out.data() + (padding_ == Padding::first_byte ? 1 : 0);
        Wide stream = 0;
        int held = 0;
        for_each_component(elements.bytes(), [&](std::byte* p) {
            std::uint64_t v = 0;
            std::memcpy(&v, p, static_cast<std::size_t>(component_.bytes));
            if (component_.bits == 1) v = v != 0 ? 1 : 0;
            stream |= Wide{little_word(v) >> first_ & low_bits(bits_)} << held;
            for (held += bits_; held >= 8; held -= 8, stream >>= 8) *to++ = static_cast<std::byte>(stream & 0xff);
        });
        if (held > 0) *to = static_cast<std::byte>(stream & 0xff);
        if (padding_ == Padding::first_byte) out.data()[0] = std::byte{unused_};
        if (padding_ == Padding::last_byte) out.data()[bytes_] = std::byte{unused_};
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        ByteSpan packed = without_padding_byte(in);
        NDArray elements(dtype_, shape_);
        Wide stream = 0;
        int held = 0;
        for_each_component(elements.bytes(), [&](std::byte* p) {
            for (; held < bits_; held += 8, packed = packed.subspan(1)) {
                stream |= Wide{std::to_integer<std::uint8_t>(packed.front())} << held;
            }
            std::uint64_t v = static_cast<std::uint64_t>(stream) & low_bits(bits_);
            stream >>= bits_;
            held -= bits_;
            const bool negative = component_.is_signed && (v >> (bits_ - 1) & 1) != 0;
            v = (negative ? v | ~low_bits(bits_) : v) << first_;
            v = little_word(v);
            std::memcpy(p, &v, static_cast<std::size_t>(component_.bytes));
        });
        copy_elements(elements, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override {
        return bytes_ + (padding_ == Padding::none ? 0 : 1);
    }

private:
    __extension__ using Wide = unsigned __int128;

    /// Between a number and its little-endian bytes.
    static std::uint64_t little_word(std::uint64_t v) {
        return native_order == ByteOrder::little ? v : __builtin_bswap64(v);
    }

    template <class Body>
    void for_each_component(MutableByteSpan bytes, const Body& body) const {
        for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(component_.bytes)) body(&bytes[i]);
    }

    [[nodiscard]] ByteSpan without_padding_byte(ByteSpan in) const {
        if (in.size() != *encoded_size()) {
            throw corrupt("{} bytes were found, but a chunk of {} elements of {} has {}", in.size(), shape_.to_string(),
                          dtype_.to_string(), *encoded_size());
        }
        if (padding_ == Padding::none) return in;
        const std::byte said = padding_ == Padding::first_byte ? in.front() : in.back();
        if (said != std::byte{unused_}) {
            throw corrupt("{} says that {} bits are padding, but a chunk of {} elements has {}",
                          padding_names[static_cast<std::size_t>(padding_)], std::to_integer<int>(said),
                          shape_.to_string(), unused_);
        }
        return padding_ == Padding::first_byte ? in.subspan(1) : in.first(bytes_);
    }

    DType dtype_;
    Shape shape_;
    Component component_;
    Padding padding_;
    int first_;
    int bits_;
    std::size_t bytes_ = 0;    ///< without the one that says the padding
    std::uint8_t unused_ = 0;  ///< bits of the last byte
};

std::unique_ptr<ArrayToBytesCodec> make_packed_bits_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"padding_encoding", "first_bit", "last_bit"});
    const int bits = component_of(in.dtype).bits;
    const std::int64_t first = integer_member(configuration, "first_bit", 0, 0, bits - 1);
    const std::int64_t last = integer_member(configuration, "last_bit", bits - 1, first, bits - 1);
    const std::string_view padding = choice_member(configuration, "padding_encoding", "none", padding_names);
    const auto number = std::ranges::find(padding_names, padding) - padding_names.begin();
    return std::make_unique<PackedBitsCodec>(in, static_cast<Padding>(number), static_cast<int>(first),
                                             static_cast<int>(last));
}

}  // namespace

extern constinit const CodecRow packed_bits_codec{
    .name = "packbits",
    .about = "some bits of each element, packed",
    .array_to_bytes = make_packed_bits_codec,
    .short_notation = false,
};

}  // namespace tessera
