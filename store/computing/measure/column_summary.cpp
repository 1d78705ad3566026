// Each kind of element has its own loop over a row; ColumnSummary::make chooses one for a whole array. Numbers are
// processed in pieces that stay in the L1 cache: packed if necessary, converted to doubles by a loop for their C type,
// and summed by the kernels of moments.cpp.
#include "column_summary.h"

#include <tessera/element.h>
#include <tessera/error.h>
#include <tessera/json.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "equal_elements.h"
#include "index_bytes.h"
#include "moments.h"
#include "windows.h"

namespace tessera {

namespace {

template <class T>
ElementBytes bytes_of(T v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    return {p, p + sizeof v};
}

/// The element with the exact value `v`, for real numbers except 64-bit integers.
ElementBytes element_of(const DType& dtype, double v) {
    const std::int64_t size = dtype.size();
    switch (dtype.kind()) {
        case Kind::real:
            return size == 2 ? bytes_of(double_to_half(v)) : size == 4 ? bytes_of(static_cast<float>(v)) : bytes_of(v);
        case Kind::bfloat16:
            return bytes_of(double_to_bfloat16(v));
        default: {
            // In little-endian two's complement, the first bytes are the integer.
            const std::int64_t integer = static_cast<std::int64_t>(v);
            ElementBytes bytes = bytes_of(integer);
            if constexpr (native_order == ByteOrder::big) bytes.erase(bytes.begin(), bytes.end() - size);
            bytes.resize(static_cast<std::size_t>(size));
            return bytes;
        }
    }
}

/// The extremes of 64-bit integers, which doubles cannot tell apart. Unsigned ones are compared with the highest bit
/// inverted. NaT is ignored, and a mark of what is missing.
struct Extremes64 {
    static constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

    std::int64_t low = most;
    std::int64_t high = least;

    template <bool Time>
    void add(const std::byte* elements, std::int64_t n, std::int64_t turned) {
        for (std::int64_t i = 0; i < n; ++i) {
            std::int64_t v = 0;
            std::memcpy(&v, elements + i * 8, sizeof v);
            v ^= turned;
            high = std::max(high, v);
            if constexpr (Time) v = v == least ? most : v;
            low = std::min(low, v);
        }
    }
    void merge(const Extremes64& o) {
        low = std::min(low, o.low);
        high = std::max(high, o.high);
    }
};

/// What follows in a saved summary.
constexpr std::uint64_t has_numbers = 1;
constexpr std::uint64_t has_infinite = 2;
constexpr std::uint64_t has_bins = 4;
constexpr std::uint64_t has_sums = 8;

/// Numbers and times. Complex numbers have no order: of these only NaNs are counted.
class NumberSummary final : public ColumnSummary {
public:
    NumberSummary(const DType& dtype, std::size_t bins, bool marks, bool sums)
        : ColumnSummary(dtype),
          floats_(dtype.kind() == Kind::real && dtype.size() == 4),
          wide_(dtype.size() == 8 && dtype.kind() != Kind::real),
          marks_(marks || is_time(dtype)),
          turned_(wide_ && dtype.kind() == Kind::unsigned_integer ? Extremes64::least : 0),
          convert_(to_doubles(marks ? DType::time(Kind::timedelta, {}) : dtype)),
          count_fills_(count_equal(dtype.size())),
          bins_(is_time(dtype) ? 0 : bins),
          sums_(sums && !is_time(dtype) && dtype.kind() != Kind::complex),
          rows_(dtype),
          histogram_(bins_) {}

private:
    std::int64_t take(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill) override {
        std::int64_t fills = 0;
        rows_.packed(elements, step, n, [&](const std::byte* from, std::int64_t /*first*/, std::int64_t m) {
            if (fill != nullptr) fills += count_fills_(from, m, dtype().size(), fill);
            if (wide_) {
                marks_ ? extremes_.add<true>(from, m, turned_) : extremes_.add<false>(from, m, turned_);
            }
            alignas(64) double numbers[2 * numbers_at_once];
            if (sums_) {
                convert_(from, m, numbers);
                add_sums(from, m, numbers);
            }
            if (floats_ && take_whole(reinterpret_cast<const float*>(from), m)) return;
            if (!sums_) convert_(from, m, numbers);
            if (dtype().kind() == Kind::complex) {
                for (std::int64_t i = 0; i < m; ++i)
                    add_nans(std::isnan(numbers[2 * i]) || std::isnan(numbers[2 * i + 1]));
                return;
            }
            if (!take_whole(numbers, m)) take_numbers(numbers, m);
        });
        return fills;
    }

