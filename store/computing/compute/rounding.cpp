#include <tessera/rounding.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/calendar.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/number_text.h>
#include <tessera/numbers.h>
#include <tessera/round_bits.h>

#include "bit_information.h"
#include "converted_source.h"

namespace tessera {

namespace {

template <class T>
constexpr bool is_whole = std::is_integral_v<T>;

/// The bits of a stored float.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

/// Rounds to the first `keep` bits of the fraction, half to even.
template <class T>
T rounded_to_bits(T v, int keep, int fraction) {
    using Bits = BitsOf<T>;
    const auto x = std::bit_cast<Bits>(v);
    constexpr auto without_sign = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1U);
    const auto exponent = static_cast<Bits>(without_sign & static_cast<Bits>(~Bits{0} << fraction));
    const int dropped = fraction - keep;
    // Zero, too small to have all bits, infinite or NaN.
    if ((x & exponent) == 0 || (x & exponent) == exponent) return v;
    const Bits y = round_off(x, dropped);
    return (y & exponent) == exponent ? v : std::bit_cast<T>(y);
}

/// The nearest multiple of `step`, a power of 2, half to even; the number itself where the dtype has no such multiple.
template <class T>
T rounded_to_step(T v, double step) {
    if constexpr (is_whole<T>) {
        constexpr double most = 9.2e18;
        if (step <= 1 || step > most) return v;
        const auto size = static_cast<Int128>(step);
        Int128 count = v / size;
        Int128 rest = v % size;
        if (rest < 0) {
            rest += size;
            --count;
        }
        if (2 * rest > size || (2 * rest == size && count % 2 != 0)) ++count;
        const Int128 made = count * size;
        const bool fits = made >= std::numeric_limits<T>::min() && made <= std::numeric_limits<T>::max();
        return fits ? static_cast<T>(made) : v;
    } else {
        const auto number = static_cast<double>(up(v));
        const double made = std::nearbyint(number / step) * step;
        const T stored = down<T>(made);
        return std::isfinite(static_cast<double>(up(stored))) && std::isfinite(made) ? stored : v;
    }
}

/// The largest power of 2 by half of which a number may change.
double step_for(double max_error) {
    int exponent = 0;
    (void)std::frexp(max_error, &exponent);  // max_error lies in [2^(exponent - 1), 2^exponent)
    return std::ldexp(1.0, exponent);
}

/// Elements that stay as they are. The first `missing` of them stand for missing ones: no number becomes one of these.
struct KeptElements {
    std::vector<ElementBytes> elements;
    std::size_t missing = 0;
};

/// What becomes of each number of a dtype.
template <class T>
class Rounder {
public:
    Rounder(const Rounding& how, int fraction, const KeptElements& kept)
        : keep_(how.keep_bits),
          fraction_(fraction),
          error_(how.max_error.value_or(std::ldexp(1.0, -how.keep_bits.value_or(0) - 1))),
          step_(how.max_error ? step_for(*how.max_error) : 0),
          missing_(static_cast<std::ptrdiff_t>(kept.missing)) {
        for (const auto& one : kept.elements) kept_.push_back(load_number<T>(one.data(), 0));
    }

    void operator()(const std::byte* from, std::byte* to, std::int64_t n) const {
        for (std::int64_t i = 0; i < n; ++i) {
            const T v = load_number<T>(from, i);
            T made = v;
            if (!stays(v)) {
                if constexpr (!is_whole<T>) {
                    if (keep_) made = rounded_to_bits(v, *keep_, fraction_);
                }
                if (!keep_) made = rounded_to_step(v, step_);
                if (is_among(made, kept_.begin() + missing_)) made = v;
                verify(v, made);
            }
            store_number(to, i, made);
        }
    }

private:
    [[nodiscard]] bool stays(T v) const {
        if constexpr (!is_whole<T>) {
            if (!std::isfinite(static_cast<double>(up(v)))) return true;
        }
        return is_among(v, kept_.end());
    }

    [[nodiscard]] bool is_among(T v, typename std::vector<T>::const_iterator end) const {
        return std::any_of(kept_.begin(), end, [&](T one) { return up(one) == up(v); });
    }

    void verify(T v, T made) const {
        double change = 0;
        double size = 1;
        if constexpr (is_whole<T>) {
            const Int128 difference = Int128{made} - Int128{v};
            change = static_cast<double>(difference < 0 ? -difference : difference);
        } else {
            change = std::abs(static_cast<double>(up(made)) - static_cast<double>(up(v)));
            if (keep_) size = std::abs(static_cast<double>(up(v)));
        }
        if (change <= error_ * size) return;
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("rounding changed {} to {}, by more than the bound {}: please report this",
                                static_cast<double>(up(v)), static_cast<double>(up(made)), error_ * size));
    }

