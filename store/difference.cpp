#include <tessera/difference.h>

#include <fmt/format.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

#include "element_number.h"

namespace tessera {

namespace {

/// Takes the elements of one array and compares them with those of the other.
class DifferenceSink final : public ArraySink {
public:
    DifferenceSink(const DType& dtype, const ArraySource& other, const Tolerance& tolerance, int places,
                   Difference& result)
        : dtype_(dtype),
          other_(other),
          info_(other.info()),
          tolerance_(tolerance),
          places_(static_cast<std::size_t>(places)),
          result_(result),
          numbers_(is_number(dtype_) && is_number(info_.dtype)),
          by_value_(numbers_ && (tolerance.atol != 0 || tolerance.rtol != 0 || !dtype_.equal_but_order(info_.dtype))) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = info_;
        info.dtype = dtype_;
        return info;
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        NDArray theirs(by_value_ ? info_.dtype : dtype_, region.extent);
        other_.read_into(region, theirs, io);
        if (!by_value_ && elements_equal(in, theirs)) return;
        NDArray ours(dtype_, region.extent);
        copy_elements(in, ours);
        compare(region, ours, theirs);
    }

    void finish() override {
        for (auto& [index, place] : found_) result_.first.push_back(std::move(place));
    }
    [[nodiscard]] const std::string& name() const override { return other_.name(); }

private:
    void compare(const Region& region, const NDArray& ours, const NDArray& theirs) {
        const std::int64_t size = ours.dtype().size();
        const std::int64_t their_size = theirs.dtype().size();
        std::int64_t different = 0;
        std::optional<double> largest;
        std::int64_t largest_at = 0;
        std::vector<std::int64_t> places;
        for (std::int64_t i = 0; i < ours.count(); ++i) {
            const std::byte* a = ours.bytes().data() + i * size;
            const std::byte* b = theirs.bytes().data() + i * their_size;
            if (!by_value_ && same_bits(ours.dtype(), a, b)) continue;
            if (numbers_) {
                const double distance = distance_of(a, theirs.dtype(), b);
                if (by_value_ && close(a, theirs.dtype(), b, distance)) continue;
                if (!largest || distance > *largest) {
                    largest = distance;
                    largest_at = i;
                }
            }
            ++different;
            if (places.size() < places_) places.push_back(i);
        }
        if (different == 0) return;
        const std::lock_guard lock(mutex_);
        result_.different += different;
        if (largest && (!result_.largest || *largest > *result_.largest)) {
            result_.largest = largest;
            result_.largest_at = index_in_array(region, largest_at);
        }
        for (const std::int64_t i : places) {
            Index index = index_in_array(region, i);
            std::vector<std::int64_t> key(index.begin(), index.end());
            if (found_.size() == places_ && !(key < found_.rbegin()->first)) break;
            found_[key] = {index, element_to_text(ours.dtype(), ours.bytes().data() + i * size),
                           element_to_text(theirs.dtype(), theirs.bytes().data() + i * their_size)};
            if (found_.size() > places_) found_.erase(std::prev(found_.end()));
        }
    }

    static Index index_in_array(const Region& region, std::int64_t linear) {
        Index index = region.start;
        for (int d = region.rank() - 1; d >= 0; --d) {
            index[d] += linear % region.extent[d];
            linear /= region.extent[d];
        }
        return index;
    }

    static bool same_bits(const DType& dtype, const std::byte* a, const std::byte* b) {
        if (dtype.is_variable()) {
            return reinterpret_cast<const VariableSlot*>(a)->view() == reinterpret_cast<const VariableSlot*>(b)->view();
        }
        if (dtype.kind() != Kind::structure) return std::memcmp(a, b, static_cast<std::size_t>(dtype.size())) == 0;
        return std::ranges::all_of(dtype.fields(), [&](const Field& field) {
            if (field.unnamed) return true;
            for (std::int64_t at = field.offset; at < field.offset + field.size(); at += field.dtype.size()) {
                if (!same_bits(field.dtype, a + at, b + at)) return false;
            }
            return true;
        });
    }

    double distance_of(const std::byte* a, const DType& dtype_b, const std::byte* b) const {
        const double distance = std::abs(number_at(dtype_, a) - number_at(dtype_b, b));
        return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
    }

    bool close(const std::byte* a, const DType& dtype_b, const std::byte* b, double distance) const {
        const std::complex<double> x = number_at(dtype_, a);
        const std::complex<double> y = number_at(dtype_b, b);
        const auto is_nan = [](const std::complex<double>& v) { return std::isnan(v.real()) || std::isnan(v.imag()); };
        if (is_nan(x) || is_nan(y)) return is_nan(x) && is_nan(y);
        if (x == y) return equal_integers(a, dtype_b, b);
        return std::isfinite(distance) && distance <= tolerance_.atol + tolerance_.rtol * std::abs(y);
    }

    /// Integers beyond 2^53 may agree as doubles and yet differ.
    bool equal_integers(const std::byte* a, const DType& dtype_b, const std::byte* b) const {
        const auto integer = [](const DType& d) {
            return d.kind() == Kind::integer || d.kind() == Kind::unsigned_integer;
        };
        if (tolerance_.atol != 0 || tolerance_.rtol != 0 || !integer(dtype_) || !integer(dtype_b)) return true;
        return element_to_value(dtype_, a) == element_to_value(dtype_b, b);
    }

    DType dtype_;
    const ArraySource& other_;
    ArrayInfo info_;
    Tolerance tolerance_;
    std::size_t places_;
    Difference& result_;
    bool numbers_;
    bool by_value_;
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
    // Where one shows padding as fields, both are read so.
    const bool padding = same && !of_a.dtype.equal_but_order(of_b.dtype);
    const DType dtype = padding ? of_b.dtype.with_padding_named() : of_a.dtype;
    result.compared = true;
    result.elements = element_count(of_a.shape);
    DifferenceSink sink(dtype, b, tolerance, places, result);
    copy_array(a, sink, {.io = io, .held = 2});  // a block of each array at once
    return result;
}

}  // namespace tessera