    /// Adds a piece to the exact sums, of which the infinite ones know by their counts.
    void add_sums(const std::byte* elements, std::int64_t m, const double* numbers) {
        if (wide_) {
            for (std::int64_t i = 0; i < m; ++i) {
                std::int64_t v = 0;
                std::memcpy(&v, elements + i * 8, sizeof v);
                whole_ += marks_ && v == Extremes64::least ? 0 : static_cast<std::uint64_t>(v);
            }
        }
        alignas(64) double finite[numbers_at_once];
        bool all = true;
        for (std::int64_t i = 0; i < m; ++i) {
            const bool is_finite = numbers[i] - numbers[i] == 0;
            finite[i] = is_finite ? numbers[i] : 0;
            all = all && is_finite;
        }
        sum_.add(all ? numbers : finite, m);
    }

    /// Adds a piece of ordinary finite numbers in one pass; false for any other piece.
    template <class T>
    bool take_whole(const T* v, std::int64_t m) {
        if (m % number_step != 0) return false;
        const Glance g = glance(v, m);
        if (!g.enough(m)) return false;
        take_extremes(v, m, g.low, g.high);
        moments_.add(g, m);
        if (bins_ > 0) histogram_.add(v, m, g.low, g.high);
        return true;
    }

    /// Adds any other piece.
    void take_numbers(double* v, std::int64_t m) {
        const std::int64_t n = (m + number_step - 1) / number_step * number_step;
        std::fill(v + m, v + n, std::numeric_limits<double>::quiet_NaN());
        const Survey s = survey(v, n);
        if (s.low > s.high) return add_nans(m);
        double low = s.low;
        double high = s.high;
        std::int64_t infinite = 0;
        if (std::isinf(low) || std::isinf(high)) {
            low = infinity;
            high = -infinity;
            for (std::int64_t i = 0; i < m; ++i) {
                lows_ += v[i] == -infinity ? 1 : 0;
                highs_ += v[i] == infinity ? 1 : 0;
                infinite += std::isinf(v[i]) ? 1 : 0;
                if (std::isinf(v[i])) continue;
                low = std::min(low, v[i]);  // NaN is not less than anything
                high = std::max(high, v[i]);
            }
        }
        add_nans(m - s.finite - infinite);
        take_extremes(v, m, s.low, s.high);
        if (s.finite == 0) return;
        moments_.add(v, n, s, low, high);
        if (bins_ > 0) histogram_.add(v, n, low, high);
    }

    /// −0.0 is less than 0.0 here, so that the result does not depend on the order of elements or threads.
    template <class T>
    void take_extremes(const T* v, std::int64_t m, double low, double high) {
        const auto any_zero = [&](bool negative) {
            return std::any_of(v, v + m, [&](T x) { return x == 0 && std::signbit(x) == negative; });
        };
        if (low == 0 && low_ >= 0) low = (low_ == 0 && std::signbit(low_)) || any_zero(true) ? -0.0 : 0.0;
        if (high == 0 && high_ <= 0) high = (high_ == 0 && !std::signbit(high_)) || any_zero(false) ? 0.0 : -0.0;
        merge_extremes(low, high);
    }

    void merge_extremes(double low, double high) {
        if (low < low_ || (low == low_ && std::signbit(low))) low_ = low;
        if (high > high_ || (high == high_ && !std::signbit(high))) high_ = high;
    }

