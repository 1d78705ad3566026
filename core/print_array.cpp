// Arrays as text, laid out as NumPy's str() does: numpy/core/arrayprint.py of NumPy 1.24 (_formatArray, FloatingFormat
// and its siblings), with its default options.
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/unicode.h>
#include "element_rows.h"
#include "python_literal.h"
#include "time_units.h"

namespace tessera {

namespace {

constexpr std::size_t line_width = 75;
constexpr std::int64_t threshold = 1000;       // arrays with more elements are summarised
constexpr std::int64_t edge_items = 3;         // at each end of an axis of a summarised array
constexpr std::int64_t most_shown = 10'000;    // of many dimensions only the first item is shown, from the outermost on
constexpr std::size_t most_characters = 1000;  // of one text
constexpr int precision = 8;                   // digits after the point

using Places = std::vector<const std::byte*>;  ///< elements in host order
using Print = std::function<std::string(const std::byte*)>;

Print printer_of(const DType& dtype, const Places& shown, bool alone);

std::string padded(std::string text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// ---- floating-point numbers

/// The shortest decimal that reads back, and what it stands for.
struct Real {
    double exact = 0;
    std::string digits = {};  ///< the first one before the point
    int exponent = 0;
};

/// Splits "-1.25e+02" of std::to_chars.
Real split(double exact, std::string_view text) {
    Real real{.exact = exact};
    if (text.starts_with('-')) text.remove_prefix(1);
    const std::size_t e = text.find('e');
    for (const char c : text.substr(0, e)) {
        if (c != '.') real.digits += c;
    }
    const std::string_view exponent = text.substr(e + 1).substr(text[e + 1] == '+' ? 1 : 0);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), real.exponent);
    return real;
}

template <class... Format>
std::string chars_of(auto v, Format... format) {
    std::array<char, 400> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), v, format...).ptr};
}

Real real_of(Kind kind, std::int64_t size, const std::byte* p) {
    constexpr auto scientific = std::chars_format::scientific;
    if (kind == Kind::real && size == 8) {
        const auto v = element::load<double>(p);
        return std::isfinite(v) ? split(v, chars_of(v, scientific)) : Real{v};
    }
    if (kind == Kind::real && size == 4) {
        const auto v = element::load<float>(p);
        return std::isfinite(v) ? split(v, chars_of(v, scientific)) : Real{v};
    }
    const auto bits = element::load<std::uint16_t>(p);
    const double v = kind == Kind::bfloat16 ? bfloat16_to_float(bits) : half_to_float(bits);
    if (!std::isfinite(v)) return Real{v};
    const Value shortest = kind == Kind::bfloat16 ? element::real_value(DType::scalar(kind, 2), p)
                                                  : element::real_value(DType::scalar(Kind::real, 2), p);
    return split(v, chars_of(shortest.as_double(), scientific));
}

/// A number as "12.5": what stands before the point, with the sign, and after it, without zeros at the end.
struct Decimal {
    std::string whole;
    std::string fraction;
    std::string exponent = {};  ///< "e+08"; empty in positional notation
};

Decimal cut_zeros(std::string_view text) {
    const std::size_t e = std::min(text.find('e'), text.size());
    const std::size_t point = std::min(text.find('.'), e);
    std::string_view fraction = text.substr(std::min(point + 1, e), e - std::min(point + 1, e));
    fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
    return {std::string(text.substr(0, point)), std::string(fraction), std::string(text.substr(e))};
}

/// At most `precision` digits after the point, and no more than the shortest decimal has, unless that has fewer than
/// `least`: then so many exact digits, as NumPy prints them.
Decimal decimal_of(const Real& real, bool scientific, bool plus, int least) {
    const auto digits = static_cast<int>(real.digits.size());
    const int shortest = scientific ? digits - 1 : digits - 1 - real.exponent;
    const int after = std::max(std::min(shortest, precision), least);
    const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
    Decimal d;
    if (after != shortest) {
        d = cut_zeros(chars_of(std::abs(real.exact), format, after));
    } else if (scientific) {
        d = cut_zeros(fmt::format("{}.{}e{:+03d}", real.digits.front(), real.digits.substr(1), real.exponent));
    } else {
        const std::string zeros(static_cast<std::size_t>(std::max(-real.exponent, 0)), '0');
        const auto before = static_cast<std::size_t>(std::max(real.exponent, 0)) + 1;
        const std::string all = zeros + real.digits;
        d = cut_zeros(all.substr(0, before) + '.' + all.substr(before));
    }
    if (std::signbit(real.exact)) d.whole = '-' + d.whole;
    if (plus && !std::signbit(real.exact)) d.whole = '+' + d.whole;
    return d;
}

