#include <tessera/action.h>
#include <tessera/derived_source.h>

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
#include <tessera/numbers.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

// Numbers are converted through the widest type of their kind, which holds each of them exactly: int64, uint64 or
// double. So there is one loop per dtype on either side, and none per pair of dtypes. In between, a rule is applied to
// the wide numbers.

bool is_complex(const DType& dtype) {
    return dtype.kind() == Kind::complex;
}

bool is_whole(const DType& dtype) {
    return dtype.kind() == Kind::boolean || dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
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

bool is_same_text(const DType& from, const DType& to) {
    return from.kind() == to.kind() && (from.kind() == Kind::bytes || from.kind() == Kind::text);
}

/// Truncates a double as x86, and so NumPy, does, even if the type cannot hold it.
template <class T>
T cut(double v) {
    constexpr double half = 9223372036854775808.0;  // 2^63
    if constexpr (std::is_same_v<T, std::uint64_t>) {
        if (v >= half) return static_cast<T>(cut<std::int64_t>(v - half)) ^ (T{1} << 63U);
    }
    constexpr bool narrow = sizeof(T) < 4 || std::is_same_v<T, std::int32_t>;
    using Through = std::conditional_t<narrow, std::int32_t, std::int64_t>;
    constexpr double limit = narrow ? 2147483648.0 : half;
    const bool fits = v >= -limit && v < limit;
    return static_cast<T>(fits ? static_cast<Through>(v) : std::numeric_limits<Through>::min());
}

template <class T, class W>
void narrow(const W* from, std::int64_t n, std::byte* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<W, double> && std::is_integral_v<T>) {
            store_number(out, i, cut<T>(from[i]));
        } else {
            store_number(out, i, down<T>(from[i]));  // integers are rounded to floats once
        }
    }
}

template <class W>
using Narrow = void (*)(const W* from, std::int64_t n, std::byte* out);

template <class W>
Narrow<W> narrow_for(const DType& dtype) {
    return with_part(dtype, [](auto v) -> Narrow<W> { return narrow<decltype(v), W>; });
}

/// The numbers that a dtype's parts hold.
struct Limits {
    explicit Limits(const DType& dtype) {
        const std::int64_t size = is_complex(dtype) ? dtype.size() / 2 : dtype.size();
        if (is_whole(dtype)) {
            const bool has_sign = dtype.kind() == Kind::integer;
            const auto bits = static_cast<int>(8 * size - (has_sign ? 1 : 0));
            most = dtype.kind() == Kind::boolean ? 1 : std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
            least = has_sign ? -static_cast<std::int64_t>(most) - 1 : 0;
            const std::uint64_t half = most / 2 + 1;
            end = 2 * static_cast<double>(half);
        } else if (dtype.kind() == Kind::bfloat16) {
            largest = 0x1.FEp127;
            end = 0x1.FFp127;
        } else if (size == 2) {
            largest = 65504;
            end = 65520;
            most = 65519;
            least = -65519;
        } else if (size == 4) {
            largest = std::numeric_limits<float>::max();
            end = 0x1.FFFFFFp127;
        }
    }
    std::int64_t least = std::numeric_limits<std::int64_t>::min();  ///< integers from here
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    double end = std::numeric_limits<double>::infinity();  ///< the first number that does not fit, even if rounded
    double largest = std::numeric_limits<double>::max();   ///< of reals
};

/// The first of n numbers for which `bad` holds, or -1.
template <class W, class Bad>
std::int64_t first_bad(const W* v, std::int64_t n, const Bad& bad) {
    bool any = false;
    for (std::int64_t i = 0; i < n; ++i) any |= bad(v[i]);
    return any ? std::find_if(v, v + n, bad) - v : -1;
}

/// Integers for any dtype. Returns the first that does not fit, or -1.
template <class W>
std::int64_t fit(W* v, std::int64_t n, const Limits& limits, Cast rule) {
    const W least = std::cmp_less(limits.least, std::numeric_limits<W>::min()) ? std::numeric_limits<W>::min()
                                                                               : static_cast<W>(limits.least);
    const W most = std::cmp_greater(limits.most, std::numeric_limits<W>::max()) ? std::numeric_limits<W>::max()
                                                                                : static_cast<W>(limits.most);
    if (rule != Cast::clip) return first_bad(v, n, [&](W x) { return x < least || x > most; });
    for (std::int64_t i = 0; i < n; ++i) v[i] = std::clamp(v[i], least, most);
    return -1;
}

