// "cast_value": numbers converted to another type of number, with a rule for rounding, one for values out of range, and
// a list of values that become others (NaN to an integer). v3.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "codec_row.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

/// Holds every element exactly: 64-bit integers and doubles.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

enum class Rounding : std::uint8_t { nearest_even, towards_zero, towards_positive, towards_negative, nearest_away };
constexpr std::array<std::string_view, 5> rounding_names{"nearest-even", "towards-zero", "towards-positive",
                                                         "towards-negative", "nearest-away"};
enum class OutOfRange : std::uint8_t { refuse, clamp, wrap };
constexpr std::array<std::string_view, 3> out_of_range_names{"", "clamp", "wrap"};

struct CastRules {
    Rounding rounding;
    OutOfRange out_of_range;
};

/// Whether to take the number of larger magnitude, of the two that `v` lies between. `half` compares the distance from
/// the smaller one with half of the way; `odd`: the smaller one is odd.
bool away_from_zero(Rounding rounding, bool negative, int half, bool odd) {
    switch (rounding) {
        case Rounding::towards_zero:
            return false;
        case Rounding::towards_positive:
            return !negative;
        case Rounding::towards_negative:
            return negative;
        case Rounding::nearest_away:
            return half >= 0;
        case Rounding::nearest_even:
            break;
    }
    return half > 0 || (half == 0 && odd);
}

