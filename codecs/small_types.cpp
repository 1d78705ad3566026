// "data_type": numbers as elements of a type that only v3 has: see small_type.h. The metadata of v3 say it as their
// data_type, and not as a codec.
#include <fmt/ranges.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/small_type.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "codec_row.h"

namespace tessera {

namespace {

using Form = SmallType::Form;

constexpr SmallType small_types[] = {
    {"int2", Form::signed_integer, 2, 0, 0, 1},
    {"int4", Form::signed_integer, 4, 0, 0, 1},
    {"uint2", Form::unsigned_integer, 2, 0, 0, 1},
    {"uint4", Form::unsigned_integer, 4, 0, 0, 1},
    {"float4_e2m1fn", Form::no_nan, 4, 1, 1, 1},
    {"float6_e2m3fn", Form::no_nan, 6, 3, 1, 1},
    {"float6_e3m2fn", Form::no_nan, 6, 2, 3, 1},
    {"float8_e3m4", Form::ieee, 8, 4, 3, 1},
    {"float8_e4m3", Form::ieee, 8, 3, 7, 1},
    {"float8_e4m3b11fnuz", Form::no_zero, 8, 3, 11, 1},
    {"float8_e4m3fn", Form::finite, 8, 3, 7, 1},
    {"float8_e4m3fnuz", Form::no_zero, 8, 3, 8, 1},
    {"float8_e5m2", Form::ieee, 8, 2, 15, 1},
    {"float8_e5m2fnuz", Form::no_zero, 8, 2, 16, 1},
    {"float8_e8m0fnu", Form::exponents, 8, 0, 127, 1},
    // complex_bfloat16 and complex_float16, whose parts are not listed as types of their own
    {"bfloat16", Form::ieee, 16, 7, 127, 2},
    {"float16", Form::ieee, 16, 10, 15, 2},
};

constexpr std::string_view complex_prefix = "complex_";

bool is_integer(const SmallType& type) {
    return type.form == Form::signed_integer || type.form == Form::unsigned_integer;
}

/// A part as a float. Every small float is one exactly; of a NaN the bits of the mantissa are kept.
float float_of(const SmallType& type, std::uint32_t code) {
    const std::uint32_t sign = type.form == Form::exponents ? 0 : code >> (type.bits - 1) & 1;
    const std::uint32_t magnitude = type.form == Form::exponents ? code : code & ((1U << (type.bits - 1)) - 1);
    const std::uint32_t fraction = magnitude & ((1U << type.mantissa) - 1);
    const auto exponent = static_cast<int>(magnitude >> type.mantissa);
    const std::uint32_t last = ((1U << (type.bits - 1)) - 1) >> type.mantissa;  // the exponent of all ones
    const auto not_a_number = [&](std::uint32_t payload) {
        return std::bit_cast<float>(sign << 31 | 0x7f800000U | payload);
    };
    constexpr std::uint32_t quiet = 1U << 22;
    switch (type.form) {
        case Form::ieee:
            if (static_cast<std::uint32_t>(exponent) == last) return not_a_number(fraction << (23 - type.mantissa));
            break;
        case Form::finite:
            if (magnitude == (1U << (type.bits - 1)) - 1) return not_a_number(quiet);
            break;
        case Form::no_zero:
            if (sign != 0 && magnitude == 0) return std::bit_cast<float>(0x7fc00000U);
            break;
        case Form::exponents:
            return code == 0xff ? not_a_number(quiet) : std::ldexp(1.0F, exponent - type.bias);
        default:
            break;
    }
    const std::uint32_t whole = exponent == 0 ? fraction : fraction | 1U << type.mantissa;
    const float value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - type.bias - type.mantissa);
    return sign != 0 ? -value : value;
}

/// All values of a type, and the code of any float.
class FloatCodes {
public:
    explicit FloatCodes(const SmallType& type) : type_(type) {
        for (std::uint32_t code = 0; code < 1U << type.bits; ++code) values_.push_back(float_of(type, code));
        const std::size_t positive = type.form == Form::exponents ? values_.size() : values_.size() / 2;
        std::size_t n = 0;
        while (n < positive && std::isfinite(values_[n])) ++n;
        finite_ = n;
        // Where the next value would be, were there one: half way there is what rounds to none of the values.
        const double most = values_[finite_ - 1];
        beyond_ = most + (type.form == Form::exponents ? most : most - values_[finite_ - 2]);
    }

