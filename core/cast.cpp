#include <tessera/cast.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

// Numbers are converted through the widest type of their kind, which holds each of them exactly: int64, uint64 or
// double. So there is one loop per dtype on either side, and none per pair of dtypes.

constexpr std::int64_t piece = 1024;

enum class Wide : std::uint8_t { integer, unsigned_integer, real };

struct Half {
    std::uint16_t bits;
};
struct Bfloat16 {
    std::uint16_t bits;
};
struct Boolean {
    std::uint8_t bits;
};

bool is_complex(const DType& dtype) {
    return dtype.kind() == Kind::complex;
}

/// NumPy's order of kinds; -1 if the dtype is no number.
int kind_rank(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
            return 0;
        case Kind::unsigned_integer:
            return 1;
        case Kind::integer:
            return 2;
        case Kind::real:
        case Kind::bfloat16:
            return 3;
        case Kind::complex:
            return 4;
        default:
            return -1;
    }
}

/// Whether a real or complex dtype holds all integers of this many bytes exactly. As in NumPy, f8 counts as holding
/// those of 8 bytes.
bool holds_integer(const DType& to, std::int64_t bytes) {
    if (to.kind() == Kind::bfloat16) return bytes == 1;
    const std::int64_t real = is_complex(to) ? to.size() / 2 : to.size();
    return real == 8 || 2 * bytes <= real;
}

bool is_safe(const DType& from, const DType& to) {
    const int a = kind_rank(from);
    const int b = kind_rank(to);
    if (a > b) return false;
    if (a == 0) return true;
    if (b <= 2) return a == b ? from.size() <= to.size() : from.size() < to.size();
    if (a <= 2) return holds_integer(to, from.size());
    if (from.kind() == Kind::bfloat16) return to.kind() == Kind::bfloat16 || to.size() >= 4;
    if (to.kind() == Kind::bfloat16) return false;
    return from.size() <= (a == 3 && b == 4 ? to.size() / 2 : to.size());
}

bool is_same_text(const DType& from, const DType& to) {
    return from.kind() == to.kind() && (from.kind() == Kind::bytes || from.kind() == Kind::text);
}

template <class T>
T element_at(const std::byte* elements, std::int64_t i) {
    T v;
    std::memcpy(&v, elements + i * static_cast<std::int64_t>(sizeof v), sizeof v);
    return v;
}

template <class T, class W>
void widen(const std::byte* elements, std::int64_t n, W* to) {
    for (std::int64_t i = 0; i < n; ++i) {
        const T v = element_at<T>(elements, i);
        if constexpr (std::is_same_v<T, Half>) {
            to[i] = half_to_float(v.bits);
        } else if constexpr (std::is_same_v<T, Bfloat16>) {
            to[i] = bfloat16_to_float(v.bits);
        } else if constexpr (std::is_same_v<T, Boolean>) {
            to[i] = v.bits != 0 ? 1 : 0;
        } else {
            to[i] = static_cast<W>(v);  // NOLINT(bugprone-signed-char-misuse): its sign is meant
        }
    }
}

/// Truncates a double as x86, and so NumPy, does, even if the type cannot hold it.
template <class T>
T cut(double v) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
        constexpr double half = 9223372036854775808.0;
        if (v >= half && v < 2 * half) return static_cast<std::uint64_t>(v - half) + (std::uint64_t{1} << 63U);
    }
    constexpr bool narrow = sizeof(T) < 4 || std::is_same_v<T, std::int32_t>;
    using Through = std::conditional_t<narrow, std::int32_t, std::int64_t>;
    constexpr double limit = narrow ? 2147483648.0 : 9223372036854775808.0;
    const bool fits = narrow ? v > -limit - 1 && v < limit : v >= -limit && v < limit;
    const Through through = fits ? static_cast<Through>(v) : std::numeric_limits<Through>::min();
    return static_cast<T>(through);
}

/// Whether T holds v, a whole number.
template <class T>
bool holds(double v) {
    // The upper limit is the first number that does not fit: that one is exact as a double.
    constexpr double end = 2 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
    return v >= static_cast<double>(std::numeric_limits<T>::min()) && v < end;
}