    void merge_values(const ColumnSummary& other) override {
        const auto& o = static_cast<const NumberSummary&>(other);
        merge_extremes(o.low_, o.high_);
        extremes_.merge(o.extremes_);
        lows_ += o.lows_;
        highs_ += o.highs_;
        moments_.merge(o.moments_);
        histogram_.merge(o.histogram_);
        if (sums_) sum_.merge(o.sum_);
        if (sums_) whole_ += o.whole_;
    }

    void put_known(KnownElements& known) const override {
        known.low = low_;
        known.high = high_;
        known.least = extremes_.low;
        known.most = extremes_.high;
        known.sums = sums_;
        known.sum = sum_;
        if (lows_ > 0) known.sum.add_infinite(true);
        if (highs_ > 0) known.sum.add_infinite(false);
        known.whole = wide_ ? whole_ : sum_.modulo();
    }

    void put_values(Statistics& s) const override {
        if (low_ > high_) return;
        const auto element = [&](double number, std::int64_t integer) {
            return wide_ ? bytes_of(integer ^ turned_) : element_of(dtype(), number);
        };
        put_extremes(s, element(low_, extremes_.low).data(), element(high_, extremes_.high).data());
        if (lows_ + highs_ > 0) {
            s.mean = lows_ == 0 ? infinity : highs_ == 0 ? -infinity : infinity - infinity;
            s.deviation = std::numeric_limits<double>::quiet_NaN();
        } else {
            s.mean = moments_.mean();
            s.deviation = moments_.deviation();
        }
        s.histogram = histogram_.histogram();
    }

    void save_values(IndexWriter& to) const override {
        const bool numbers = low_ <= high_;
        const bool infinite = lows_ + highs_ > 0;
        const bool histogram = numbers && bins_ > 0;
        to.count((numbers ? has_numbers : 0) | (infinite ? has_infinite : 0) | (histogram ? has_bins : 0) |
                 (numbers && sums_ ? has_sums : 0));
        if (!numbers) return;
        to.real(low_);
        to.real(high_);
        if (wide_) {
            to.word(static_cast<std::uint64_t>(extremes_.low));
            to.word(static_cast<std::uint64_t>(extremes_.high));
        }
        if (infinite) {
            to.count(static_cast<std::uint64_t>(lows_));
            to.count(static_cast<std::uint64_t>(highs_));
        }
        moments_.save(to);
        if (histogram) histogram_.save(to);
        if (sums_) save_sums(to);
    }

    void save_sums(IndexWriter& to) const {
        const ExactSum::Digits sum = sum_.digits();
        to.count(sum.first);
        to.count(sum.digits.size());
        for (const std::int64_t digit : sum.digits) to.number(digit);
        if (wide_) to.word(whole_);
    }

    void load_sums(IndexReader& from) {
        ExactSum::Digits sum{.first = static_cast<std::size_t>(from.count(ExactSum::size)), .digits = {}};
        sum.digits.resize(static_cast<std::size_t>(from.count(ExactSum::size)));
        for (std::int64_t& digit : sum.digits) digit = from.number();
        if (!sum_.add(sum)) throw corrupt("a sum of the index of chunks is none");
        if (wide_) whole_ = from.word();
    }

    void load_values(IndexReader& from) override {
        const std::uint64_t saved = from.count();
        std::int64_t finite = not_nan();
        if ((saved & has_numbers) == 0) {
            if (saved != 0 || finite != 0) throw corrupt("numbers of the index of chunks lack their extremes");
            return;
        }
        low_ = from.real();
        high_ = from.real();
        if (!(low_ <= high_) || finite == 0) throw corrupt("extremes of the index of chunks are none");
        if (wide_) {
            extremes_.low = static_cast<std::int64_t>(from.word());
            extremes_.high = static_cast<std::int64_t>(from.word());
        }
        if ((saved & has_infinite) != 0) {
            lows_ = from.count(finite);
            highs_ = from.count(finite - lows_);
            finite -= lows_ + highs_;
        }
        moments_.load(from, finite);
        if (bins_ > 0 && (saved & has_bins) == 0) throw corrupt("the index of chunks has no bins");
        Bins skipped(index_bins);
        if ((saved & has_bins) != 0) (bins_ > 0 ? histogram_ : skipped).load(from, finite);
        if (sums_ && (saved & has_sums) == 0) throw corrupt("the index of chunks has no sums");
        if ((saved & has_sums) != 0) load_sums(from);
    }