/// One notation and one width for all numbers of an array, chosen from those that are shown.
class RealFormat {
public:
    RealFormat(const std::vector<Real>& shown, bool plus) : plus_(plus) {
        double most = 0;
        double least = std::numeric_limits<double>::infinity();
        for (const Real& v : shown) {
            const double size = std::abs(v.exact);
            if (!std::isfinite(size) || size == 0) continue;
            most = std::max(most, size);
            least = std::min(least, size);
        }
        scientific_ = most > 0 && (most >= 1e8 || least < 0.0001 || most / least > 1000);
        for (const Real& v : shown) {
            if (!std::isfinite(v.exact)) continue;
            const Decimal d = decimal_of(v, scientific_, plus_, 0);
            before_ = std::max(before_, d.whole.size());
            after_ = std::max(after_, d.fraction.size());
            exponent_ = std::max(exponent_, d.exponent.size());
        }
        for (const Real& v : shown) {
            if (std::isfinite(v.exact)) continue;
            const std::size_t size = odd(v.exact).size();
            const std::size_t behind = after_ + exponent_ + 1;
            if (size > behind) before_ = std::max(before_, size - behind);
        }
    }

    [[nodiscard]] std::string operator()(const Real& v) const {
        if (!std::isfinite(v.exact)) return padded(odd(v.exact), before_ + after_ + exponent_ + 1);
        Decimal d = decimal_of(v, scientific_, plus_, scientific_ ? static_cast<int>(after_) : 0);
        d.fraction.resize(after_, scientific_ ? '0' : ' ');
        // All exponents have the same number of digits.
        if (scientific_) d.exponent.insert(2, exponent_ - d.exponent.size(), '0');
        return padded(d.whole, before_) + '.' + d.fraction + d.exponent;
    }

private:
    [[nodiscard]] std::string odd(double v) const {
        const std::string_view sign = v < 0 ? "-" : plus_ ? "+" : "";
        return fmt::format("{}{}", sign, std::isnan(v) ? "nan" : "inf");
    }

    bool plus_;
    bool scientific_ = false;
    std::size_t before_ = 0;
    std::size_t after_ = 0;
    std::size_t exponent_ = 0;
};

Print print_reals(const DType& dtype, const Places& shown) {
    const auto real = [kind = dtype.kind(), size = dtype.size()](const std::byte* p) { return real_of(kind, size, p); };
    std::vector<Real> all;
    std::ranges::transform(shown, std::back_inserter(all), real);
    return [format = RealFormat(all, false), real](const std::byte* p) { return format(real(p)); };
}

Print print_complex(const DType& dtype, const Places& shown) {
    const std::int64_t half = dtype.size() / 2;
    const auto part = [half](const std::byte* p) { return real_of(Kind::real, half, p); };
    std::vector<Real> reals;
    std::vector<Real> imaginaries;
    for (const std::byte* p : shown) {
        reals.push_back(part(p));
        imaginaries.push_back(part(p + half));
    }
    return
        [real = RealFormat(reals, false), imaginary = RealFormat(imaginaries, true), part, half](const std::byte* p) {
            std::string text = imaginary(part(p + half));
            text.insert(text.find_last_not_of(' ') + 1, "j");
            return real(part(p)) + text;
        };
}

// ---- the other kinds

/// Texts of one width, aligned on the right.
Print print_aligned(const Places& shown, std::function<std::string(const std::byte*)> text, std::size_t least = 0) {
    std::size_t width = least;
    for (const std::byte* p : shown) width = std::max(width, text(p).size());
    return [text = std::move(text), width](const std::byte* p) { return padded(text(p), width); };
}

Print print_times(const DType& dtype, const Places& shown) {
    return print_aligned(shown, [dtype](const std::byte* p) {
        const auto count = element::load<std::int64_t>(p);
        if (count == not_a_time) return std::string("'NaT'");
        if (dtype.kind() == Kind::timedelta) return std::to_string(count);
        return fmt::format("'{}'", format_datetime(count, dtype.time_unit()));
    });
}

std::string shortened(std::string text) {
    if (text.size() <= most_characters) return text;
    text.resize(most_characters);
    while (!text.empty() && !from_utf8(text)) text.pop_back();  // no part of a character
    return text + "...";
}