    std::optional<int> keep_;
    int fraction_;
    double error_, step_;
    std::ptrdiff_t missing_;
    std::vector<T> kept_;
};

class RoundedSource final : public ConvertedSource {
public:
    using ConvertedSource::ConvertedSource;
    [[nodiscard]] std::optional<ElementBytes> fill_bytes() const override { return source().fill_bytes(); }
    [[nodiscard]] const ArraySource* model() const override { return &source(); }
};

/// Whether attributes are those of a coordinate, which may have two dimensions (CF conventions 1.11, sections 4 and 5).
bool says_coordinate(const Value& attributes) {
    const auto is_one_of = [&](const char* name, std::span<const std::string_view> values) {
        const Value* value = attributes.find(name);
        return value != nullptr && value->is_string() && std::ranges::count(values, value->as_string()) != 0;
    };
    constexpr std::array<std::string_view, 12> units{"degrees_north", "degree_north", "degrees_N",    "degree_N",
                                                     "degreesN",      "degreeN",      "degrees_east", "degree_east",
                                                     "degrees_E",     "degree_E",     "degreesE",     "degreeE"};
    constexpr std::array<std::string_view, 7> names{
        "latitude",       "longitude", "projection_x_coordinate", "projection_y_coordinate", "grid_latitude",
        "grid_longitude", "time"};
    constexpr std::array<std::string_view, 4> axes{"X", "Y", "Z", "T"};
    return is_one_of("units", units) || is_one_of("standard_name", names) || is_one_of("axis", axes);
}

/// A coordinate of the CF conventions: its attributes say so, or its dimension has its name.
bool is_coordinate(const ArraySource& array) {
    if (says_coordinate(array.attribute_values())) return true;
    const DimensionNames names = dimension_names_of(array);
    if (names.size() != 1 || !names.front()) return false;
    const std::string& path = array.name();
    const std::size_t end = path.find_last_of("/:");
    return path.substr(end == std::string::npos ? 0 : end + 1) == *names.front();
}

/// Why an array cannot be rounded; empty if it can.
std::string hindrance(const ArraySource& array, const Rounding& rounding) {
    const DType dtype = array.info().dtype;
    if (!is_number(dtype) || dtype.kind() == Kind::boolean) {
        return fmt::format("{} is not rounded: it holds {}", array.name(), dtype.to_string());
    }
    const bool whole = dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
    if (whole && !rounding.max_error) {
        return fmt::format(
            "{} is not rounded: integers have no fraction of which bits are kept; a greatest error can "
            "be given for them",
            array.name());
    }
    if (is_coordinate(array)) return fmt::format("{} is not rounded: it is a coordinate", array.name());
    return {};
}

Value record_of(const Rounding& rounding) {
    Value record = Value::object();
    if (rounding.max_error) {
        record.set("max_error", *rounding.max_error);
    } else {
        record.set("keep_bits", *rounding.keep_bits);
        record.set("max_relative_error", std::ldexp(1.0, -*rounding.keep_bits - 1));
    }
    return record;
}

KeptElements kept_elements(const ArraySource& array, const DType& native, const Rounding& rounding) {
    KeptElements kept{.elements = missing_elements(array.attribute_values(), native)};
    for (const Value& value : rounding.fills) {
        try {
            kept.elements.push_back(element_from_value(native, value, Assign::exact));
        } catch (const Error&) {  // of another array, or refused by the copy
        }
    }
    kept.missing = kept.elements.size();
    const auto fill = array.fill_bytes();
    if (!fill || std::ssize(*fill) != native.size()) return kept;
    NDArray one(array.info().dtype, {});
    std::ranges::copy(*fill, one.bytes().data());
    NDArray host(native, {});
    copy_elements(one.view(), host.view());
    const auto bytes = std::as_const(host).bytes();
    kept.elements.emplace_back(bytes.begin(), bytes.end());
    const auto* stored = as_array(before_cast(array));
    const bool zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    const bool marks = rounding.fill_is_missing || (stored != nullptr && stored->dialect().fill_is_missing);
    if (marks || !zero) kept.missing = kept.elements.size();
    return kept;
}

double parse_error(std::string_view text) {
    double value = 0;
    const auto [end, error] = number_from_text(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value)) {
        throw invalid_argument("expected a number above 0, found '{}'", text);
    }
    return value;
}

}  // namespace