    bool floats_;
    bool wide_;
    bool marks_;  ///< whether the least integer stands for what is missing, as NaT
    std::int64_t turned_;
    ToDoubles convert_;
    CountEqual count_fills_;
    std::size_t bins_;
    bool sums_;
    NumberRows rows_;
    double low_ = infinity;  ///< above high_ if there was no number
    double high_ = -infinity;
    Extremes64 extremes_;
    std::int64_t lows_ = 0;   ///< −infinities
    std::int64_t highs_ = 0;  ///< +infinities
    Moments moments_;
    Bins histogram_;
    ExactSum sum_;             ///< of finite ones
    std::uint64_t whole_ = 0;  ///< of 64-bit integers, modulo 2^64
};

/// The content of an element, and its order: bytes, characters of 4 bytes, or the content of slots.
struct BytesContent {
    std::size_t size;
    [[nodiscard]] std::string_view of(const std::byte* p) const { return {reinterpret_cast<const char*>(p), size}; }
    static bool less(std::string_view a, std::string_view b) { return a < b; }
};

struct TextContent : BytesContent {
    static bool less(std::string_view a, std::string_view b) {
        for (std::size_t i = 0; i < a.size(); i += 4) {
            std::uint32_t x = 0;
            std::uint32_t y = 0;
            std::memcpy(&x, a.data() + i, 4);
            std::memcpy(&y, b.data() + i, 4);
            if (x != y) return x < y;
        }
        return false;
    }
};

struct SlotContent : BytesContent {
    static std::string_view of(const std::byte* p) {
        VariableSlot slot;
        std::memcpy(&slot, p, sizeof slot);
        return slot.view();
    }
};

/// Text and bytes, of fixed and of variable length.
template <class Content>
class OrderedSummary final : public ColumnSummary {
public:
    explicit OrderedSummary(const DType& dtype)
        : ColumnSummary(dtype), content_{static_cast<std::size_t>(dtype.size())} {}

private:
    std::int64_t take(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill) override {
        std::string_view low = content_.of(elements);
        std::string_view high = low;
        std::int64_t fills = 0;
        for (std::int64_t i = 0; i < n; ++i, elements += step) {
            const std::string_view v = content_.of(elements);
            if (fill != nullptr && v == content_.of(fill)) ++fills;
            if (Content::less(v, low)) low = v;
            if (Content::less(high, v)) high = v;
        }
        merge_extremes(low, high);
        return fills;
    }
    void merge_extremes(std::string_view low, std::string_view high) {
        if (!any_ || Content::less(low, low_)) keep(low, low_);
        if (!any_ || Content::less(high_, high)) keep(high, high_);
        any_ = true;
    }
    void keep(std::string_view content, std::string& kept) {
        if (content.size() > kept.capacity()) held_.add(content.size() - kept.capacity());
        kept = content;
    }
    void merge_values(const ColumnSummary& other) override {
        const auto& o = static_cast<const OrderedSummary&>(other);
        if (o.any_) merge_extremes(o.low_, o.high_);
    }
    void put_values(Statistics& s) const override {
        if (!any_) return;
        // As text and as JSON.
        const MemoryHold texts(2 * (text_memory(low_) + text_memory(high_)));
        const VariableSlot low{low_.data(), low_.size()};
        const VariableSlot high{high_.data(), high_.size()};
        const auto element = [&](const VariableSlot& slot) {
            return reinterpret_cast<const std::byte*>(dtype().is_variable() ? static_cast<const void*>(&slot)
                                                                            : slot.data);
        };
        put_extremes(s, element(low), element(high));
    }