/// Bytes as Python's repr writes them; `hex`: all of them by number.
std::string bytes_repr(std::string_view bytes, bool hex) {
    const char quote =
        bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos ? '"' : '\'';
    std::string text = std::string("b") + (hex ? '\'' : quote);
    for (const char c : bytes.substr(0, most_characters)) {
        const auto byte = static_cast<unsigned char>(c);
        if (hex) {
            text += fmt::format("\\x{:02X}", byte);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            text += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
        } else if (c == quote || c == '\\') {
            text += {'\\', c};
        } else if (byte < 0x20 || byte >= 0x7f) {
            text += fmt::format("\\x{:02x}", byte);
        } else {
            text += c;
        }
    }
    if (bytes.size() > most_characters) text += "...";
    return text + (hex ? '\'' : quote);
}

std::string bytes_at(const DType& dtype, const std::byte* p) {
    if (dtype.is_variable()) return std::string(element::load<VariableSlot>(p).view().substr(0, most_characters + 1));
    std::string bytes(reinterpret_cast<const char*>(p), static_cast<std::size_t>(dtype.size()));
    if (dtype.kind() == Kind::bytes) bytes.resize(bytes.find_last_not_of('\0') + 1);
    return bytes;
}

/// A field of a structure, or the items of a sub-array in it, "[1, 2]".
Print print_field(const Field& field, const Places& shown) {
    const std::int64_t count = element_count(field.shape);
    if (count * std::ssize(shown) > most_shown) return [](const std::byte*) { return std::string("[...]"); };
    Places items;
    for (const std::byte* p : shown) {
        for (std::int64_t i = 0; i < count; ++i) items.push_back(p + field.offset + i * field.dtype.size());
    }
    Print item = printer_of(field.dtype, items, false);
    return [field, item = std::move(item)](const std::byte* p) {
        const std::byte* at = p + field.offset;
        const std::function<std::string(int)> list = [&](int axis) -> std::string {
            if (axis == field.shape.rank()) return item(std::exchange(at, at + field.dtype.size()));
            std::vector<std::string> parts;
            for (std::int64_t i = 0; i < field.shape[axis]; ++i) parts.push_back(list(axis + 1));
            return fmt::format("[{}]", fmt::join(parts, ", "));
        };
        return list(0);
    };
}

Print print_structure(const DType& dtype, const Places& shown) {
    std::vector<Print> fields;
    for (const Field& field : dtype.fields()) fields.push_back(print_field(field, shown));
    return [fields = std::move(fields)](const std::byte* p) {
        std::vector<std::string> parts;
        for (const Print& field : fields) parts.push_back(field(p));
        return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
    };
}

/// What prints the elements that are shown. `alone`: one that is no item of an array.
Print printer_of(const DType& dtype, const Places& shown, bool alone) {
    const auto text = [dtype](const std::byte* p) { return element_to_text(dtype, p); };
    switch (dtype.kind()) {
        case Kind::real:
        case Kind::bfloat16:
            return alone ? Print(text) : print_reals(dtype, shown);
        case Kind::complex:
            if (alone) return [text](const std::byte* p) { return fmt::format("({})", text(p)); };
            return print_complex(dtype, shown);
        case Kind::boolean:
            return print_aligned(
                shown, [](const std::byte* p) { return std::string(*p != std::byte{0} ? "True" : "False"); },
                alone ? 0 : 5);
        case Kind::datetime:
        case Kind::timedelta:
            return alone ? Print(text) : print_times(dtype, shown);
        case Kind::text:
        case Kind::variable_text:
            if (alone) return [text](const std::byte* p) { return shortened(text(p)); };
            return [text](const std::byte* p) { return python_repr(shortened(text(p))); };
        case Kind::bytes:
        case Kind::variable_bytes:
        case Kind::raw:
            return [dtype](const std::byte* p) { return bytes_repr(bytes_at(dtype, p), dtype.kind() == Kind::raw); };
        case Kind::structure:
            return print_structure(dtype, shown);
        default:
            return print_aligned(shown, text);
    }
}

// ---- the layout

/// The items that are shown along an axis: some at each end, or all of them.
struct Axis {
    std::int64_t first = 0;
    std::int64_t last = 0;
    bool gap = false;  ///< "..." between them

    [[nodiscard]] std::int64_t count() const { return first + last; }
    [[nodiscard]] std::int64_t index(std::int64_t i, std::int64_t length) const {
        return i < first ? i : length - count() + i;
    }
};

std::vector<Axis> shown_items(const Shape& shape) {
    const bool summary = element_count(shape) > threshold;
    std::vector<Axis> axes;
    double total = 1;
    for (const std::int64_t length : shape) {
        const bool gap = summary && length > 2 * edge_items;
        axes.push_back(gap ? Axis{edge_items, edge_items, true} : Axis{length, 0, false});
        total *= static_cast<double>(axes.back().count());
    }
    for (Axis& axis : axes) {
        if (!summary || total <= static_cast<double>(most_shown)) break;
        if (axis.count() == 1) continue;
        total /= static_cast<double>(axis.count());
        axis = {1, 0, true};
    }
    return axes;
}