/// An integer of type T from a wide number. `bad` becomes true if the value does not fit.
template <class T, Cast rule, class W>
T to_integer(W v, bool& bad) {
    constexpr T least = std::numeric_limits<T>::min();
    constexpr T most = std::numeric_limits<T>::max();
    if constexpr (std::is_same_v<W, double>) {
        if constexpr (rule == Cast::unsafe) return cut<T>(v);
        const double whole = std::nearbyint(v);
        const bool fits = holds<T>(whole);
        if constexpr (rule == Cast::clip) {
            bad |= std::isnan(v);
            return fits ? static_cast<T>(whole) : whole < 0 ? least : most;
        }
        bad |= !fits;
        return fits ? static_cast<T>(whole) : T{};
    } else {
        if constexpr (rule == Cast::unsafe) return static_cast<T>(v);
        const bool fits = std::in_range<T>(v);
        if constexpr (rule == Cast::clip) return fits ? static_cast<T>(v) : std::cmp_less(v, 0) ? least : most;
        bad |= !fits;
        return static_cast<T>(v);
    }
}

/// Only 0 and 1 become Booleans, unless the rule lets any number become one.
template <Cast rule, class W>
std::uint8_t to_boolean(W v, bool& bad) {
    if constexpr (rule == Cast::unsafe) return v != 0 ? 1 : 0;
    if constexpr (rule == Cast::clip) {
        return std::clamp<std::uint8_t>(to_integer<std::uint8_t, rule>(v, bad), 0, 1);
    }
    const auto whole = to_integer<std::uint8_t, rule>(v, bad);
    bad |= whole > 1;
    return whole;
}

/// Whether a finite number became infinite.
template <class W>
bool overflowed(W v, double made) {
    if constexpr (std::is_same_v<W, double>) return std::isinf(made) && !std::isinf(v);
    return std::isinf(made);
}

template <class T>
T real_from(double v) {
    if constexpr (std::is_same_v<T, Half>) {
        return {double_to_half(v)};
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
        return {double_to_bfloat16(v)};
    } else {
        return static_cast<T>(v);
    }
}

double value_of(Half v) {
    return half_to_float(v.bits);
}
double value_of(Bfloat16 v) {
    return bfloat16_to_float(v.bits);
}
double value_of(float v) {
    return v;
}
double value_of(double v) {
    return v;
}

template <class T>
double largest() {
    if constexpr (std::is_same_v<T, Half>) return 65504;
    if constexpr (std::is_same_v<T, Bfloat16>) return 0x1.FEp127;
    if constexpr (std::is_same_v<T, float>) return std::numeric_limits<float>::max();
    return std::numeric_limits<double>::max();
}

template <class T, Cast rule, class W>
T to_real(W v, bool& bad) {
    T made;
    if constexpr (std::is_floating_point_v<T>) {
        made = static_cast<T>(v);  // integers are rounded once
    } else {
        made = real_from<T>(static_cast<double>(v));
    }
    if constexpr (rule == Cast::unsafe) return made;
    const bool over = overflowed(v, value_of(made));
    if constexpr (rule == Cast::clip) {
        return over ? real_from<T>(static_cast<double>(v) < 0 ? -largest<T>() : largest<T>()) : made;
    }
    bad |= over;
    return made;
}

template <class T, Cast rule, class W>
auto narrowed(W v, bool& bad) {
    if constexpr (std::is_same_v<T, Boolean>) {
        return Boolean{to_boolean<rule>(v, bad)};
    } else if constexpr (std::is_integral_v<T>) {
        return to_integer<T, rule>(v, bad);
    } else {
        return to_real<T, rule>(v, bad);
    }
}

/// Converts n numbers. Returns the first that does not fit, or -1.
template <class T, Cast rule, class W>
std::int64_t narrow(const W* from, std::int64_t n, std::byte* out) {
    bool bad = false;
    for (std::int64_t i = 0; i < n; ++i) {
        const auto v = narrowed<T, rule>(from[i], bad);
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof v), &v, sizeof v);
    }
    if (!bad) return -1;
    for (std::int64_t i = 0; i < n; ++i) {
        bad = false;
        (void)narrowed<T, rule>(from[i], bad);
        if (bad) return i;
    }
    return -1;
}

/// Calls body with a value of the type of the dtype's numbers; a complex element has two of them.
template <class Body>
auto with_number(const DType& dtype, const Body& body) {
    const std::int64_t size = is_complex(dtype) ? dtype.size() / 2 : dtype.size();
    switch (dtype.kind()) {
        case Kind::boolean:
            return body(Boolean{});
        case Kind::bfloat16:
            return body(Bfloat16{});
        case Kind::integer:
            return size == 1   ? body(std::int8_t{})
                   : size == 2 ? body(std::int16_t{})
                   : size == 4 ? body(std::int32_t{})
                               : body(std::int64_t{});
        case Kind::unsigned_integer:
            return size == 1   ? body(std::uint8_t{})
                   : size == 2 ? body(std::uint16_t{})
                   : size == 4 ? body(std::uint32_t{})
                               : body(std::uint64_t{});
        default:
            return size == 2 ? body(Half{}) : size == 4 ? body(float{}) : body(double{});
    }
}

