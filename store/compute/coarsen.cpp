#include <tessera/action.h>
#include <tessera/coarsen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/cast.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

constexpr std::array<std::string_view, 5> coarsening_names{"mean", "max", "min", "mode", "nearest"};

// Sums of a block: 64-bit integers could leave the range of 64 bits.
__extension__ using Int128 = __int128;

/// NaN and NaT, which propagate to the mean, max and min.
template <class W>
bool is_missing(W v, bool time) {
    if constexpr (std::is_same_v<W, double>) return v != v;
    return time && static_cast<std::int64_t>(v) == std::numeric_limits<std::int64_t>::min();
}

/// sum / n, half to even.
std::int64_t rounded_mean(Int128 sum, std::int64_t n) {
    Int128 quotient = sum / n;
    Int128 rest = sum % n;
    if (rest < 0) {
        rest += n;
        quotient -= 1;
    }
    if (2 * rest > n || (2 * rest == n && quotient % 2 != 0)) quotient += 1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(quotient));
}

/// A block of elements as wide numbers, packed in C order. Each block of `by` in it becomes one element.
template <class W>
class CoarseBlocks {
public:
    CoarseBlocks(const Shape& shape, const Shape& by, bool time)
        : shape_(shape), by_(by), out_(coarsened(shape, by)), time_(time) {}

    [[nodiscard]] std::vector<W> reduced(const W* v, Coarsening with) const {
        if (with == Coarsening::mode) return modes(v);
        return with == Coarsening::mean ? means(v) : extremes(v, with == Coarsening::max);
    }

private:
    /// Calls row(index of the first result, index of the first element) for each row of elements.
    template <class Row>
    void for_each_row(const Row& row) const {
        const int last = shape_.rank() - 1;
        const std::int64_t length = shape_[last];
        const std::int64_t rows = length == 0 ? 0 : element_count(shape_) / length;
        Index at = Index::filled(last, 0);
        for (std::int64_t r = 0; r < rows; ++r) {
            std::int64_t to = 0;
            for (int d = 0; d < last; ++d) to = to * out_[d] + at[d] / by_[d];
            row(to * out_[last], r * length);
            for (int d = last - 1; d >= 0 && ++at[d] == shape_[d]; --d) at[d] = 0;
        }
    }

    /// Calls take(result, element) for each element of a row, in order.
    template <class Take>
    void for_each_in_row(std::int64_t to, std::int64_t from, const Take& take) const {
        const std::int64_t length = shape_.back();
        const std::int64_t factor = by_.back();
        for (std::int64_t i = 0; i < length; i += factor, ++to) {
            const std::int64_t end = std::min(length, i + factor);
            for (std::int64_t j = i; j < end; ++j) take(to, from + j);
        }
    }

    /// The number of elements in the block of a result.
    [[nodiscard]] std::int64_t size_of(std::int64_t result) const {
        std::int64_t size = 1;
        for (int d = shape_.rank() - 1; d >= 0; --d) {
            const std::int64_t i = result % out_[d];
            result /= out_[d];
            size *= std::min(by_[d], shape_[d] - i * by_[d]);
        }
        return size;
    }

    [[nodiscard]] std::vector<W> means(const W* v) const {
        using Sum = std::conditional_t<std::is_same_v<W, double>, double, Int128>;
        const auto count = static_cast<std::size_t>(element_count(out_));
        // -0.0 is the neutral element of addition.
        std::vector<Sum> sums(count, std::is_same_v<Sum, double> ? static_cast<Sum>(-0.0) : Sum{});
        std::vector<std::uint8_t> missing(time_ ? count : 0, 0);
        for_each_row([&](std::int64_t to, std::int64_t from) {
            for_each_in_row(to, from, [&](std::int64_t i, std::int64_t j) {
                sums[static_cast<std::size_t>(i)] += v[j];
                if (time_ && is_missing(v[j], true)) missing[static_cast<std::size_t>(i)] = 1;
            });
        });
        std::vector<W> made(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t n = size_of(static_cast<std::int64_t>(i));
            if constexpr (std::is_same_v<W, double>) {
                made[i] = sums[i] / static_cast<double>(n);
            } else {
                made[i] = static_cast<W>(rounded_mean(sums[i], n));
                if (time_ && missing[i] != 0) made[i] = static_cast<W>(std::numeric_limits<std::int64_t>::min());
            }
        }
        return made;
    }

