// "zfp" (v3) and "numcodecs.zfpy": numbers in blocks of 4 along each dimension, by libzfp. numcodecs' chunks begin with
// zfp's header, which says how to decode them; v3's do not.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "codec_row.h"

#ifdef TESSERA_ZFP
#include <zfp.h>
#endif

namespace tessera {

namespace {

#ifdef TESSERA_ZFP

/// How elements are numbers to zfp, which has integers and floats of 4 and 8 bytes.
struct ZfpNumbers {
    zfp_type type;
    int shift;             ///< to the left, of promoted integers
    std::int64_t offset;   ///< that the middle of the unsigned range has
    bool is_unsigned_big;  ///< u4 and u8: their lower half alone is there
};

ZfpNumbers zfp_numbers(const DType& dtype) {
    const int bits = static_cast<int>(8 * dtype.size());
    switch (dtype.kind()) {
        case Kind::real:
            if (bits == 16) return {zfp_type_float, 0, 0, false};
            return {bits == 32 ? zfp_type_float : zfp_type_double, 0, 0, false};
        case Kind::bfloat16:
            return {zfp_type_float, 0, 0, false};
        case Kind::datetime:
        case Kind::timedelta:
            return {zfp_type_int64, 0, 0, false};
        case Kind::integer:
            if (bits < 32) return {zfp_type_int32, 31 - bits, 0, false};
            return {bits == 32 ? zfp_type_int32 : zfp_type_int64, 0, 0, false};
        case Kind::unsigned_integer:
            if (bits < 32) return {zfp_type_int32, 31 - bits, std::int64_t{1} << (bits - 1), false};
            return {bits == 32 ? zfp_type_int32 : zfp_type_int64, 0, 0, true};
        default:
            throw invalid_argument("it is for integers and floats, not for {}", dtype.to_string());
    }
}

struct ZfpDelete {
    void operator()(zfp_stream* p) const { zfp_stream_close(p); }
    void operator()(zfp_field* p) const { zfp_field_free(p); }
    void operator()(bitstream* p) const { stream_close(p); }
};
template <class T>
using ZfpOwned = std::unique_ptr<T, ZfpDelete>;

/// libzfp allocates little; it says by nullptr that there is no memory.
template <class T>
ZfpOwned<T> zfp_owned(T* p) {
    if (p == nullptr) throw std::bad_alloc();
    return ZfpOwned<T>(p);
}

constexpr std::array<std::string_view, 5> zfp_modes{"expert", "fixed_rate", "fixed_precision", "fixed_accuracy",
                                                    "reversible"};

double zfp_number(const Value& configuration, std::string_view name, double least) {
    const double v = in_context([&] { return name; }, [&] { return configuration.at(name).as_double(); });
    if (!(v >= least) || std::isinf(v))
        throw invalid_argument("{} is {}, expected a number from {} on", name, v, least);
    return v;
}

/// A stream's parameters, for blocks of `rank` dimensions.
using ZfpSettings = void (*)(const Value& configuration, zfp_stream* stream, zfp_type type, unsigned rank);

void set_zfp_rate(zfp_stream* stream, double rate, zfp_type type, unsigned rank) {
    constexpr double most = 64;
    if (!(rate > 0 && rate <= most)) throw invalid_argument("rate is {}, expected above 0 and at most {}", rate, most);
    (void)zfp_stream_set_rate(stream, rate, type, rank, zfp_false);
}

void zfp_settings(const Value& configuration, zfp_stream* stream, zfp_type type, unsigned rank) {
    (void)configuration.at("mode");
    const std::string_view mode = choice_member(configuration, "mode", "", zfp_modes);
    if (mode == "reversible") {
        require_known_members(configuration, {"mode"});
        zfp_stream_set_reversible(stream);
    } else if (mode == "fixed_accuracy") {
        require_known_members(configuration, {"mode", "tolerance"});
        (void)zfp_stream_set_accuracy(stream, zfp_number(configuration, "tolerance", 0));
    } else if (mode == "fixed_rate") {
        require_known_members(configuration, {"mode", "rate"});
        set_zfp_rate(stream, zfp_number(configuration, "rate", 0), type, rank);
    } else if (mode == "fixed_precision") {
        require_known_members(configuration, {"mode", "precision"});
        (void)configuration.at("precision");
        (void)zfp_stream_set_precision(
            stream, static_cast<unsigned>(integer_member(configuration, "precision", 0, 0, ZFP_MAX_PREC)));
    } else {
        require_known_members(configuration, {"mode", "minbits", "maxbits", "maxprec", "minexp"});
        for (const std::string_view name : {"minbits", "maxbits", "maxprec", "minexp"}) (void)configuration.at(name);
        const auto most_bits = std::int64_t{UINT32_MAX};
        const auto minbits = static_cast<unsigned>(integer_member(configuration, "minbits", 0, 0, ZFP_MAX_BITS));
        const auto maxbits = static_cast<unsigned>(integer_member(configuration, "maxbits", 0, minbits, most_bits));
        const auto maxprec = static_cast<unsigned>(integer_member(configuration, "maxprec", 0, 1, ZFP_MAX_PREC));
        const auto minexp = static_cast<int>(integer_member(configuration, "minexp", 0, -1100, 1100));
        if (zfp_stream_set_params(stream, minbits, maxbits, maxprec, minexp) == zfp_false) {
            throw invalid_argument("libzfp has no such expert mode: {}", configuration.dump());
        }
    }
}

/// numcodecs' numbers of the modes; it stores without loss what has none of the others.
void zfpy_settings(const Value& configuration, zfp_stream* stream, zfp_type type, unsigned rank) {
    require_known_members(configuration, {"mode", "tolerance", "rate", "precision", "compression_kwargs"});
    const std::int64_t mode = integer_member(configuration, "mode", 4, 2, 4);
    const std::string_view name = mode == 2 ? "rate" : mode == 3 ? "precision" : "tolerance";
    const Value* given = given_member(configuration, name);
    const double v = given == nullptr ? -1 : given->as_double();
    if (mode == 2 && v >= 0) {
        set_zfp_rate(stream, v, type, rank);
    } else if (mode == 3 && v >= 0) {
        (void)zfp_stream_set_precision(stream, static_cast<unsigned>(std::min<double>(v, ZFP_MAX_PREC)));
    } else if (mode == 4 && v >= 0) {
        (void)zfp_stream_set_accuracy(stream, zfp_number(configuration, name, 0));
    } else {
        zfp_stream_set_reversible(stream);
    }
}

class ZfpCodec final : public ArrayToBytesCodec {
public:
    ZfpCodec(const Value& configuration, const ChunkSpec& in, ZfpSettings settings, bool header)
        : configuration_(configuration),
          dtype_(in.dtype),
          shape_(in.shape),
          numbers_(zfp_numbers(in.dtype)),
          settings_(settings),
          header_(header) {
        if (shape_.rank() > 4) {
            throw unsupported("a chunk of {} has {} dimensions; zfp has at most 4", shape_.to_string(), shape_.rank());
        }
        if (header && promoted()) {
            throw invalid_argument("it is for <i4, <i8, <f4 and <f8, not for {}", in.dtype.to_string());
        }
        (void)stream();
    }

