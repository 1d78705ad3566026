#include "accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/error.h>
#include <tessera/numbers.h>

namespace tessera {

namespace {

/// NaN and NaT; integers are never missing.
template <class W, bool time>
bool is_missing(W v) {
    if constexpr (std::is_same_v<W, double>) return v != v;
    if constexpr (time) return v == std::numeric_limits<W>::min();
    return false;
}

/// Elements as int64 or uint64, or as doubles. A Boolean is a byte.
template <class W>
struct Loader {
    explicit Loader(const DType& dtype) : size(dtype.size()) {
        if constexpr (std::is_same_v<W, double>) {
            doubles = to_doubles(dtype);
        } else {
            integers = to_integers(dtype);
        }
    }
    void operator()(const std::byte* elements, std::int64_t n, W* to) const {
        if constexpr (std::is_same_v<W, double>) {
            doubles(elements, n, to);
        } else {
            integers(elements, n, reinterpret_cast<std::uint64_t*>(to));
        }
    }

    std::int64_t size;
    ToDoubles doubles = nullptr;
    ToIntegers integers = nullptr;
};

/// Common base of accumulators: supplies elements in pieces, as wide numbers.
template <class Self, class W>
class Pieces : public Accumulator {
public:
    Pieces(const DType& dtype, std::int64_t columns) : load_(dtype), columns_(static_cast<std::size_t>(columns)) {}
    void add(const std::byte* elements, std::int64_t first, std::int64_t n, std::int64_t place,
             std::int64_t place_step) override {
        std::array<W, 2 * numbers_at_once> numbers;
        for (std::int64_t done = 0; done < n; done += numbers_at_once) {
            const std::int64_t count = std::min(numbers_at_once, n - done);
            load_(elements + done * load_.size, count, numbers.data());
            static_cast<Self*>(this)->take(numbers.data(), first + done, count, place + done * place_step, place_step);
        }
    }

protected:
    [[nodiscard]] std::size_t columns() const { return columns_; }
    template <class T>
    static void store(std::byte* out, std::size_t i, T v) {
        std::memcpy(out + i * sizeof v, &v, sizeof v);
    }

private:
    Loader<W> load_;
    std::size_t columns_;
};

/// The wide type as a dtype; times keep their dtype.
template <class W>
DType wide_dtype(const DType& dtype) {
    return is_time(dtype) ? dtype : DType::of<W>();
}

template <class W, bool time, bool largest>
class ExtremeOf final : public Pieces<ExtremeOf<W, time, largest>, W> {
public:
    ExtremeOf(const DType& dtype, bool skip_nan, std::int64_t columns)
        : Pieces<ExtremeOf, W>(dtype, columns), dtype_(wide_dtype<W>(dtype)), skip_(skip_nan) {
        reset();
    }
    void reset() override {
        W worst = largest ? std::numeric_limits<W>::lowest() : std::numeric_limits<W>::max();
        if constexpr (std::is_same_v<W, double>) worst = largest ? -HUGE_VAL : HUGE_VAL;
        if (time && largest) ++worst;  // the minimum is NaT
        values_.assign(this->columns(), worst);
        if (skip_) seen_.assign(this->columns(), 0);
    }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        W* best = values_.data() + first;
        if (skip_) {
            std::uint8_t* seen = seen_.data() + first;
            for (std::int64_t i = 0; i < n; ++i) {
                const bool there = !is_missing<W, time>(v[i]);
                best[i] = there && better(v[i], best[i]) ? v[i] : best[i];
                seen[i] |= there ? 1 : 0;
            }
            return;
        }
        for (std::int64_t i = 0; i < n; ++i) {
            const bool kept = is_missing<W, time>(best[i]) || !(is_missing<W, time>(v[i]) || better(v[i], best[i]));
            best[i] = kept ? best[i] : v[i];
        }
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const ExtremeOf&>(other);
        const auto c = static_cast<std::size_t>(column);
        if (skip_ && from.seen_[c] == 0) return;
        take(&from.values_[c], into, 1, 0, 0);
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < this->columns(); ++i) {
            W v = values_[i];
            if (skip_ && seen_[i] == 0) {
                if constexpr (std::is_same_v<W, double>) v = std::numeric_limits<double>::quiet_NaN();
                if constexpr (time) v = std::numeric_limits<W>::min();
            }
            this->store(out, i, v);
        }
    }
    [[nodiscard]] DType result_dtype() const override { return dtype_; }

private:
    static bool better(W v, W than) { return largest ? v > than : v < than; }
    DType dtype_;
    bool skip_;
    std::vector<W> values_;
    std::vector<std::uint8_t> seen_;
};