    [[nodiscard]] std::vector<W> extremes(const W* v, bool largest) const {
        const auto count = static_cast<std::size_t>(element_count(out_));
        std::vector<W> best(count);
        std::vector<std::uint8_t> begun(count, 0);
        for_each_row([&](std::int64_t to, std::int64_t from) {
            for_each_in_row(to, from, [&](std::int64_t i, std::int64_t j) {
                const auto at = static_cast<std::size_t>(i);
                const bool kept =
                    begun[at] != 0 && (is_missing(best[at], time_) ||
                                       !(is_missing(v[j], time_) || (largest ? v[j] > best[at] : v[j] < best[at])));
                begun[at] = 1;
                if (!kept) best[at] = v[j];
            });
        });
        return best;
    }

    [[nodiscard]] std::vector<W> modes(const W* v) const {
        const auto count = static_cast<std::size_t>(element_count(out_));
        const auto most = static_cast<std::size_t>(element_count(by_));
        std::vector<W> gathered(count * most);
        std::vector<std::size_t> sizes(count, 0);
        for_each_row([&](std::int64_t to, std::int64_t from) {
            for_each_in_row(to, from, [&](std::int64_t i, std::int64_t j) {
                const auto at = static_cast<std::size_t>(i);
                gathered[at * most + sizes[at]++] = v[j];
            });
        });
        std::vector<W> made(count);
        for (std::size_t i = 0; i < count; ++i) made[i] = mode_of(gathered.data() + i * most, sizes[i]);
        return made;
    }

    /// NaNs count as equal, and as the largest; so do NaTs.
    W mode_of(W* v, std::size_t n) const {
        const auto less = [time = time_](W a, W b) {
            return is_missing(b, time) ? !is_missing(a, time) : !is_missing(a, time) && a < b;
        };
        std::sort(v, v + n, less);
        W best = v[0];
        std::size_t longest = 0;
        for (std::size_t i = 0; i < n;) {
            std::size_t end = i + 1;
            while (end < n && !less(v[i], v[end])) ++end;
            if (end - i > longest) {
                longest = end - i;
                best = v[i];
            }
            i = end;
        }
        return best;
    }

    Shape shape_, by_, out_;
    bool time_;
};

class CoarsenSource final : public ArraySource {
public:
    CoarsenSource(std::unique_ptr<ArraySource> array, const Shape& by, Coarsening with)
        : array_(std::move(array)), from_(array_->info()), by_(by), with_(with), dtype_(native_dtype(from_.dtype)) {
        require_factors();
        info_ = from_;
        info_.shape = coarsened(from_.shape, by_);
        info_.shards = Shape();
        if (!chunked()) info_.chunks = from_.chunks;
        for (int d = 0; chunked() && d < by_.rank(); ++d)
            info_.chunks[d] = std::max<std::int64_t>(1, from_.chunks[d] / by_[d]);
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        if (with_ == Coarsening::nearest) {
            std::vector<Selection::Axis> axes;
            for (int d = 0; d < region.rank(); ++d)
                axes.push_back({region.start[d] * by_[d], by_[d], region.extent[d]});
            read_selection_into(*array_, Selection(std::move(axes)), out, io);
            return;
        }
        ArrayInfo slices = info_;
        slices.order = Order::C;
        const std::int64_t item = element_count(by_) * (dtype_.size() + 16) + 40;
        for_each_slice(slices, item, region, io.stop, [&](const Region& slice) {
            const NDArray made = reduced(slice, io);
            copy_elements(made.view(), out.part(within(region, slice)));
        });
    }

private:
    [[nodiscard]] bool chunked() const { return from_.chunks.rank() == by_.rank(); }