    void encode(const ArrayView& in, Buffer& out) const override {
        NDArray numbers = promoted_numbers(in);
        const ZfpOwned<zfp_field> field = field_of(numbers.bytes().data());
        const ZfpOwned<zfp_stream> zfp = stream();
        out.reset(zfp_stream_maximum_size(zfp.get(), field.get()));
        const ZfpOwned<bitstream> bits = zfp_owned(stream_open(out.data(), out.size()));
        zfp_stream_set_bit_stream(zfp.get(), bits.get());
        if (header_ && zfp_write_header(zfp.get(), field.get(), ZFP_HEADER_FULL) == 0) {
            throw invalid_argument("libzfp cannot write the header of a chunk of {}", shape_.to_string());
        }
        const std::size_t size = zfp_compress(zfp.get(), field.get());
        if (size == 0) throw invalid_argument("libzfp cannot encode a chunk of {}", shape_.to_string());
        out.resize(size);
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        ZfpOwned<zfp_stream> zfp = stream();
        NDArray numbers(number_dtype(), shape_);
        const ZfpOwned<zfp_field> field = field_of(numbers.bytes().data());
        if (header_) read_header(in, zfp.get(), field.get());
        unsigned least = 0;
        zfp_stream_params(zfp.get(), &least, nullptr, nullptr, nullptr);
        if (least > ZFP_MAX_BITS) throw corrupt("the header asks for blocks of {} bits", least);
        // libzfp reads as many bits as the numbers need, however few there are: it finds zeros after the last ones.
        Buffer padded(readable(zfp.get(), field.get(), in.size()));
        std::byte* const rest = std::ranges::copy(in, padded.data()).out;
        std::fill(rest, padded.data() + padded.size(), std::byte{0});
        const ZfpOwned<bitstream> bits = zfp_owned(stream_open(padded.data(), padded.size()));
        zfp_stream_set_bit_stream(zfp.get(), bits.get());
        if (header_) (void)zfp_read_header(zfp.get(), field.get(), ZFP_HEADER_FULL);
        zfp_field_set_pointer(field.get(), numbers.bytes().data());
        const std::size_t read = zfp_decompress(zfp.get(), field.get());
        // libzfp counts whole words.
        constexpr std::size_t word = sizeof(std::uint64_t);
        const std::size_t there = (in.size() + word - 1) / word * word;
        if (read == 0 || read > there) {
            throw corrupt("{} bytes are too few for a chunk of {} elements of {}", in.size(), shape_.to_string(),
                          dtype_.to_string());
        }
        if (read + word <= in.size()) {
            throw corrupt("{} bytes were found, but a chunk of {} elements of {} has {}", in.size(), shape_.to_string(),
                          dtype_.to_string(), read);
        }
        copy_numbers(numbers, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    [[nodiscard]] bool promoted() const {
        return numbers_.shift != 0 || numbers_.is_unsigned_big || !number_dtype().equal_but_order(dtype_);
    }

    /// Of the numbers that zfp gets.
    [[nodiscard]] DType number_dtype() const {
        switch (numbers_.type) {
            case zfp_type_int32:
                return DType::scalar(Kind::integer, 4);
            case zfp_type_int64:
                return dtype_.size() == 8 && dtype_.kind() != Kind::unsigned_integer ? dtype_.with_order(native_order)
                                                                                     : DType::scalar(Kind::integer, 8);
            case zfp_type_float:
                return DType::scalar(Kind::real, 4);
            default:
                return DType::scalar(Kind::real, 8);
        }
    }

    [[nodiscard]] ZfpOwned<zfp_stream> stream() const {
        ZfpOwned<zfp_stream> zfp = zfp_owned(zfp_stream_open(nullptr));
        settings_(configuration_, zfp.get(), numbers_.type, static_cast<unsigned>(std::max(shape_.rank(), 1)));
        return zfp;
    }

    [[nodiscard]] ZfpOwned<zfp_field> field_of(std::byte* data) const {
        const auto length = [&](int d) { return static_cast<std::size_t>(shape_[shape_.rank() - 1 - d]); };
        switch (shape_.rank()) {
            case 0:
                return zfp_owned(zfp_field_1d(data, numbers_.type, 1));
            case 1:
                return zfp_owned(zfp_field_1d(data, numbers_.type, length(0)));
            case 2:
                return zfp_owned(zfp_field_2d(data, numbers_.type, length(0), length(1)));
            case 3:
                return zfp_owned(zfp_field_3d(data, numbers_.type, length(0), length(1), length(2)));
            default:
                return zfp_owned(zfp_field_4d(data, numbers_.type, length(0), length(1), length(2), length(3)));
        }
    }

    /// Takes type, shape and mode from the header. The shape may be flat.
    void read_header(ByteSpan in, zfp_stream* zfp, zfp_field* field) const {
        std::array<std::byte, (ZFP_HEADER_MAX_BITS + 63) / 64 * 8 + 8> start{};
        std::ranges::copy(in.first(std::min(in.size(), start.size())), start.begin());
        const ZfpOwned<bitstream> bits = zfp_owned(stream_open(start.data(), start.size()));
        zfp_stream_set_bit_stream(zfp, bits.get());
        if (zfp_read_header(zfp, field, ZFP_HEADER_FULL) == 0) throw corrupt("it does not begin with zfp's header");
        if (field->type != numbers_.type) {
            throw corrupt("the header says elements of zfp's type {}, but those of {} have {}",
                          static_cast<int>(field->type), dtype_.to_string(), static_cast<int>(numbers_.type));
        }
        std::int64_t count = 1;
        for (const std::size_t n : {field->nx, field->ny, field->nz, field->nw}) {
            count = checked_multiply(count, static_cast<std::int64_t>(std::max<std::size_t>(n, 1)), "the elements");
        }
        if (count != element_count(shape_) || field->nx == 0) {
            throw corrupt("the header says {} elements, but a chunk of {} has {}", count, shape_.to_string(),
                          element_count(shape_));
        }
        zfp_stream_set_bit_stream(zfp, nullptr);
    }

    /// No decoding reads more bytes.
    static std::size_t readable(const zfp_stream* zfp, const zfp_field* field, std::size_t there) {
        std::size_t blocks = 1;
        for (const std::size_t n : {field->nx, field->ny, field->nz, field->nw})
            blocks *= (std::max<std::size_t>(n, 1) + 3) / 4;
        const std::size_t most = zfp_stream_maximum_size(zfp, field) + 4 * blocks + 64;
        return (std::max(most, there) + 7) / 8 * 8;
    }

    [[nodiscard]] NDArray promoted_numbers(const ArrayView& in) const {
        NDArray numbers(number_dtype(), shape_);
        if (!promoted()) {
            copy_elements(in, numbers);
            return numbers;
        }
        NDArray elements(dtype_.with_order(native_order), shape_);
        copy_elements(in, elements);
        const std::byte* from = elements.bytes().data();
        for (std::int64_t i = 0; i < numbers.count(); ++i) {
            if (numbers_.type == zfp_type_float) {
                std::uint16_t half = 0;
                std::memcpy(&half, from + 2 * i, 2);
                store(numbers, i, dtype_.kind() == Kind::bfloat16 ? bfloat16_to_float(half) : half_to_float(half));
            } else if (numbers_.is_unsigned_big) {
                promote_big(from, i, numbers);
            } else {
                const std::int64_t v = small_integer(from, i) - numbers_.offset;
                store(numbers, i, static_cast<std::int32_t>(v * (std::int64_t{1} << numbers_.shift)));
            }
        }
        return numbers;
    }

    [[nodiscard]] std::int64_t small_integer(const std::byte* from, std::int64_t i) const {
        const bool is_signed = dtype_.kind() == Kind::integer;
        if (dtype_.size() == 1) {
            const auto byte = std::to_integer<std::uint8_t>(from[i]);
            return is_signed ? static_cast<std::int8_t>(byte) : byte;
        }
        std::uint16_t v = 0;
        std::memcpy(&v, from + 2 * i, 2);
        return is_signed ? static_cast<std::int16_t>(v) : v;
    }

    void promote_big(const std::byte* from, std::int64_t i, NDArray& numbers) const {
        std::uint64_t v = 0;
        std::memcpy(&v, from + dtype_.size() * i, static_cast<std::size_t>(dtype_.size()));
        const std::uint64_t most = numbers_.type == zfp_type_int32 ? INT32_MAX : INT64_MAX;
        if (v > most) {
            throw invalid_argument("{} is above {}: of {} zfp has the lower half of the numbers", v, most,
                                   dtype_.to_string());
        }
        if (numbers_.type == zfp_type_int32) {
            store(numbers, i, static_cast<std::int32_t>(v));
        } else {
            store(numbers, i, static_cast<std::int64_t>(v));
        }
    }

    template <class T>
    static void store(NDArray& numbers, std::int64_t i, T v) {
        std::memcpy(numbers.bytes().data() + i * static_cast<std::int64_t>(sizeof v), &v, sizeof v);
    }
    template <class T>
    static T load(const NDArray& numbers, std::int64_t i) {
        T v;
        std::memcpy(&v, numbers.bytes().data() + i * static_cast<std::int64_t>(sizeof v), sizeof v);
        return v;
    }

    /// The bits of the element that number `i` was made of.
    [[nodiscard]] std::uint64_t demoted(const NDArray& numbers, std::int64_t i) const {
        if (numbers_.type == zfp_type_float) {
            const double v = load<float>(numbers, i);
            return dtype_.kind() == Kind::bfloat16 ? double_to_bfloat16(v) : double_to_half(v);
        }
        const std::int64_t v =
            numbers_.type == zfp_type_int32 ? load<std::int32_t>(numbers, i) : load<std::int64_t>(numbers, i);
        if (numbers_.is_unsigned_big) return static_cast<std::uint64_t>(std::max<std::int64_t>(v, 0));
        const bool is_signed = dtype_.kind() == Kind::integer;
        const std::int64_t half = std::int64_t{1} << (8 * dtype_.size() - 1);
        return static_cast<std::uint64_t>(std::clamp((v >> numbers_.shift) + numbers_.offset, is_signed ? -half : 0,
                                                     is_signed ? half - 1 : 2 * half - 1));
    }

    void copy_numbers(const NDArray& numbers, const MutableArrayView& out) const {
        if (!promoted()) return copy_elements(numbers, out);
        NDArray elements(dtype_.with_order(native_order), shape_);
        std::byte* to = elements.bytes().data();
        const auto size = static_cast<std::size_t>(dtype_.size());
        for (std::int64_t i = 0; i < numbers.count(); ++i, to += size) {
            const std::uint64_t bits = demoted(numbers, i);  // the low bytes first
            std::array<std::byte, 8> bytes{};
            for (std::size_t b = 0; b < size; ++b) bytes[b] = static_cast<std::byte>(bits >> 8 * b);
            if (native_order == ByteOrder::big)
                std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
            std::memcpy(to, bytes.data(), size);
        }
        copy_elements(elements, out);
    }

    Value configuration_;
    DType dtype_;
    Shape shape_;
    ZfpNumbers numbers_;
    ZfpSettings settings_;
    bool header_;
};

std::unique_ptr<ArrayToBytesCodec> make_zfp_codec(const Value& configuration, const ChunkSpec& in) {
    return std::make_unique<ZfpCodec>(configuration, in, zfp_settings, false);
}
std::unique_ptr<ArrayToBytesCodec> make_zfpy_codec(const Value& configuration, const ChunkSpec& in) {
    return std::make_unique<ZfpCodec>(configuration, in, zfpy_settings, true);
}

#else

std::unique_ptr<ArrayToBytesCodec> make_zfp_codec(const Value& /*configuration*/, const ChunkSpec& /*in*/) {
    throw unsupported("this program was built without libzfp (libzfp-dev)");
}
constexpr auto make_zfpy_codec = make_zfp_codec;

#endif

}  // namespace

extern constinit const CodecRow zfp_codec{
    .name = "zfp",
    .about = "numbers in blocks, with a bound on rate, precision or error, or without loss",
    .array_to_bytes = make_zfp_codec,
    .short_notation = false,
};

extern constinit const CodecRow zfpy_codec{
    .name = "numcodecs.zfpy",
    .about = "the same with zfp's header, of 32 and 64 bits",
    .array_to_bytes = make_zfpy_codec,
    .short_notation = false,
    .compressor = true,
    .encoding_only = R"({"mode": 4, "tolerance": -1, "rate": -1, "precision": -1, "compression_kwargs": null})",
};

}  // namespace tessera
