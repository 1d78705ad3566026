#include <tessera/statistics.h>

#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "element_number.h"

namespace tessera {

namespace {

/// Bins whose width doubles whenever a value falls outside: the last width depends on the extremes alone, not on the
/// order in which values came.
class Bins {
public:
    explicit Bins(std::size_t most) : most_(most) {}

    void add(double v) {
        if (counts_.empty()) {
            // The finest bins in which both ends of any range around v are still integers as doubles.
            exponent_ = v == 0 ? -1000 : std::max(std::ilogb(v) - 50, -1000);
            first_ = cell(v);
            counts_.assign(1, 0);
        }
        for (;;) {
            const double at = cell(v) - first_;
            if (at >= 0 && at < static_cast<double>(counts_.size())) {
                ++counts_[static_cast<std::size_t>(at)];
                return;
            }
            const double span = at < 0 ? static_cast<double>(counts_.size()) - at : at + 1;
            if (span <= static_cast<double>(most_)) {
                extend(at);
            } else {
                coarsen();
            }
        }
    }

    void merge(const Bins& other) {
        if (other.counts_.empty()) return;
        if (counts_.empty()) {
            *this = other;
            return;
        }
        Bins theirs = other;
        while (exponent_ < theirs.exponent_) coarsen();
        while (theirs.exponent_ < exponent_) theirs.coarsen();
        for (;;) {
            const double from = std::min(first_, theirs.first_);
            const double to = std::max(first_ + static_cast<double>(counts_.size()),
                                       theirs.first_ + static_cast<double>(theirs.counts_.size()));
            if (to - from <= static_cast<double>(most_)) {
                extend(from - first_);
                extend(to - 1 - first_);
                break;
            }
            coarsen();
            theirs.coarsen();
        }
        const auto offset = static_cast<std::size_t>(theirs.first_ - first_);
        for (std::size_t i = 0; i < theirs.counts_.size(); ++i) counts_[offset + i] += theirs.counts_[i];
    }

    [[nodiscard]] std::optional<Histogram> histogram() const {
        if (counts_.empty()) return {};
        // One value only: its bin need not be the finest that there is.
        Bins b = *this;
        if (b.counts_.size() == 1) {
            const int wanted = b.first_ == 0 ? 0 : std::ilogb(b.first_) + b.exponent_ - 4;
            while (b.exponent_ < wanted) b.coarsen();
        }
        return Histogram{std::ldexp(b.first_, b.exponent_), std::ldexp(1.0, b.exponent_), b.counts_};
    }

private:
    [[nodiscard]] double cell(double v) const { return std::floor(std::ldexp(v, -exponent_)); }

    /// Makes room for the bin `at` places after the first one.
    void extend(double at) {
        if (at < 0) {
            counts_.insert(counts_.begin(), static_cast<std::size_t>(-at), 0);
            first_ += at;
        } else if (at >= static_cast<double>(counts_.size())) {
            counts_.resize(static_cast<std::size_t>(at) + 1, 0);
        }
    }

    void coarsen() {
        const double start = std::floor(first_ / 2);
        std::vector<std::int64_t> wider;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            const auto at = static_cast<std::size_t>(std::floor((first_ + static_cast<double>(i)) / 2) - start);
            wider.resize(std::max(wider.size(), at + 1), 0);
            wider[at] += counts_[i];
        }
        first_ = start;
        counts_ = std::move(wider);
        ++exponent_;
    }

    std::size_t most_;
    int exponent_ = 0;  ///< bins are 2^exponent_ wide
    double first_ = 0;  ///< the first bin's number: its start is first_ · 2^exponent_
    std::vector<std::int64_t> counts_;
};

/// A field (or the element itself) and where it lies.
struct Column {
    std::string name;
    DType dtype;
    std::int64_t offset = 0;
    Shape shape;  ///< of a sub-array
};

void add_columns(const DType& dtype, const std::string& name, std::int64_t offset, const Shape& shape,
                 std::vector<Column>& columns) {
    if (dtype.kind() != Kind::structure) {
        columns.push_back({name, dtype, offset, shape});
        return;
    }
    for (const Field& field : dtype.fields()) {
        if (field.unnamed) continue;
        // A sub-array of structures: each of them alone.
        for (std::int64_t i = 0; i < element_count(shape); ++i) {
            const std::string element = shape.empty() ? name : name + '[' + std::to_string(i) + ']';
            add_columns(field.dtype, element.empty() ? field.name : element + '.' + field.name,
                        offset + i * dtype.size() + field.offset, field.shape, columns);
        }
    }
}

/// What is known of one column after some blocks.
struct Summary {
    explicit Summary(std::size_t bins) : histogram(bins) {}