/// Reals for reals: finite ones must stay so.
std::int64_t fit(double* v, std::int64_t n, const Limits& limits, Cast rule) {
    const auto over = [&](double x) { return std::abs(x) >= limits.end && !std::isinf(x); };
    if (rule != Cast::clip) return first_bad(v, n, over);
    for (std::int64_t i = 0; i < n; ++i) v[i] = over(v[i]) ? std::copysign(limits.largest, v[i]) : v[i];
    return -1;
}

/// Reals rounded to integers, negative ones as two's complement. Returns the first that does not fit, or -1.
std::int64_t round_reals(const double* v, std::int64_t n, const Limits& limits, Cast rule, std::uint64_t* to) {
    const auto least = static_cast<double>(limits.least);
    for (std::int64_t i = 0; i < n; ++i) {
        const double whole = std::nearbyint(v[i]);
        if (whole >= least && whole < limits.end) {
            to[i] = limits.least < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                                     : static_cast<std::uint64_t>(whole);
        } else if (rule == Cast::clip && whole == whole) {
            to[i] = whole < 0 ? static_cast<std::uint64_t>(limits.least) : limits.most;
        } else {
            return i;
        }
    }
    return -1;
}

// NaNs between f2 and wider floats keep their bits, as in NumPy's half.c. Conversion in a register would make a
// signalling NaN quiet.
template <class Bits>
constexpr int fraction_bits = sizeof(Bits) == 4 ? 23 : 52;
template <class Bits>
constexpr Bits infinity_bits = sizeof(Bits) == 4 ? 0x7F800000 : static_cast<Bits>(0x7FF0000000000000);

template <class Bits>
void widen_nans(const std::byte* elements, std::int64_t n, std::byte* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const Bits v = load_number<std::uint16_t>(elements, i);
        if ((v & 0x7FFF) <= 0x7C00) continue;
        const Bits sign = (v & 0x8000) << (8 * sizeof(Bits) - 16);
        store_number(out, i, sign | infinity_bits<Bits> | (v & 0x3FF) << (fraction_bits<Bits> - 10));
    }
}
template <class Bits>
void narrow_nans(const std::byte* elements, std::int64_t n, std::byte* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const Bits v = load_number<Bits>(elements, i);
        if ((v & ~Bits{0} >> 1) <= infinity_bits<Bits>) continue;
        const auto fraction = static_cast<unsigned>(v >> (fraction_bits<Bits> - 10) & 0x3FF);
        const auto sign = static_cast<unsigned>(v >> (8 * sizeof(Bits) - 16) & 0x8000);
        store_number(out, i, static_cast<std::uint16_t>(sign | 0x7C00 | std::max(fraction, 1U)));  // still a NaN
    }
}

using KeepNans = void (*)(const std::byte* elements, std::int64_t n, std::byte* out);

/// nullptr if there is nothing to keep.
KeepNans keep_nans(const DType& from, const DType& to) {
    if (from.kind() != Kind::real || to.kind() != Kind::real) return nullptr;
    if (from.size() == 2) return to.size() == 4 ? widen_nans<std::uint32_t> : widen_nans<std::uint64_t>;
    if (to.size() == 2) return from.size() == 4 ? narrow_nans<std::uint32_t> : narrow_nans<std::uint64_t>;
    return nullptr;
}

/// Moves the real parts of pairs to the front; for Booleans, whether either part is not zero, as in NumPy.
void keep_real(double* numbers, std::int64_t n, bool for_boolean) {
    for (std::int64_t i = 0; i < n; ++i) {
        const bool truth = numbers[2 * i] != 0 || numbers[2 * i + 1] != 0;
        numbers[i] = for_boolean ? static_cast<double>(truth) : numbers[2 * i];
    }
}

template <class W>
void add_imaginary(W* numbers, std::int64_t n) {
    for (std::int64_t i = n; i-- > 0;) {
        numbers[2 * i] = numbers[i];
        numbers[2 * i + 1] = 0;
    }
}