    [[nodiscard]] float value(std::uint32_t code) const { return values_[code & (values_.size() - 1)]; }

    /// Rounded to nearest, ties to even. Throws invalid_argument for what the type does not have.
    [[nodiscard]] std::uint32_t code(float v) const {
        const std::uint32_t sign = std::signbit(v) && type_.form != Form::exponents ? 1U << (type_.bits - 1) : 0;
        if (std::isnan(v)) return sign | code_of_nan(v);
        if (std::signbit(v) && sign == 0) refuse(v);
        const double magnitude = std::abs(static_cast<double>(v));
        const auto finite = std::span(values_).first(finite_);
        const auto above = std::ranges::lower_bound(finite, magnitude, {}, [](float x) { return double{x}; });
        auto n = static_cast<std::size_t>(above - finite.begin());
        if (n == finite_ || (n > 0 && magnitude != values_[n])) {
            const double low = values_[n - 1];
            const double high = n == finite_ ? beyond_ : double{values_[n]};
            const double middle = low + (high - low) / 2;
            if (magnitude < middle || (magnitude == middle && (n - 1) % 2 == 0)) --n;
        }
        if (n == 0 && magnitude == 0 && values_[0] != 0) refuse(v);
        if (n == finite_) {
            if (type_.form != Form::ieee) refuse(v);
            n = std::size_t{((1U << (type_.bits - 1)) - 1) >> type_.mantissa} << type_.mantissa;  // infinity
        }
        return n == 0 && type_.form == Form::no_zero ? 0 : sign | static_cast<std::uint32_t>(n);
    }

private:
    [[nodiscard]] std::uint32_t code_of_nan(float v) const {
        const std::uint32_t magnitude = (1U << (type_.bits - 1)) - 1;
        switch (type_.form) {
            case Form::ieee: {
                const std::uint32_t fraction = (std::bit_cast<std::uint32_t>(v) & 0x7fffffU) >> (23 - type_.mantissa);
                const std::uint32_t exponent = magnitude >> type_.mantissa << type_.mantissa;
                return exponent | (fraction != 0 ? fraction : 1U << (type_.mantissa - 1));
            }
            case Form::finite:
                return magnitude;
            case Form::no_zero:
                return 1U << (type_.bits - 1);
            case Form::exponents:
                return 0xff;
            default:
                refuse(v);
        }
    }

    [[noreturn]] void refuse(float v) const {
        throw invalid_argument("{} has no {}; its finite values end at {}", type_.name(), v, values_[finite_ - 1]);
    }

    SmallType type_;
    std::vector<float> values_;
    std::size_t finite_ = 0;  ///< the first so many are finite and not negative, in order
    double beyond_ = 0;
};

class SmallTypeCodec final : public ArrayToArrayCodec {
public:
    SmallTypeCodec(const ChunkSpec& in, const SmallType& type)
        : type_(type), in_(in.dtype), shape_(in.shape), big_(in.dtype.order() == ByteOrder::big) {
        if (!is_integer(type)) codes_.emplace(type);
        // Not a number to the codecs that follow: they would compute with its bits.
        encoded_ = {DType::raw(type.parts * type.part_bytes()), in.shape, std::nullopt};
        if (!in.fill) return;
        const NDArray fill =
            in_context([] { return "the fill value"; }, [&] { return encode(view_bytes(in.fill->data(), in_, {})); });
        encoded_.fill.emplace(fill.bytes().begin(), fill.bytes().end());
    }

    [[nodiscard]] const ChunkSpec& encoded() const override { return encoded_; }

    [[nodiscard]] NDArray encode(const ArrayView& in) const override {
        NDArray numbers(in_.with_order(native_order), in.shape);
        copy_elements(in, numbers);
        NDArray out(encoded_.dtype, in.shape);
        const std::byte* from = numbers.bytes().data();
        std::byte* to = out.bytes().data();
        for (std::int64_t n = type_.parts * numbers.count(); n > 0; --n) {
            to = put(to, code_at(from));
            from += is_integer(type_) ? 1 : 4;
        }
        return out;
    }