Wide wide_of(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
        case Kind::integer:
            return Wide::integer;
        case Kind::unsigned_integer:
            return Wide::unsigned_integer;
        default:
            return Wide::real;
    }
}

template <class W>
using Widen = void (*)(const std::byte* elements, std::int64_t n, W* to);
template <class W>
using Narrow = std::int64_t (*)(const W* from, std::int64_t n, std::byte* out);

template <class W>
Widen<W> widen_for(const DType& dtype) {
    return with_number(dtype, [](auto v) -> Widen<W> { return widen<decltype(v), W>; });
}

template <class W>
Narrow<W> narrow_for(const DType& dtype, Cast rule) {
    return with_number(dtype, [&](auto v) -> Narrow<W> {
        using T = decltype(v);
        switch (rule) {
            case Cast::unsafe:
                return narrow<T, Cast::unsafe, W>;
            case Cast::clip:
                return narrow<T, Cast::clip, W>;
            default:
                return narrow<T, Cast::round, W>;
        }
    });
}

/// Moves the real parts of pairs to the front.
template <class W>
void keep_real(W* numbers, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) numbers[i] = numbers[2 * i];
}

template <class W>
void add_imaginary(W* numbers, std::int64_t n) {
    for (std::int64_t i = n; i-- > 0;) {
        numbers[2 * i] = numbers[i];
        numbers[2 * i + 1] = 0;
    }
}

template <class W>
std::optional<std::int64_t> cast_numbers(const DType& from, const std::byte* elements, const DType& to, std::byte* out,
                                         std::int64_t n, Cast rule) {
    const Widen<W> widen_piece = widen_for<W>(from);
    const Narrow<W> narrow_piece = narrow_for<W>(to, rule);
    const std::int64_t parts_in = is_complex(from) ? 2 : 1;
    const std::int64_t parts_out = is_complex(to) ? 2 : 1;
    std::array<W, 2 * piece> numbers;
    for (std::int64_t done = 0; done < n; done += piece) {
        const std::int64_t count = std::min(piece, n - done);
        widen_piece(elements + done * from.size(), count * parts_in, numbers.data());
        if (parts_in > parts_out) {
            // NumPy takes a complex number as true if either part is not zero.
            if (to.kind() == Kind::boolean) {
                for (std::int64_t i = 0; i < count; ++i)
                    numbers[2 * i] = numbers[2 * i] != 0 || numbers[2 * i + 1] != 0;
            }
            keep_real(numbers.data(), count);
        }
        if (parts_in < parts_out) add_imaginary(numbers.data(), count);
        const std::int64_t bad = narrow_piece(numbers.data(), count * parts_out, out + done * to.size());
        if (bad >= 0) return done + bad / parts_out;
    }
    return std::nullopt;
}

/// S to S and U to U: padded with zeros, or truncated.
std::optional<std::int64_t> cast_text(const DType& from, const std::byte* elements, const DType& to, std::byte* out,
                                      std::int64_t n, Cast rule) {
    const auto kept = static_cast<std::size_t>(std::min(from.size(), to.size()));
    for (std::int64_t i = 0; i < n; ++i, elements += from.size(), out += to.size()) {
        const bool fits =
            std::all_of(elements + kept, elements + from.size(), [](std::byte b) { return b == std::byte{0}; });
        if (!fits && rule == Cast::clip) {
            // truncated, which is the nearest value
        } else if (!fits && rule != Cast::unsafe) {
            return i;
        }
        std::fill_n(out, to.size(), std::byte{0});
        std::copy_n(elements, kept, out);
    }
    return std::nullopt;
}

}  // namespace

Cast parse_cast(std::string_view word) {
    for (const Cast rule : {Cast::safe, Cast::same_kind, Cast::unsafe, Cast::round, Cast::clip}) {
        if (word == cast_name(rule)) return rule;
    }
    throw invalid_argument("expected safe, same_kind, unsafe, round or clip, found '{}'", word);
}