template <class W, bool time, bool largest>
class ExtremePlace final : public Pieces<ExtremePlace<W, time, largest>, W> {
public:
    ExtremePlace(const DType& dtype, bool skip_nan, std::int64_t columns)
        : Pieces<ExtremePlace, W>(dtype, columns), skip_(skip_nan) {
        reset();
    }
    void reset() override {
        values_.assign(this->columns(), W{});
        places_.assign(this->columns(), -1);
    }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t place, std::int64_t step) {
        for (std::int64_t i = 0; i < n; ++i) take_one(static_cast<std::size_t>(first + i), v[i], place + i * step);
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const ExtremePlace&>(other);
        const auto c = static_cast<std::size_t>(column);
        if (from.places_[c] >= 0) take_one(static_cast<std::size_t>(into), from.values_[c], from.places_[c]);
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < this->columns(); ++i) {
            if (places_[i] < 0) {
                throw invalid_argument("argmin and argmax have no place to give where all elements are NaN or NaT");
            }
            this->store(out, i, places_[i]);
        }
    }
    [[nodiscard]] DType result_dtype() const override { return DType::of<std::int64_t>(); }

private:
    /// As in NumPy, the first NaN beats everything, and of equal elements the first wins.
    void take_one(std::size_t column, W v, std::int64_t place) {
        const bool missing = is_missing<W, time>(v);
        if (missing && skip_) return;
        const W best = values_[column];
        const bool best_missing = is_missing<W, time>(best);
        bool wins = false;
        if (places_[column] < 0) {
            wins = true;
        } else if (missing || best_missing) {
            wins = missing && (!best_missing || place < places_[column]);
        } else {
            wins = (largest ? v > best : v < best) || (v == best && place < places_[column]);
        }
        if (!wins) return;
        values_[column] = v;
        places_[column] = place;
    }
    bool skip_;
    std::vector<W> values_;
    std::vector<std::int64_t> places_;
};

/// Sums of integers, modulo 2^64.
template <class W>
class IntegerSum final : public Pieces<IntegerSum<W>, W> {
public:
    IntegerSum(const DType& dtype, std::int64_t columns) : Pieces<IntegerSum, W>(dtype, columns) { reset(); }
    void reset() override { sums_.assign(this->columns(), 0); }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        std::uint64_t* sums = sums_.data() + first;
        for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<std::uint64_t>(v[i]);
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        sums_[static_cast<std::size_t>(into)] +=
            static_cast<const IntegerSum&>(other).sums_[static_cast<std::size_t>(column)];
    }
    void results(std::byte* out) const override { std::memcpy(out, sums_.data(), sums_.size() * 8); }
    [[nodiscard]] DType result_dtype() const override { return DType::of<W>(); }

private:
    std::vector<std::uint64_t> sums_;
};

