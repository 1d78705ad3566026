#include <tessera/measure.h>

#include <fmt/format.h>
#include <tessera/absent.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error.h>
#include <tessera/json.h>
#include <tessera/numbers.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "equal_elements.h"

namespace tessera {

namespace {

DType in_host_order(const DType& dtype) {
    const bool ordered = dtype.kind() == Kind::structure || dtype.order() != ByteOrder::none;
    return ordered ? dtype.with_order(native_order) : dtype;
}

/// Adds 1 to flags[i] if the i-th items of two rows differ in anything but padding. An item is `items` consecutive
/// elements; items are `step` bytes apart.
void flag_fields(const DType& dtype, const std::byte* a, const std::byte* b, std::int64_t step, std::int64_t n,
                 std::int64_t items, std::uint8_t* flags) {
    const std::int64_t size = dtype.size();
    if (dtype.kind() != Kind::structure) {
        const auto bytes = static_cast<std::size_t>(items * size);
        for (std::int64_t i = 0; i < n; ++i) flags[i] |= std::memcmp(a + i * step, b + i * step, bytes) != 0 ? 1 : 0;
        return;
    }
    for (const Field& f : dtype.fields()) {
        for (std::int64_t k = 0; k < (f.unnamed ? 0 : items); ++k) {
            const std::int64_t at = k * size + f.offset;
            flag_fields(f.dtype, a + at, b + at, step, n, element_count(f.shape), flags);
        }
    }
}

/// Numbers of one dtype as doubles, complex ones as two.
struct Numbers {
    explicit Numbers(const DType& dtype)
        : convert(to_doubles(dtype)), complex(dtype.kind() == Kind::complex), size(dtype.size()) {}
    ToDoubles convert;
    bool complex;
    std::int64_t size;

    /// As two doubles each; for real numbers the second is 0.
    void pairs(const std::byte* elements, std::int64_t n, double* to) const {
        if (complex) return convert(elements, n, to);
        double real[numbers_at_once];
        convert(elements, n, real);
        for (std::int64_t i = 0; i < n; ++i) {
            to[2 * i] = real[i];
            to[2 * i + 1] = 0;
        }
    }
};

/// The result for a piece.
struct Found {
    std::uint8_t different[numbers_at_once];
    double distance[numbers_at_once];  ///< valid where they differ; infinite instead of NaN
};

/// Compares two rows of elements, by loops chosen once for a whole array.
class Comparison {
public:
    Comparison(const DType& a, const DType& b, const Tolerance& tolerance)
        : a_(a), b_(b), tolerance_(tolerance), numbers_(is_number(a) && is_number(b)) {
        by_value_ = numbers_ && (tolerance.atol != 0 || tolerance.rtol != 0 || !(a == b));
        if (numbers_) {
            numbers_a_.emplace(a);
            numbers_b_.emplace(b);
        }
        const auto integer = [](const DType& d) {
            return d.kind() == Kind::integer || d.kind() == Kind::unsigned_integer;
        };
        plain_ = a == b && !a.is_variable();
        integers_ = by_value_ && tolerance.atol == 0 && tolerance.rtol == 0 && integer(a) && integer(b);
    }

    [[nodiscard]] bool numbers() const { return numbers_; }
    [[nodiscard]] bool by_value() const { return by_value_; }

    /// At most numbers_at_once packed elements. Returns how many of them differ.
    std::int64_t compare(const std::byte* a, const std::byte* b, std::int64_t n, Found& found) const {
        // Identical bits are equal by value too, even NaN.
        if (plain_ && std::memcmp(a, b, static_cast<std::size_t>(n * a_.size())) == 0) return 0;
        if (!by_value_) flag_bits(a, b, n, found.different);
        if (by_value_ || (numbers_ && count(found.different, n) > 0)) measure(a, b, n, found);
        if (integers_) {
            // Beyond 2^53, different integers may be equal as doubles.
            std::uint64_t x[numbers_at_once];
            std::uint64_t y[numbers_at_once];
            to_integers(a_)(a, n, x);
            to_integers(b_)(b, n, y);
            for (std::int64_t i = 0; i < n; ++i) found.different[i] |= x[i] != y[i] ? 1 : 0;
        }
        return count(found.different, n);
    }

private:
    static std::int64_t count(const std::uint8_t* flags, std::int64_t n) {
        std::uint32_t sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += flags[i];
        return sum;
    }