std::size_t width_of(std::string_view text) {
    return count_utf8(text).value_or(text.size());
}

class Layout {
public:
    explicit Layout(const ArrayView& elements)
        : shape_(elements.shape), axes_(shown_items(shape_)), memory_(gather(elements)) {
        Places shown;
        for (std::int64_t i = 0; i < memory_.count(); ++i) shown.push_back(place(i));
        print_ = printer_of(memory_.dtype(), shown, shape_.empty());
    }

    [[nodiscard]] std::string text() { return rows(0, " "); }

private:
    /// The elements that are shown, packed and in host order.
    [[nodiscard]] NDArray gather(const ArrayView& elements) const {
        Shape extent = shape_;
        for (int d = 0; d < extent.rank(); ++d) extent[d] = axes_[static_cast<std::size_t>(d)].count();
        const bool ordered = elements.dtype.kind() == Kind::structure || !elements.dtype.is_native();
        NDArray memory(ordered ? elements.dtype.with_order(native_order) : elements.dtype, extent);
        const auto size = static_cast<std::size_t>(elements.dtype.size());
        Index at = Index::filled(extent.rank(), 0);
        for (std::int64_t i = 0; i < memory.count(); ++i) {
            ArrayView from = elements;
            for (int d = 0; d < at.rank(); ++d) {
                from.data += axes_[static_cast<std::size_t>(d)].index(at[d], shape_[d]) * elements.strides[d];
            }
            std::byte* const to = memory.bytes().data() + static_cast<std::size_t>(i) * size;
            if (elements.dtype.is_variable()) {
                std::memcpy(to, from.data, size);  // the slot; its bytes stay where they are
            } else {
                const ArrayView one{from.data, elements.dtype, {}, {}};
                copy_elements(one, MutableArrayView{to, memory.dtype(), {}, {}, nullptr});
            }
            for (int d = at.rank(); d-- > 0 && ++at[d] == extent[d];) at[d] = 0;
        }
        return memory;
    }

    [[nodiscard]] const std::byte* place(std::int64_t i) const {
        return memory_.bytes().data() + i * memory_.dtype().size();
    }

    /// The items from axis `axis` on; `indent` stands before each line.
    std::string rows(int axis, const std::string& indent) {
        if (axis == shape_.rank()) return print_(place(next_++));
        const std::string text = axis + 1 == shape_.rank() ? words(axis, indent) : blocks(axis, indent);
        return '[' + text.substr(indent.size()) + ']';
    }

    /// Of all axes but the last: each item on lines of its own.
    std::string blocks(int axis, const std::string& indent) {
        const Axis& items = axes_[static_cast<std::size_t>(axis)];
        const std::string between(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n');
        std::string text;
        for (std::int64_t i = 0; i < items.count(); ++i) {
            if (items.gap && i == items.first) text.append(indent).append("...").append(between);
            text.append(indent).append(rows(axis + 1, indent + ' '));
            if (i + 1 < items.count()) text += between;
        }
        if (items.gap && items.last == 0) text += between + indent + "...";
        return text;
    }

    /// Of the last axis: as many on a line as fit.
    std::string words(int axis, const std::string& indent) {
        const Axis& items = axes_[static_cast<std::size_t>(axis)];
        const std::size_t width =
            line_width - std::min<std::size_t>(line_width - 1, static_cast<std::size_t>(axis) + 1);
        std::string text;
        std::string line = indent;
        const auto add = [&](const std::string& word) {
            if (width_of(line) + width_of(word) > width && line.size() > indent.size()) {
                text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
                line = indent;
            }
            line += word;
        };
        for (std::int64_t i = 0; i < items.count(); ++i) {
            if (items.gap && i == items.first) {
                add("...");
                line += ' ';
            }
            add(rows(axis + 1, {}));
            if (i + 1 < items.count()) line += ' ';
        }
        if (items.gap && items.last == 0) add(" ...");
        return text + line;
    }

    Shape shape_;
    std::vector<Axis> axes_;
    NDArray memory_;
    Print print_;
    std::int64_t next_ = 0;
};

}  // namespace

std::string ArrayView::to_string() const {
    return count() == 0 ? "[]" : Layout(*this).text();
}

std::ostream& operator<<(std::ostream& out, const ArrayView& elements) {
    return out << elements.to_string();
}

}  // namespace tessera