std::optional<Rounding> Rounding::parse(std::string_view keep_bits, std::string_view max_error) {
    if (keep_bits.empty() && max_error.empty()) return std::nullopt;
    if (!keep_bits.empty() && !max_error.empty()) {
        throw invalid_argument("choose one");
    }
    if (!max_error.empty()) return Rounding{.max_error = parse_error(max_error)};
    if (keep_bits == "auto") return Rounding{.keep_information = true};
    constexpr int most = 52;
    int bits = 0;
    const auto [end, error] = std::from_chars(keep_bits.data(), keep_bits.data() + keep_bits.size(), bits);
    if (error != std::errc() || end != keep_bits.data() + keep_bits.size() || bits < 0 || bits > most) {
        throw invalid_argument("expected 0 to {}, or auto, found '{}'", most, keep_bits);
    }
    return Rounding{.keep_bits = bits};
}

void Rounding::copied_to(const std::string& destination, const HierarchyOptions& options) {
    fills.clear();
    if (options.arrays.fill) fills.push_back(*options.arrays.fill);
    for (const auto& [name, value] : options.fills) fills.push_back(value);
    const Dialect* const dialect =
        options.arrays.format ? &dialect_named(*options.arrays.format) : format_above(destination, options.store);
    fill_is_missing =
        named_array_file_format(destination) != nullptr || (dialect != nullptr && dialect->fill_is_missing);
}

namespace {

/// How many bits of the fraction hold information, by the finite elements that are not kept as they are.
std::optional<int> bits_of_information(const ArraySource& array, const DType& native, const KeptElements& kept,
                                       const IoOptions& io) {
    std::optional<int> bits;
    with_part(native, [&](auto kind) {
        using T = decltype(kind);
        const auto counts = [&](const std::byte* element) {
            if constexpr (std::is_same_v<T, Boolean>)
                return false;
            else {
                const auto v = up(load_number<T>(element, 0));
                return std::isfinite(static_cast<double>(v)) &&
                       std::ranges::none_of(kept.elements,
                                            [&](const auto& one) { return up(load_number<T>(one.data(), 0)) == v; });
            }
        };
        bits = informative_bits(array, counts, io);
    });
    return bits;
}

/// The array's, and one more record of how it was rounded.
Value attributes_of_rounded(const ArraySource& array, const Rounding& how) {
    Value attributes = array.attribute_values();
    const Value* before = attributes.find(rounding_attribute);
    Value::Array records = before != nullptr && before->is_array() ? before->as_array() : Value::Array();
    records.push_back(record_of(how));
    attributes.set(rounding_attribute, Value(std::move(records)));
    return attributes;
}

/// Rounds elements that consist of so many numbers.
ConvertedSource::Convert rounding_of(const DType& native, const Rounding& how, const KeptElements& kept,
                                     std::int64_t parts) {
    ConvertedSource::Convert convert;
    with_part(native, [&](auto kind) {
        using T = decltype(kind);
        if constexpr (!std::is_same_v<T, Boolean>) {
            convert = [parts, rounder = Rounder<T>(how, fraction_bits(native), kept)](
                          const std::byte* from, std::byte* to, std::int64_t n) { rounder(from, to, n * parts); };
        }
    });
    return convert;
}

}  // namespace

std::unique_ptr<ArraySource> rounded(std::unique_ptr<ArraySource> array, const Rounding& rounding, std::string* why,
                                     const IoOptions& io) {
    const auto say = [&](std::string text) {
        if (why != nullptr) *why = std::move(text);
    };
    if (std::string reason = hindrance(*array, rounding); !reason.empty()) {
        say(std::move(reason));
        return array;
    }
    const DType dtype = array->info().dtype;
    const DType native = native_dtype(dtype);
    const bool complex = dtype.kind() == Kind::complex;
    const KeptElements kept = complex ? KeptElements() : kept_elements(*array, native, rounding);
    Rounding how = rounding;
    if (how.keep_information && complex) {
        say(fmt::format("{} is not rounded: it holds complex numbers, for which a number of bits is to be given",
                        array->name()));
        return array;
    }
    if (how.keep_information) {
        how.keep_bits = bits_of_information(*array, native, kept, io);
        if (!how.keep_bits) {
            say(fmt::format(
                "{} is not rounded: its elements share no information with their neighbours, or are too few to tell",
                array->name()));
            return array;
        }
        say(fmt::format("{}: {} bits of the fraction hold 99 % of the information", array->name(), *how.keep_bits));
    }
    Value attributes = attributes_of_rounded(*array, how);
    return std::make_unique<RoundedSource>(std::move(array), dtype, std::move(attributes),
                                           rounding_of(native, how, kept, complex ? 2 : 1));
}

}  // namespace tessera