/// The numbers of `n` elements, with as many parts as those of `to` have.
template <class W>
void read_numbers(const DType& from, const std::byte* elements, std::int64_t n, const DType& to, W* numbers) {
    if constexpr (std::is_same_v<W, double>) {
        to_doubles(from)(elements, n, numbers);
        if (is_complex(from) && !is_complex(to)) keep_real(numbers, n, to.kind() == Kind::boolean);
    } else {
        to_integers(from)(elements, n, reinterpret_cast<std::uint64_t*>(numbers));
    }
    if (!is_complex(from) && is_complex(to)) add_imaginary(numbers, n);
}

template <class W>
std::optional<std::int64_t> cast_numbers(const DType& from, const std::byte* elements, const DType& to, std::byte* out,
                                         std::int64_t n, Cast rule) {
    const std::int64_t parts_out = is_complex(to) ? 2 : 1;
    const Narrow<W> narrow_piece = narrow_for<W>(to);
    const Narrow<std::uint64_t> narrow_whole = narrow_for<std::uint64_t>(to);
    const KeepNans nans = keep_nans(from, to);
    const Limits limits(to);
    const bool rounds = std::is_same_v<W, double> && is_whole(to);
    std::array<W, 2 * numbers_at_once> numbers;
    std::array<std::uint64_t, numbers_at_once> whole;
    for (std::int64_t done = 0; done < n; done += numbers_at_once) {
        const std::int64_t count = std::min(numbers_at_once, n - done);
        const std::byte* const in = elements + done * from.size();
        std::byte* const made = out + done * to.size();
        read_numbers(from, in, count, to, numbers.data());
        std::int64_t bad = -1;
        if (rule == Cast::unsafe || !rounds) {
            if (rule != Cast::unsafe) bad = fit(numbers.data(), count * parts_out, limits, rule);
            narrow_piece(numbers.data(), count * parts_out, made);
        } else if constexpr (std::is_same_v<W, double>) {
            bad = round_reals(numbers.data(), count, limits, rule, whole.data());
            narrow_whole(whole.data(), bad < 0 ? count : bad, made);
        }
        if (bad >= 0) return done + bad / parts_out;
        if (nans != nullptr) nans(in, count, made);
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
            return promoted(from, to).equal_but_order(to);
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
    throw invalid_argument("{}: the rule '{}' does not take {} to {}", name, cast_name(rule), from.to_string(),
                           to.to_string())
        .advising(Action::cast, others.find(',') != std::string::npos ? "do" : "does", others);
}

std::optional<std::int64_t> cast_packed(const DType& from, const std::byte* elements, const DType& to, std::byte* out,
                                        std::int64_t n, Cast rule) {
    if (from.equal_but_order(to)) {
        if (n > 0) std::memcpy(out, elements, static_cast<std::size_t>(n * from.size()));
        return std::nullopt;
    }
    if (is_same_text(from, to)) return cast_text(from, elements, to, out, n, rule);
    if (!is_whole(from)) return cast_numbers<double>(from, elements, to, out, n, rule);
    return from.kind() == Kind::unsigned_integer ? cast_numbers<std::uint64_t>(from, elements, to, out, n, rule)
                                                 : cast_numbers<std::int64_t>(from, elements, to, out, n, rule);
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
    info.working += slice_memory(info, native_dtype(info.dtype).size() + native_dtype(dtype_).size());
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
            const bool clips = from.kind() == to.kind() && !is_same_text(from, to);
            const bool only_unsafe = !clips && rule_ == Cast::clip;
            throw invalid_argument("{}: the value {} at {} does not fit {}", name(), value,
                                   place_text(slice, info.order, *bad), to.to_string())
                .advising(Action::cast, clips || only_unsafe ? "takes it" : "may take it",
                          only_unsafe ? "unsafe" : "clip or unsafe");
        }
        copy_elements(made.view(), out.part(within(region, slice)));
    });
}

NDArray cast_elements(const ArrayView& elements, const DType& dtype, Cast rule, const IoOptions& io) {
    const CastSource converted(view_source(elements, "the elements given"), dtype, rule);
    return read_selection(converted, Selection::all(elements.shape), io);
}

const CastSource* as_cast(const ArraySource& source) {
    return dynamic_cast<const CastSource*>(&source);
}

const ArraySource& before_cast(const ArraySource& source) {
    const ArraySource* const from = source.converted_from();
    return from == nullptr ? source : before_cast(*from);
}

}  // namespace tessera