    std::int64_t count = 0;
    std::int64_t nans = 0;
    std::int64_t fills = 0;
    std::int64_t highs = 0;    ///< +infinity
    std::int64_t lows = 0;     ///< -infinity
    std::int64_t numbers = 0;  ///< finite ones, that mean and squares are of
    long double mean = 0;
    long double squares = 0;  ///< of distances from the mean
    std::string min, max;     ///< the elements' bytes, or the content of text
    bool any = false;         ///< whether min and max are set
    Bins histogram;
};

/// The order of elements of one column.
class Less {
public:
    explicit Less(const DType& dtype) : dtype_(dtype) {}
    bool operator()(const std::byte* a, const std::byte* b) const {
        if (dtype_.is_variable()) return slot(a) < slot(b);
        if (dtype_.kind() == Kind::integer || dtype_.kind() == Kind::datetime || dtype_.kind() == Kind::timedelta) {
            return integer(a) < integer(b);
        }
        if (dtype_.kind() == Kind::unsigned_integer && dtype_.size() == 8) {
            return static_cast<std::uint64_t>(integer(a)) < static_cast<std::uint64_t>(integer(b));
        }
        if (is_number(dtype_)) return number_at(dtype_, a).real() < number_at(dtype_, b).real();
        if (dtype_.kind() == Kind::text) return characters_less(a, b);
        return std::memcmp(a, b, static_cast<std::size_t>(dtype_.size())) < 0;
    }

private:
    static std::string_view slot(const std::byte* p) { return reinterpret_cast<const VariableSlot*>(p)->view(); }
    [[nodiscard]] std::int64_t integer(const std::byte* p) const {
        if (dtype_.size() < 8) return static_cast<std::int64_t>(number_at(dtype_, p).real());
        std::int64_t v = 0;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    [[nodiscard]] bool characters_less(const std::byte* a, const std::byte* b) const {
        for (std::int64_t i = 0; i < dtype_.size(); i += 4) {
            std::uint32_t x = 0;
            std::uint32_t y = 0;
            std::memcpy(&x, a + i, 4);
            std::memcpy(&y, b + i, 4);
            if (x != y) return x < y;
        }
        return false;
    }

    DType dtype_;
};

bool is_time(const DType& dtype) {
    return dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
}

/// Takes the elements of an array and sums them up, column by column.
class StatisticsSink final : public ArraySink {
public:
    StatisticsSink(const ArraySource& source, const std::optional<ElementBytes>& fill, int bins)
        : info_(source.info()), name_(source.name()), fill_(fill), bins_(static_cast<std::size_t>(bins)) {
        native_ = info_.dtype.kind() == Kind::structure || info_.dtype.order() != ByteOrder::none
                      ? info_.dtype.with_order(native_order)
                      : info_.dtype;
        add_columns(native_, "", 0, Shape(), columns_);
        totals_.assign(columns_.size(), Summary(bins_));
        if (fill_ && !info_.dtype.is_variable()) {
            NDArray element(native_, {1});
            copy_elements(view_bytes(fill_->data(), info_.dtype, {1}), element);
            fill_ = ElementBytes(element.bytes().begin(), element.bytes().end());
        }
    }

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = info_;
        info.access = Access::any;
        info.chunks = info_.chunks;
        return info;
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        NDArray packed(native_, region.extent);
        copy_elements(in, packed);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const Summary block = summary(columns_[c], packed);
            const std::lock_guard lock(mutex_);
            merge(totals_[c], block);
        }
    }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

    [[nodiscard]] std::vector<Statistics> result() const {
        std::vector<Statistics> list;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const Column& column = columns_[c];
            const Summary& total = totals_[c];
            Statistics s;
            s.field = column.name;
            s.dtype = column.dtype;
            s.count = total.count;
            s.nans = total.nans;
            s.fills = total.fills;
            if (total.any) {
                s.min = text_of(column.dtype, total.min);
                s.max = text_of(column.dtype, total.max);
            }
            constexpr double infinity = std::numeric_limits<double>::infinity();
            if (total.highs + total.lows > 0) {
                s.mean = total.lows == 0 ? infinity : total.highs == 0 ? -infinity : infinity - infinity;
                s.deviation = std::numeric_limits<double>::quiet_NaN();
            } else if (total.numbers > 0) {
                s.mean = static_cast<double>(total.mean);
                s.deviation = static_cast<double>(std::sqrt(total.squares / static_cast<long double>(total.numbers)));
            }
            s.histogram = total.histogram.histogram();
            list.push_back(std::move(s));
        }
        return list;
    }