    void flag_bits(const std::byte* a, const std::byte* b, std::int64_t n, std::uint8_t* flags) const {
        if (a_.is_variable()) {
            const auto* x = reinterpret_cast<const VariableSlot*>(a);
            const auto* y = reinterpret_cast<const VariableSlot*>(b);
            for (std::int64_t i = 0; i < n; ++i) flags[i] = x[i].view() != y[i].view() ? 1 : 0;
        } else if (a_.kind() == Kind::structure) {
            std::fill(flags, flags + n, 0);
            flag_fields(a_, a, b, a_.size(), n, 1, flags);
        } else {
            flag_different(a_.size())(a, b, n, a_.size(), flags);
        }
    }

    /// The distances of numbers and, in comparisons by value, whether they exceed the tolerance.
    void measure(const std::byte* a, const std::byte* b, std::int64_t n, Found& found) const {
        if (numbers_a_->complex || numbers_b_->complex) {
            double x[2 * numbers_at_once];
            double y[2 * numbers_at_once];
            numbers_a_->pairs(a, n, x);
            numbers_b_->pairs(b, n, y);
            measure_complex(x, y, n, found);
        } else {
            double x[numbers_at_once];
            double y[numbers_at_once];
            numbers_a_->convert(a, n, x);
            numbers_b_->convert(b, n, y);
            measure_real(x, y, n, found);
        }
    }

    void measure_real(const double* x, const double* y, std::int64_t n, Found& found) const {
        for (std::int64_t i = 0; i < n; ++i) {
            const double distance = std::abs(x[i] - y[i]);
            found.distance[i] = distance == distance ? distance : infinity;
        }
        if (!by_value_) return;
        for (std::int64_t i = 0; i < n; ++i) {
            const double distance = found.distance[i];
            const bool both_nan = (x[i] != x[i]) & (y[i] != y[i]);
            const bool near = (distance < infinity) & (distance <= tolerance_.atol + tolerance_.rtol * std::abs(y[i]));
            found.different[i] = (both_nan | near | (x[i] == y[i])) ? 0 : 1;
        }
    }

    void measure_complex(const double* x, const double* y, std::int64_t n, Found& found) const {
        for (std::int64_t i = 0; i < n; ++i) {
            const std::complex<double> u(x[2 * i], x[2 * i + 1]);
            const std::complex<double> v(y[2 * i], y[2 * i + 1]);
            double distance = std::abs(u - v);
            if (std::isnan(distance)) distance = infinity;
            found.distance[i] = distance;
            if (!by_value_) continue;
            const bool nan_u = std::isnan(u.real()) || std::isnan(u.imag());
            const bool nan_v = std::isnan(v.real()) || std::isnan(v.imag());
            const bool near = distance < infinity && distance <= tolerance_.atol + tolerance_.rtol * std::abs(v);
            found.different[i] = (nan_u || nan_v) ? nan_u != nan_v : u != v && !near;
        }
    }

    static constexpr double infinity = std::numeric_limits<double>::infinity();

    DType a_, b_;
    Tolerance tolerance_;
    bool numbers_;
    bool by_value_ = false;
    bool plain_ = false;  ///< an element is its bytes alone
    bool integers_ = false;
    std::optional<Numbers> numbers_a_, numbers_b_;
};

/// Compares the elements that it receives with those of another array.
class DifferenceSink final : public ArraySink {
public:
    /// `dtype` is that of the received elements.
    DifferenceSink(const DType& dtype, const ArraySource& other, const Tolerance& tolerance, int places,
                   Difference& result)
        : dtype_(in_host_order(dtype)),
          other_(other),
          info_(other.info()),
          places_(static_cast<std::size_t>(places)),
          result_(result),
          comparison_(dtype_, their_dtype(dtype_, info_.dtype), tolerance),
          their_dtype_(their_dtype(dtype_, info_.dtype)) {}

    /// Elements arrive in host order, as the kernels require.
    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = info_;
        info.dtype = dtype_;
        info.shards = Shape();  // nothing is stored, so that blocks need not be whole shards
        return info;
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        NDArray theirs(their_dtype_, region.extent);
        other_.read_into(region, theirs, io);
        if (!comparison_.by_value() && elements_equal(in, theirs)) return;
        if (in.dtype == dtype_ && in.contiguous()) return compare(region, in.data, theirs.bytes().data());
        NDArray ours(dtype_, region.extent);
        copy_elements(in, ours);
        compare(region, ours.bytes().data(), theirs.bytes().data());
    }

    /// Whether what absent chunks of both arrays read as is alike.
    [[nodiscard]] bool absent_are_alike(const ArraySource& source) const {
        NDArray ours(dtype_, Shape{1});
        NDArray theirs(their_dtype_, Shape{1});
        fill_as_absent(source, ours.view());
        fill_as_absent(other_, theirs.view());
        if (!comparison_.by_value() && elements_equal(ours, theirs)) return true;
        Found found;
        return comparison_.compare(ours.bytes().data(), theirs.bytes().data(), 1, found) == 0;
    }