int compare(Exact a, Exact b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

[[noreturn]] void refuse_cast(Exact v, const DType& to) {
    throw invalid_argument("{} cannot be cast to {}, and the codec has no rule for it", static_cast<double>(v),
                           to.to_string());
}

template <std::integral T>
T cast_exact(Exact v, const CastRules& rules, const DType& to) {
    if (!std::isfinite(v)) refuse_cast(v, to);
    const Exact below = std::floor(std::abs(v));
    const Exact rest = std::abs(v) - below;
    const bool up = rest != 0 && away_from_zero(rules.rounding, v < 0, compare(rest, 0.5L), std::fmod(below, 2) != 0);
    const Exact whole = std::copysign(below + (up ? 1 : 0), v);
    constexpr Exact least = std::numeric_limits<T>::min();
    constexpr Exact most = std::numeric_limits<T>::max();
    if (whole >= least && whole <= most) return static_cast<T>(whole);
    if (rules.out_of_range == OutOfRange::refuse) refuse_cast(v, to);
    if (rules.out_of_range == OutOfRange::clamp)
        return whole < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    const Exact modulo = std::fmod(std::abs(whole), 0x1p64L);  // of which the low bits count
    const auto bits = static_cast<std::uint64_t>(modulo);
    return static_cast<T>(whole < 0 ? std::uint64_t{0} - bits : bits);
}

/// A float of fewer bits: its largest exponent, and its magnitude as bits.
template <class T>
struct FloatFormat;
template <>
struct FloatFormat<double> {
    using Bits = std::uint64_t;
    static constexpr int exponents = 1024;
};
template <>
struct FloatFormat<float> {
    using Bits = std::uint32_t;
    static constexpr int exponents = 128;
};
template <>
struct FloatFormat<Half> {
    using Bits = std::uint16_t;
    static constexpr int exponents = 16;
};

template <class T>
requires(!std::integral<T>) T cast_exact(Exact v, const CastRules& rules, const DType& to) {
    using Bits = typename FloatFormat<T>::Bits;
    const T nearest = static_cast<T>(static_cast<double>(v));
    if (static_cast<Exact>(static_cast<double>(nearest)) == v || std::isnan(v)) return nearest;
    const Exact magnitude = std::abs(v);
    const auto at = [](Bits bits) { return static_cast<Exact>(static_cast<double>(std::bit_cast<T>(bits))); };
    Bits below = std::bit_cast<Bits>(T(static_cast<double>(magnitude)));
    while (at(below) > magnitude) --below;
    const Bits above = below + 1;
    const Exact beyond = std::ldexp(Exact{1}, FloatFormat<T>::exponents);  // the next number, were there one
    const Exact end = std::isinf(at(above)) ? beyond : at(above);
    const int half = compare(magnitude - at(below), end - magnitude);
    const Bits taken = away_from_zero(rules.rounding, v < 0, half, below % 2 != 0) ? above : below;
    if ((magnitude >= beyond || std::isinf(at(taken))) && rules.out_of_range != OutOfRange::clamp) refuse_cast(v, to);
    const double value = static_cast<double>(std::bit_cast<T>(magnitude >= beyond ? above : taken));
    return T(v < 0 ? -value : value);
}

template <class T>
Exact exact(T v) {
    if constexpr (std::integral<T>)
        return static_cast<Exact>(v);
    else
        return static_cast<Exact>(static_cast<double>(v));
}

/// Explicit replacements, which precede the rules.
class ScalarMap {
public:
    ScalarMap(const Value* list, const DType& from, const DType& to) {
        if (list == nullptr) return;
        for (const Value& pair : list->as_array()) {
            if (pair.as_array().size() != 2) throw invalid_argument("{} is no pair of values", pair.dump());
            const ElementBytes in = scalar_member(from, pair.as_array()[0], "a value");
            add(from, in, scalar_member(to, pair.as_array()[1], "a value"));
        }
        std::ranges::stable_sort(entries_, {}, &Entry::first);
    }

    [[nodiscard]] bool empty() const { return entries_.empty() && !nan_; }
    /// The converted `v`; nullptr: what the rules say.
    [[nodiscard]] const std::byte* find(Exact v) const {
        if (std::isnan(v)) return nan_ ? nan_->data() : nullptr;
        const auto found = std::ranges::lower_bound(entries_, v, {}, &Entry::first);
        return found != entries_.end() && found->first == v ? found->second.data() : nullptr;
    }

private:
    using Entry = std::pair<Exact, ElementBytes>;

    void add(const DType& from, const ElementBytes& in, ElementBytes out) {
        with_number(from, [&](auto type) {
            using T = decltype(type);
            if constexpr (std::convertible_to<T, double>) {
                T v;
                std::memcpy(&v, in.data(), sizeof v);
                if (!std::isnan(exact(v))) {
                    entries_.emplace_back(exact(v), std::move(out));
                } else if (!nan_) {
                    nan_ = std::move(out);
                }
            }
        });
    }

    std::vector<Entry> entries_;  ///< sorted; of equal values the first one given counts
    std::optional<ElementBytes> nan_;
};

class CastValueCodec final : public NumericFilter {
public:
    CastValueCodec(const ChunkSpec& in, const DType& to, const CastRules& rules, const Value* map)
        : NumericFilter(in, in.dtype, to),
          rules_(rules),
          encode_map_(map ? map->find("encode") : nullptr, native_decoded(), native_encoded()),
          decode_map_(map ? map->find("decode") : nullptr, native_encoded(), native_decoded()) {
        encode_fill(in);
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override { return cast(a, native_encoded(), encode_map_); }
    [[nodiscard]] NDArray backward(NDArray a) const override {
        try {
            return cast(a, native_decoded(), decode_map_);
        } catch (const Error& e) {
            throw corrupt("{}", e.what());
        }
    }

    [[nodiscard]] NDArray cast(const NDArray& a, const DType& to, const ScalarMap& map) const {
        NDArray out(to, a.shape());
        with_number(a.dtype(), [&](auto from) {
            with_number(to, [&](auto type) {
                using From = decltype(from);
                using To = decltype(type);
                if constexpr (std::convertible_to<From, double> && std::convertible_to<To, double>) {
                    cast_all(elements<From>(a), elements<To>(out), to, map);
                }
            });
        });
        return out;
    }

    template <class From, class To>
    void cast_all(std::span<const From> in, std::span<To> out, const DType& to, const ScalarMap& map) const {
        for (std::size_t i = 0; i < in.size(); ++i) {
            const Exact v = exact(in[i]);
            const std::byte* mapped = map.empty() ? nullptr : map.find(v);
            if (mapped != nullptr) {
                std::memcpy(&out[i], mapped, sizeof(To));
            } else {
                out[i] = cast_exact<To>(v, rules_, to);
            }
        }
    }

    CastRules rules_;
    ScalarMap encode_map_;
    ScalarMap decode_map_;
};

/// A number by v3's name of its type.
DType number_type(const Value& v) {
    const std::string name = codec_from_json(v).name;
    for (const std::string_view known :
         {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}) {
        if (name == known) return DType::parse(name).with_order(ByteOrder::little);
    }
    throw unsupported("data_type is {}; Tessera casts to int8 to int64, uint8 to uint64, float16, float32 and float64",
                      v.dump());
}

std::unique_ptr<ArrayToArrayCodec> make_cast_value_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"data_type", "rounding", "out_of_range", "scalar_map"});
    require_numbers(in.dtype, "the dtype");
    const DType to = number_type(configuration.at("data_type"));
    const std::string_view rounding = choice_member(configuration, "rounding", "nearest-even", rounding_names);
    const std::string_view range =
        choice_member(configuration, "out_of_range", "", std::span(out_of_range_names).subspan(1));
    if (range == "wrap" && to.kind() == Kind::real) {
        throw invalid_argument("out_of_range is \"wrap\", which is for integers, and data_type is {}", to.to_string());
    }
    const Value* map = given_member(configuration, "scalar_map");
    if (map != nullptr) require_known_members(*map, {"encode", "decode"});
    const auto index = [](const auto& names, std::string_view name) {
        return std::ranges::find(names, name) - names.begin();
    };
    const CastRules rules{static_cast<Rounding>(index(rounding_names, rounding)),
                          static_cast<OutOfRange>(range.empty() ? 0 : index(out_of_range_names, range))};
    return std::make_unique<CastValueCodec>(in, to, rules, map);
}

}  // namespace

extern constinit const CodecRow cast_value_codec{
    .name = "cast_value",
    .about = "numbers cast, with rules for rounding and range",
    .array_to_array = make_cast_value_codec,
    .short_notation = false,
};

}  // namespace tessera