/// Sums and means in doubles, by compensated summation. Complex numbers are two columns.
class RealSum final : public Pieces<RealSum, double> {
public:
    RealSum(const DType& dtype, bool mean, bool skip_nan, std::int64_t columns)
        : Pieces<RealSum, double>(dtype, columns),
          parts_(dtype.kind() == Kind::complex ? 2 : 1),
          mean_(mean),
          skip_(skip_nan) {
        reset();
    }
    void reset() override {
        sums_.assign(columns() * parts_, 0);
        lost_.assign(columns() * parts_, 0);
        counts_.assign(columns(), 0);
    }
    void take(const double* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        std::array<double, 2 * numbers_at_once> kept;
        if (skip_) v = without_missing(v, first, n, kept.data());
        if (!skip_) {
            for (std::int64_t i = 0; i < n; ++i) ++counts_[static_cast<std::size_t>(first + i)];
        }
        const auto parts = static_cast<std::int64_t>(parts_);
        double* sums = sums_.data() + first * parts;
        double* lost = lost_.data() + first * parts;
        for (std::int64_t i = 0; i < n * parts; ++i) {
            const double sum = sums[i] + v[i];
            const double added = sum - sums[i];
            lost[i] += (sums[i] - (sum - added)) + (v[i] - added);
            sums[i] = sum;
        }
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const RealSum&>(other);
        const auto c = static_cast<std::size_t>(column);
        const auto i = static_cast<std::size_t>(into);
        const bool skip = std::exchange(skip_, false);
        take(&from.sums_[c * parts_], into, 1, 0, 0);
        skip_ = skip;
        for (std::size_t p = 0; p < parts_; ++p) lost_[i * parts_ + p] += from.lost_[c * parts_ + p];
        counts_[i] += from.counts_[c] - 1;
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < columns() * parts_; ++i) {
            double sum = sums_[i];
            if (std::isfinite(sum) && std::isfinite(lost_[i])) sum += lost_[i];
            store(out, i, mean_ ? sum / static_cast<double>(counts_[i / parts_]) : sum);
        }
    }
    [[nodiscard]] DType result_dtype() const override {
        return parts_ == 2 ? DType::of<std::complex<double>>() : DType::of<double>();
    }

private:
    /// Replaces NaNs (complex: if either part is one) by zeros, and does not count them.
    const double* without_missing(const double* v, std::int64_t first, std::int64_t n, double* kept) {
        for (std::int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i) * parts_;
            bool missing = false;
            for (std::size_t p = 0; p < parts_; ++p) missing |= v[at + p] != v[at + p];
            for (std::size_t p = 0; p < parts_; ++p) kept[at + p] = missing ? 0 : v[at + p];
            counts_[static_cast<std::size_t>(first + i)] += missing ? 0 : 1;
        }
        return kept;
    }

    std::size_t parts_;
    bool mean_;
    bool skip_;
    std::vector<double> sums_, lost_;
    std::vector<std::int64_t> counts_;
};

/// The variance, or its root, by Welford's mean and squares; columns are merged by Chan's formula.
class Deviation final : public Pieces<Deviation, double> {
public:
    Deviation(const DType& dtype, bool root, bool skip_nan, std::int64_t columns)
        : Pieces<Deviation, double>(dtype, columns), root_(root), skip_(skip_nan) {
        reset();
    }
    void reset() override {
        counts_.assign(columns(), 0);
        means_.assign(columns(), 0);
        squares_.assign(columns(), 0);
    }
    void take(const double* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        double* counts = counts_.data() + first;
        double* means = means_.data() + first;
        double* squares = squares_.data() + first;
        for (std::int64_t i = 0; i < n; ++i) {
            const bool left_out = skip_ && v[i] != v[i];
            const double count = counts[i] + 1;
            const double distance = v[i] - means[i];
            const double mean = means[i] + distance / count;
            const double square = squares[i] + distance * (v[i] - mean);
            counts[i] = left_out ? counts[i] : count;
            means[i] = left_out ? means[i] : mean;
            squares[i] = left_out ? squares[i] : square;
        }
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const Deviation&>(other);
        const auto i = static_cast<std::size_t>(into);
        const auto c = static_cast<std::size_t>(column);
        if (from.counts_[c] == 0) return;
        const double count = counts_[i] + from.counts_[c];
        const double distance = from.means_[c] - means_[i];
        squares_[i] += from.squares_[c] + distance * distance * (counts_[i] * from.counts_[c] / count);
        means_[i] += distance * (from.counts_[c] / count);
        counts_[i] = count;
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < columns(); ++i) {
            const double variance = squares_[i] / counts_[i];
            store(out, i, root_ ? std::sqrt(variance) : variance);
        }
    }
    [[nodiscard]] DType result_dtype() const override { return DType::of<double>(); }