    void finish() override {
        for (auto& [index, place] : found_) result_.first.push_back(std::move(place));
    }
    [[nodiscard]] const std::string& name() const override { return other_.name(); }

private:
    /// The dtype for reading the other array: numbers of another type keep their own.
    static DType their_dtype(const DType& ours, const DType& theirs) {
        const bool by_value = is_number(ours) && is_number(theirs) && !ours.equal_but_order(theirs);
        return by_value ? in_host_order(theirs) : ours;
    }

    /// Compares the elements of a block, packed in C order.
    void compare(const Region& region, const std::byte* a, const std::byte* b) {
        std::int64_t different = 0;
        std::optional<double> largest;
        std::int64_t largest_at = 0;
        std::vector<std::int64_t> places;
        const std::int64_t count = region.count();
        Found found;
        for (std::int64_t i = 0; i < count; i += numbers_at_once) {
            const std::int64_t n = std::min(numbers_at_once, count - i);
            const std::int64_t here = comparison_.compare(a + i * dtype_.size(), b + i * their_dtype_.size(), n, found);
            if (here == 0) continue;
            different += here;
            for (std::int64_t k = 0; k < n && places.size() < places_; ++k) {
                if (found.different[k] != 0) places.push_back(i + k);
            }
            if (!comparison_.numbers()) continue;
            for (std::int64_t k = 0; k < n; ++k) {
                if (found.different[k] == 0 || (largest && !(found.distance[k] > *largest))) continue;
                largest = found.distance[k];
                largest_at = i + k;
            }
        }
        if (different == 0) return;
        const std::lock_guard lock(mutex_);
        result_.different += different;
        if (largest) take_largest(*largest, index_in_array(region, largest_at));
        for (const std::int64_t i : places) {
            Index index = index_in_array(region, i);
            std::vector<std::int64_t> key(index.begin(), index.end());
            if (found_.size() == places_ && !(key < found_.rbegin()->first)) break;
            const std::byte* ours = a + i * dtype_.size();
            const std::byte* theirs = b + i * their_dtype_.size();
            found_[key] = {index, element_to_text(dtype_, ours), element_to_text(their_dtype_, theirs),
                           element_to_json(dtype_, ours), element_to_json(their_dtype_, theirs)};
            if (found_.size() > places_) found_.erase(std::prev(found_.end()));
        }
    }

    /// Of equal distances, keeps the first in C order.
    void take_largest(double distance, const Index& at) {
        if (result_.largest) {
            if (distance < *result_.largest) return;
            if (distance == *result_.largest && !std::ranges::lexicographical_compare(at, result_.largest_at)) return;
        }
        result_.largest = distance;
        result_.largest_at = at;
    }

    static Index index_in_array(const Region& region, std::int64_t linear) {
        Index index = region.start;
        for (int d = region.rank() - 1; d >= 0; --d) {
            index[d] += linear % region.extent[d];
            linear /= region.extent[d];
        }
        return index;
    }

    DType dtype_;
    const ArraySource& other_;
    ArrayInfo info_;
    std::size_t places_;
    Difference& result_;
    Comparison comparison_;
    DType their_dtype_;
    std::mutex mutex_;
    std::map<std::vector<std::int64_t>, Difference::Place> found_;
};

}  // namespace

Difference difference(const ArraySource& a, const ArraySource& b, const Tolerance& tolerance, int places,
                      const IoOptions& io) {
    Difference result;
    const ArrayInfo of_a = a.info();
    const ArrayInfo of_b = b.info();
    if (!(of_a.shape == of_b.shape)) {
        result.structure.push_back(fmt::format("shape {} is not {}", of_a.shape.to_string(), of_b.shape.to_string()));
        return result;
    }
    const bool same = of_a.dtype.with_padding_named().equal_but_order(of_b.dtype.with_padding_named());
    if (!same) {
        result.structure.push_back(fmt::format("dtype {} is not {}", of_a.dtype.to_string(), of_b.dtype.to_string()));
        if (!is_number(of_a.dtype) || !is_number(of_b.dtype)) return result;
    }
    // If one of the two shows padding as fields, both are read like that.
    const bool padding = same && !of_a.dtype.equal_but_order(of_b.dtype);
    const DType dtype = padding ? of_b.dtype.with_padding_named() : of_a.dtype;
    result.compared = true;
    result.elements = element_count(of_a.shape);
    DifferenceSink sink(dtype, b, tolerance, places, result);
    const bool skips = !padding && a.absent_element() && b.absent_element() && sink.absent_are_alike(a);
    // A block of each array at once.
    copy_array(a, sink, {.io = io, .held = 2, .ample = passing_block, .beside = &b, .skip_absent = skips});
    return result;
}

}  // namespace tessera