    void require_factors() const {
        if (by_.rank() != from_.shape.rank()) {
            throw invalid_argument("{}: {} factors were given for {} dimensions", array_->name(), by_.rank(),
                                   from_.shape.rank());
        }
        for (const std::int64_t factor : by_) {
            if (factor < 1) throw invalid_argument("a factor must be at least 1, found {}", factor);
        }
        (void)element_count(by_);
        const bool complex_order = dtype_.kind() == Kind::complex && with_ != Coarsening::mean;
        if (with_ != Coarsening::nearest && ((!is_number(dtype_) && !is_time(dtype_)) || complex_order)) {
            throw unsupported("{}: there is no {} of elements of {}", array_->name(), coarsening_name(with_),
                              dtype_.to_string())
                .advising(Action::coarsening, "takes any", "nearest");
        }
    }

    [[nodiscard]] NDArray reduced(const Region& slice, const IoOptions& io) const {
        Region block = slice;
        for (int d = 0; d < slice.rank(); ++d) {
            block.start[d] *= by_[d];
            block.extent[d] = std::min(slice.extent[d] * by_[d], from_.shape[d] - block.start[d]);
        }
        NDArray elements(dtype_, block.extent);
        array_->read_into(block, elements.view(), io);
        if (dtype_.kind() == Kind::unsigned_integer || dtype_.kind() == Kind::boolean) {
            return reduced_as<std::uint64_t>(elements, slice.extent, DType::of<std::uint64_t>());
        }
        if (dtype_.kind() == Kind::integer) {
            return reduced_as<std::int64_t>(elements, slice.extent, DType::of<std::int64_t>());
        }
        if (is_time(dtype_)) return reduced_as<std::int64_t>(elements, slice.extent, dtype_);
        return reduced_as<double>(elements, slice.extent,
                                  dtype_.kind() == Kind::complex ? DType("c16") : DType::of<double>());
    }

    template <class W>
    [[nodiscard]] NDArray reduced_as(const NDArray& elements, const Shape& extent, const DType& wide) const {
        Shape shape = elements.shape();
        Shape by = by_;
        const bool complex = dtype_.kind() == Kind::complex;
        if (complex || shape.empty()) {  // real and imaginary parts separately
            shape.push_back(complex ? 2 : 1);
            by.push_back(1);
        }
        NDArray numbers(DType::of<W>(), shape);
        (void)cast_packed(is_time(dtype_) ? DType::of<std::int64_t>() : dtype_, elements.bytes().data(),
                          is_time(dtype_) ? DType::of<std::int64_t>() : wide, numbers.bytes().data(), elements.count(),
                          Cast::unsafe);
        const std::vector<W> made = CoarseBlocks<W>(shape, by, is_time(dtype_))
                                        .reduced(reinterpret_cast<const W*>(numbers.bytes().data()), with_);
        NDArray out(dtype_, extent);
        (void)cast_packed(wide, reinterpret_cast<const std::byte*>(made.data()), dtype_, out.bytes().data(),
                          out.count(), Cast::unsafe);
        return out;
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    Shape by_;
    Coarsening with_;
    DType dtype_;  ///< the source's, in host order
    ArrayInfo info_;
};

}  // namespace

Coarsening parse_coarsening(std::string_view word) {
    const auto found = std::ranges::find(coarsening_names, word);
    if (found == coarsening_names.end()) {
        throw invalid_argument("expected mean, max, min, mode or nearest, found '{}'", word);
    }
    return static_cast<Coarsening>(found - coarsening_names.begin());
}

std::string_view coarsening_name(Coarsening with) {
    return coarsening_names.at(static_cast<std::size_t>(with));
}

Shape coarsened(const Shape& shape, const Shape& by) {
    Shape made = shape;
    for (int d = 0; d < shape.rank(); ++d) made[d] = ceil_div(shape[d], by[d]);
    return made;
}

std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by, Coarsening with) {
    return std::make_unique<CoarsenSource>(std::move(array), by, with);
}

}  // namespace tessera