private:
    static std::string text_of(const DType& dtype, const std::string& bytes) {
        if (!dtype.is_variable()) return element_to_text(dtype, reinterpret_cast<const std::byte*>(bytes.data()));
        const VariableSlot slot{bytes.data(), bytes.size()};
        return element_to_text(dtype, reinterpret_cast<const std::byte*>(&slot));
    }

    [[nodiscard]] bool is_fill(const Column& column, const std::byte* p) const {
        if (!fill_) return false;
        if (column.dtype.is_variable()) {
            const VariableSlot& slot = *reinterpret_cast<const VariableSlot*>(p);
            return slot.size == fill_->size() && std::memcmp(slot.data, fill_->data(), fill_->size()) == 0;
        }
        return std::memcmp(p, fill_->data() + column.offset, static_cast<std::size_t>(column.dtype.size())) == 0;
    }

    [[nodiscard]] Summary summary(const Column& column, const NDArray& block) const {
        Summary s(bins_);
        const DType& dtype = column.dtype;
        const bool number = is_number(dtype) && dtype.kind() != Kind::complex;
        const bool measured = number || is_time(dtype);
        const bool ordered =
            measured || dtype.is_variable() || dtype.kind() == Kind::bytes || dtype.kind() == Kind::text;
        const Less less(dtype);
        const std::byte* lowest = nullptr;
        const std::byte* highest = nullptr;
        std::vector<double> values;
        const std::int64_t items = element_count(column.shape);
        for (std::int64_t i = 0; i < block.count(); ++i) {
            const std::byte* element = block.bytes().data() + i * native_.size() + column.offset;
            for (std::int64_t k = 0; k < items; ++k) {
                const std::byte* p = element + k * dtype.size();
                ++s.count;
                s.fills += is_fill(column, p) ? 1 : 0;
                if (is_nan(dtype, p)) {
                    ++s.nans;
                    continue;
                }
                if (measured) {
                    const double v = value_at(dtype, p);
                    if (std::isfinite(v)) values.push_back(v);
                    if (std::isinf(v)) ++(v > 0 ? s.highs : s.lows);
                }
                if (!ordered) continue;
                if (lowest == nullptr || less(p, lowest)) lowest = p;
                if (highest == nullptr || less(highest, p)) highest = p;
            }
        }
        if (lowest != nullptr) {
            s.any = true;
            s.min = bytes_of(dtype, lowest);
            s.max = bytes_of(dtype, highest);
        }
        s.numbers = static_cast<std::int64_t>(values.size());
        for (const double v : values) s.mean += v;
        if (!values.empty()) s.mean /= static_cast<long double>(values.size());
        for (const double v : values) {
            const long double distance = v - s.mean;
            s.squares += distance * distance;
            if (number) s.histogram.add(v);
        }
        return s;
    }

    static bool is_nan(const DType& dtype, const std::byte* p) {
        if (is_time(dtype)) {
            std::int64_t v = 0;
            std::memcpy(&v, p, sizeof v);
            return v == std::numeric_limits<std::int64_t>::min();
        }
        if (!is_number(dtype)) return false;
        const std::complex<double> v = number_at(dtype, p);
        return std::isnan(v.real()) || std::isnan(v.imag());
    }

    static double value_at(const DType& dtype, const std::byte* p) {
        if (!is_time(dtype)) return number_at(dtype, p).real();
        std::int64_t v = 0;
        std::memcpy(&v, p, sizeof v);
        return static_cast<double>(v);
    }

    static std::string bytes_of(const DType& dtype, const std::byte* p) {
        if (dtype.is_variable()) return std::string(reinterpret_cast<const VariableSlot*>(p)->view());
        return {reinterpret_cast<const char*>(p), static_cast<std::size_t>(dtype.size())};
    }

    /// Chan's formula: the mean and squares of two parts give those of the whole.
    void merge(Summary& total, const Summary& part) const {
        const std::size_t c = static_cast<std::size_t>(&total - totals_.data());
        const DType& dtype = columns_[c].dtype;
        total.count += part.count;
        total.nans += part.nans;
        total.fills += part.fills;
        total.highs += part.highs;
        total.lows += part.lows;
        if (part.numbers > 0) {
            const auto n = static_cast<long double>(total.numbers);
            const auto m = static_cast<long double>(part.numbers);
            const long double distance = part.mean - total.mean;
            total.mean += distance * m / (n + m);
            total.squares += part.squares + distance * distance * n * m / (n + m);
            total.numbers += part.numbers;
        }
        if (part.any) {
            if (!total.any || before(dtype, part.min, total.min)) total.min = part.min;
            if (!total.any || before(dtype, total.max, part.max)) total.max = part.max;
            total.any = true;
        }
        total.histogram.merge(part.histogram);
    }

    static bool before(const DType& dtype, const std::string& a, const std::string& b) {
        if (dtype.is_variable()) return a < b;
        return Less(dtype)(reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()));
    }

    ArrayInfo info_;
    std::string name_;
    std::optional<ElementBytes> fill_;
    std::size_t bins_;
    DType native_;
    std::vector<Column> columns_;
    std::mutex mutex_;
    std::vector<Summary> totals_;
};

}  // namespace

std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill, int bins,
                                   const IoOptions& io) {
    if (bins < 4) throw invalid_argument("at least 4 bins are needed");
    StatisticsSink sink(source, fill, bins);
    copy_array(source, sink, {.io = io, .held = 4});  // each block twice, and as doubles
    return sink.result();
}

}  // namespace tessera