std::string_view cast_name(Cast rule) {
    constexpr std::array<std::string_view, 5> names{"safe", "same_kind", "unsafe", "round", "clip"};
    return names.at(static_cast<std::size_t>(rule));
}

bool can_cast(const DType& from, const DType& to, Cast rule) {
    if (from.equal_but_order(to)) return true;
    if (is_same_text(from, to)) return rule != Cast::safe || from.size() <= to.size();
    const int a = kind_rank(from);
    const int b = kind_rank(to);
    if (a < 0 || b < 0) return false;
    switch (rule) {
        case Cast::safe:
            return is_safe(from, to);
        case Cast::same_kind:
            return a <= b;
        case Cast::unsafe:
            return true;
        default:
            return a < 4 || b == 4;
    }
}

void require_castable(const DType& from, const DType& to, Cast rule, std::string_view name) {
    if (can_cast(from, to, rule)) return;
    std::string others;
    for (const Cast other : {Cast::same_kind, Cast::round, Cast::clip, Cast::unsafe}) {
        if (can_cast(from, to, other)) others += fmt::format("{}{}", others.empty() ? "" : ", ", cast_name(other));
    }
    if (others.empty()) {
        throw unsupported("{}: there is no conversion from {} to {}", name, from.to_string(), to.to_string());
    }
    throw invalid_argument("{}: the rule '{}' does not take {} to {}; other rules do (--cast): {}", name,
                           cast_name(rule), from.to_string(), to.to_string(), others);
}

std::optional<std::int64_t> cast_packed(const DType& from, const std::byte* elements, const DType& to, std::byte* out,
                                        std::int64_t n, Cast rule) {
    if (from.equal_but_order(to)) {
        if (n > 0) std::memcpy(out, elements, static_cast<std::size_t>(n * from.size()));
        return std::nullopt;
    }
    if (is_same_text(from, to)) return cast_text(from, elements, to, out, n, rule);
    switch (wide_of(from)) {
        case Wide::integer:
            return cast_numbers<std::int64_t>(from, elements, to, out, n, rule);
        case Wide::unsigned_integer:
            return cast_numbers<std::uint64_t>(from, elements, to, out, n, rule);
        default:
            return cast_numbers<double>(from, elements, to, out, n, rule);
    }
}

namespace {

/// "[3, 7]": the place in the array of the i-th element of a region.
std::string place_text(const Region& region, Order order, std::int64_t i) {
    Index place = region.start;
    for (int k = 0; k < region.rank(); ++k) {
        const int d = order == Order::C ? region.rank() - 1 - k : k;
        place[d] += i % region.extent[d];
        i /= region.extent[d];
    }
    std::string text;
    for (const std::int64_t n : place) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    return fmt::format("[{}]", text);
}

}  // namespace

CastSource::CastSource(std::unique_ptr<ArraySource> array, const DType& dtype, Cast rule)
    : array_(std::move(array)), dtype_(dtype), rule_(rule) {
    require_castable(array_->info().dtype, dtype_, rule_, array_->name());
}

ArrayInfo CastSource::info() const {
    ArrayInfo info = array_->info();
    info.dtype = dtype_;
    return info;
}

void CastSource::read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
    const ArrayInfo info = array_->info();
    const DType from = native_dtype(info.dtype);
    const DType to = native_dtype(dtype_);
    for_each_slice(info, from.size() + to.size(), region, io.stop, [&](const Region& slice) {
        NDArray elements(from, slice.extent, info.order);
        array_->read_into(slice, elements.view(), io);
        NDArray made(to, slice.extent, info.order);
        const auto bad = cast_packed(from, elements.bytes().data(), to, made.bytes().data(), elements.count(), rule_);
        if (bad) {
            const std::string value = element_to_text(from, elements.bytes().data() + *bad * from.size());
            const char* advice = from.kind() == to.kind() && !is_same_text(from, to) ? "--cast clip or unsafe takes it"
                                 : rule_ == Cast::clip                               ? "--cast unsafe takes it"
                                                       : "--cast clip or unsafe may take it";
            throw invalid_argument("{}: the value {} at {} does not fit {}; {}", name(), value,
                                   place_text(slice, info.order, *bad), to.to_string(), advice);
        }
        copy_elements(made.view(), out.part(within(region, slice)));
    });
}

NDArray cast_elements(const ArrayView& elements, const DType& dtype, Cast rule, const IoOptions& io) {
    const CastSource converted(view_source(elements, "the elements given"), dtype, rule);
    return read_selection(converted, Selection::all(elements.shape), io);
}

}  // namespace tessera