private:
    bool root_;
    bool skip_;
    std::vector<double> counts_, means_, squares_;
};

template <class W, bool time>
class Count final : public Pieces<Count<W, time>, W> {
public:
    Count(const DType& dtype, std::int64_t columns)
        : Pieces<Count, W>(dtype, columns), parts_(dtype.kind() == Kind::complex ? 2 : 1) {
        reset();
    }
    void reset() override { counts_.assign(this->columns(), 0); }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        for (std::int64_t i = 0; i < n; ++i) {
            bool missing = is_missing<W, time>(v[i * parts_]);
            if (parts_ == 2) missing |= is_missing<W, time>(v[2 * i + 1]);
            counts_[static_cast<std::size_t>(first + i)] += missing ? 0 : 1;
        }
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        counts_[static_cast<std::size_t>(into)] +=
            static_cast<const Count&>(other).counts_[static_cast<std::size_t>(column)];
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < this->columns(); ++i) this->store(out, i, counts_[i]);
    }
    [[nodiscard]] DType result_dtype() const override { return DType::of<std::int64_t>(); }

private:
    std::int64_t parts_;
    std::vector<std::int64_t> counts_;
};

template <class W, bool time>
std::unique_ptr<Accumulator> make_ordered(const DType& dtype, Reduction with, bool skip_nan, std::int64_t columns) {
    switch (with) {
        case Reduction::min:
            return std::make_unique<ExtremeOf<W, time, false>>(dtype, skip_nan, columns);
        case Reduction::max:
            return std::make_unique<ExtremeOf<W, time, true>>(dtype, skip_nan, columns);
        case Reduction::argmin:
            return std::make_unique<ExtremePlace<W, time, false>>(dtype, skip_nan, columns);
        case Reduction::argmax:
            return std::make_unique<ExtremePlace<W, time, true>>(dtype, skip_nan, columns);
        default:
            return std::make_unique<Count<W, time>>(dtype, columns);
    }
}

bool is_signed_integer(const DType& dtype) {
    return dtype.kind() == Kind::integer;
}

bool is_unsigned_integer(const DType& dtype) {
    return dtype.kind() == Kind::unsigned_integer || dtype.kind() == Kind::boolean;
}

}  // namespace

std::unique_ptr<Accumulator> Accumulator::make(const DType& dtype, Reduction with, bool skip_nan,
                                               std::int64_t columns) {
    const bool sum = with == Reduction::sum;
    if (with == Reduction::deviation || with == Reduction::variance) {
        return std::make_unique<Deviation>(dtype, with == Reduction::deviation, skip_nan, columns);
    }
    if (sum && dtype.kind() == Kind::unsigned_integer) {
        return std::make_unique<IntegerSum<std::uint64_t>>(dtype, columns);
    }
    if (sum && (is_signed_integer(dtype) || dtype.kind() == Kind::boolean)) {
        return std::make_unique<IntegerSum<std::int64_t>>(dtype, columns);
    }
    if (sum || with == Reduction::mean) {
        return std::make_unique<RealSum>(dtype, !sum, skip_nan, columns);
    }
    if (is_time(dtype)) return make_ordered<std::int64_t, true>(dtype, with, skip_nan, columns);
    if (is_signed_integer(dtype)) return make_ordered<std::int64_t, false>(dtype, with, skip_nan, columns);
    if (is_unsigned_integer(dtype)) return make_ordered<std::uint64_t, false>(dtype, with, skip_nan, columns);
    return make_ordered<double, false>(dtype, with, skip_nan, columns);
}

}  // namespace tessera