    Content content_;
    bool any_ = false;
    std::string low_, high_;
    MemoryHold held_;  ///< memory for these
};

/// Any other element: counts elements, and those that equal the fill.
class CountSummary final : public ColumnSummary {
public:
    explicit CountSummary(const DType& dtype) : ColumnSummary(dtype) {}

private:
    std::int64_t take(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill) override {
        if (fill == nullptr) return 0;
        std::int64_t fills = 0;
        const auto size = static_cast<std::size_t>(dtype().size());
        for (std::int64_t i = 0; i < n; ++i) fills += std::memcmp(elements + i * step, fill, size) == 0 ? 1 : 0;
        return fills;
    }
    void merge_values(const ColumnSummary& /*other*/) override {}
    void put_values(Statistics& /*s*/) const override {}
};

}  // namespace

std::unique_ptr<ColumnSummary> ColumnSummary::make(const DType& dtype, std::size_t bins, bool marks, bool sums) {
    switch (dtype.kind()) {
        case Kind::bytes:
            return std::make_unique<OrderedSummary<BytesContent>>(dtype);
        case Kind::text:
            return std::make_unique<OrderedSummary<TextContent>>(dtype);
        case Kind::variable_text:
        case Kind::variable_bytes:
            return std::make_unique<OrderedSummary<SlotContent>>(dtype);
        default:
            if (is_number(dtype) || is_time(dtype)) return std::make_unique<NumberSummary>(dtype, bins, marks, sums);
            return std::make_unique<CountSummary>(dtype);
    }
}

void ColumnSummary::add(const std::byte* elements, std::int64_t step, std::int64_t n, const std::byte* fill) {
    if (n == 0) return;
    count_ += n;
    fills_ += take(elements, step, n, fill);
}

void ColumnSummary::merge(const ColumnSummary& other) {
    count_ += other.count_;
    nans_ += other.nans_;
    fills_ += other.fills_;
    merge_values(other);
}

void ColumnSummary::put_extremes(Statistics& s, const std::byte* min, const std::byte* max) const {
    s.min = element_to_text(dtype_, min);
    s.max = element_to_text(dtype_, max);
    if (!dtype_.is_variable()) {
        s.min_bytes.assign(min, min + dtype_.size());
        s.max_bytes.assign(max, max + dtype_.size());
    }
    s.min_json = element_to_json(dtype_, min);
    s.max_json = element_to_json(dtype_, max);
}

void ColumnSummary::save(IndexWriter& to) const {
    for (const std::int64_t n : {count_, nans_, fills_}) to.count(static_cast<std::uint64_t>(n));
    save_values(to);
}

void ColumnSummary::load(IndexReader& from, std::int64_t most) {
    count_ = from.count(most);
    nans_ = from.count(count_);
    fills_ = from.count(count_);
    load_values(from);
}

void ColumnSummary::put_known(KnownElements& /*known*/) const {}
void ColumnSummary::save_values(IndexWriter& /*to*/) const {}
void ColumnSummary::load_values(IndexReader& /*from*/) {}

Statistics ColumnSummary::result() const {
    Statistics s;
    s.dtype = dtype_;
    s.count = count_;
    s.nans = nans_;
    s.fills = fills_;
    put_values(s);
    if (s.mean) s.mean_date = mean_date_text(s.dtype, *s.mean);
    return s;
}

SavedParts saved_parts(std::string_view summary) {
    IndexReader from(summary);
    for (int counts = 0; counts < 3; ++counts) (void)from.count();
    const std::uint64_t saved = from.count();
    return {.bins = (saved & has_bins) != 0, .sums = (saved & has_sums) != 0, .none = (saved & has_numbers) == 0};
}

KnownElements ColumnSummary::known() const {
    KnownElements known;
    put_known(known);
    known.count = count_;
    known.missing = nans_;
    return known;
}

void KnownElements::merge(const KnownElements& other) {
    sums = count == 0 ? other.sums : sums && other.sums;
    count += other.count;
    missing += other.missing;
    if (other.low < low || (other.low == low && std::signbit(other.low))) low = other.low;
    if (other.high > high || (other.high == high && !std::signbit(other.high))) high = other.high;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum.merge(other.sum);
    whole += other.whole;
}

}  // namespace tessera