    void decode(const ArrayView& in, const MutableArrayView& out) const override {
        const NDArray packed = NDArray::copy_of(in);
        NDArray numbers(in_.with_order(native_order), in.shape);
        const std::byte* from = packed.bytes().data();
        std::byte* to = numbers.bytes().data();
        for (std::int64_t n = type_.parts * numbers.count(); n > 0; --n) {
            const std::uint32_t code = take(from);
            if (codes_) {
                const float v = codes_->value(code);
                std::memcpy(to, &v, sizeof v);
                to += sizeof v;
            } else {
                const std::uint32_t low = code & ((1U << type_.bits) - 1);
                const bool negative = type_.form == Form::signed_integer && (low >> (type_.bits - 1) & 1) != 0;
                *to++ = static_cast<std::byte>(negative ? low | ~0U << type_.bits : low);
            }
        }
        copy_elements(numbers, out);
    }

private:
    [[nodiscard]] std::uint32_t code_at(const std::byte* p) const {
        if (codes_) {
            float v = 0;
            std::memcpy(&v, p, sizeof v);
            return codes_->code(v);
        }
        const bool is_signed = type_.form == Form::signed_integer;
        const auto byte = std::to_integer<std::uint8_t>(*p);
        const int v = is_signed ? static_cast<std::int8_t>(byte) : byte;
        const int most = (1 << (type_.bits - (is_signed ? 1 : 0))) - 1;
        const int least = is_signed ? -most - 1 : 0;
        if (v < least || v > most) {
            throw invalid_argument("{} has no {}; it has {} to {}", type_.name(), v, least, most);
        }
        return byte & ((1U << type_.bits) - 1);
    }

    [[nodiscard]] std::byte* put(std::byte* to, std::uint32_t code) const {
        if (type_.part_bytes() == 1) {
            *to = static_cast<std::byte>(code);
            return to + 1;
        }
        to[big_ ? 1 : 0] = static_cast<std::byte>(code & 0xff);
        to[big_ ? 0 : 1] = static_cast<std::byte>(code >> 8);
        return to + 2;
    }

    [[nodiscard]] std::uint32_t take(const std::byte*& from) const {
        const auto byte = [](std::byte b) { return std::to_integer<std::uint32_t>(b); };
        if (type_.part_bytes() == 1) return byte(*from++);
        const std::uint32_t code = byte(from[big_ ? 1 : 0]) | byte(from[big_ ? 0 : 1]) << 8;
        from += 2;
        return code;
    }

    SmallType type_;
    DType in_;
    Shape shape_;
    bool big_;
    std::optional<FloatCodes> codes_;  ///< of floats
    ChunkSpec encoded_;
};

std::unique_ptr<ArrayToArrayCodec> make_small_type_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"name"});
    const std::string& name = configuration.at("name").as_string();
    const auto type = small_type(name);
    if (!type) {
        std::vector<std::string> names;
        for (const SmallType& known : small_types) {
            if (known.parts == 1) names.emplace_back(known.part);
            if (!is_integer(known)) names.push_back(fmt::format("{}{}", complex_prefix, known.part));
        }
        throw invalid_argument("\"{}\" is no small type; they are {}", name, fmt::join(names, ", "));
    }
    if (!type->in_memory().equal_but_order(in.dtype)) {
        throw invalid_argument("elements of {} are {} in memory, not {}", name, type->in_memory().to_string(),
                               in.dtype.to_string());
    }
    return std::make_unique<SmallTypeCodec>(in, *type);
}

constexpr CodecPart small_type_parts[] = {{"name", CodecPart::Type::text, {}, true}};

}  // namespace

std::string SmallType::name() const {
    return fmt::format("{}{}", parts == 2 ? complex_prefix : "", part);
}

DType SmallType::in_memory() const {
    switch (form) {
        case Form::signed_integer:
            return DType::scalar(Kind::integer, 1);
        case Form::unsigned_integer:
            return DType::scalar(Kind::unsigned_integer, 1);
        default:
            return DType::scalar(parts == 2 ? Kind::complex : Kind::real, 4 * std::int64_t{parts}, ByteOrder::little);
    }
}

std::optional<SmallType> small_type(std::string_view name) {
    const bool complex = name.starts_with(complex_prefix);
    const std::string_view part = complex ? name.substr(complex_prefix.size()) : name;
    for (SmallType type : small_types) {
        if (type.part != part || (complex ? is_integer(type) : type.parts == 2)) continue;
        if (complex) type.parts = 2;
        return type;
    }
    return {};
}

extern constinit const CodecRow small_type_codec{
    .name = small_type_codec_name,
    .about = "numbers of 2 to 8 bits, of v3: data_type:NAME, as int4 or float8_e5m2",
    .array_to_array = make_small_type_codec,
    .parts = small_type_parts,
};

}  // namespace tessera
