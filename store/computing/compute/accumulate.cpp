#include "accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/error.h>
#include <tessera/numbers.h>
#include <tessera/shape.h>

#include "exact_sum.h"
#include "windows.h"

namespace tessera {

namespace {

/// NaN and NaT; integers are never missing.
template <class W, bool time>
bool is_missing(W v) {
    if constexpr (std::is_same_v<W, double>) return v != v;
    if constexpr (time) return v == std::numeric_limits<W>::min();
    return false;
}

template <class W>
bool has_nan(const W* v, std::int64_t n) {
    bool found = false;
    for (std::int64_t i = 0; i < n; ++i) found |= v[i] != v[i];
    return found;
}

/// The loop that makes elements int64 or uint64, or doubles.
template <class W>
auto loader(const DType& dtype) {
    if constexpr (std::is_same_v<W, double>) {
        return to_doubles(dtype);
    } else {
        return to_integers(dtype);
    }
}

/// Common base of accumulators: supplies elements in pieces, as wide numbers. Complex ones are two each.
template <class Self, class W>
class Pieces : public Accumulator {
public:
    Pieces(const DType& dtype, std::int64_t columns)
        : load_(loader<W>(dtype)),
          size_(dtype.size()),
          parts_(dtype.kind() == Kind::complex ? 2 : 1),
          columns_(static_cast<std::size_t>(columns)) {}
    void add(const std::byte* elements, std::int64_t first, std::int64_t n, std::int64_t place,
             std::int64_t place_step) override {
        std::array<W, 2 * numbers_at_once> numbers;
        for (std::int64_t done = 0; done < n; done += numbers_at_once) {
            const std::int64_t count = std::min(numbers_at_once, n - done);
            load(elements + done * size_, count, numbers);
            static_cast<Self*>(this)->take(numbers.data(), first + done, count, place + done * place_step, place_step);
        }
    }

    void add_runs(const std::byte* elements, std::int64_t first, std::int64_t n, std::int64_t run) override {
        if (run == 1) return add(elements, first, n, 0, 0);
        std::array<W, 2 * numbers_at_once> numbers;
        for (std::int64_t done = 0, count = 0; done < n; done += count) {
            // Whole runs, or a part of one.
            count = std::min(n - done, run <= numbers_at_once ? numbers_at_once / run * run
                                                              : std::min(numbers_at_once, run - done % run));
            load(elements + done * size_, count, numbers);
            static_cast<Self*>(this)->take_runs(numbers.data(), first + done / run, count, run);
        }
    }
    void add_in_turn(const std::byte* elements, std::int64_t n, std::int64_t place) override {
        const auto lanes = static_cast<std::int64_t>(columns_);
        std::array<W, 2 * numbers_at_once> numbers;
        for (std::int64_t done = 0, count = 0; done < n; done += count) {
            count = std::min(n - done, numbers_at_once / lanes * lanes);
            load(elements + done * size_, count, numbers);
            for (std::int64_t i = 0; i < count; i += lanes) {
                static_cast<Self*>(this)->take(numbers.data() + i * parts_, 0, std::min(lanes, count - i),
                                               place + done + i, 1);
            }
        }
    }
    /// Calls body(numbers, how many) piece by piece.
    template <class Body>
    void for_each_piece(const std::byte* elements, std::int64_t n, const Body& body) const {
        std::array<W, 2 * numbers_at_once> numbers;
        for (std::int64_t done = 0; done < n; done += numbers_at_once) {
            const std::int64_t count = std::min(numbers_at_once, n - done);
            load(elements + done * size_, count, numbers);
            body(numbers.data(), count);
        }
    }
    /// Takes the first element of each run, then the second ones.
    void take_runs(const W* v, std::int64_t first, std::int64_t n, std::int64_t run) {
        std::array<W, 2 * numbers_at_once> turn;
        for (std::int64_t k = 0; k < std::min(run, n); ++k) {
            const std::int64_t columns = ceil_div(n - k, run);
            const W* const from = v + k * parts_;
            for (std::int64_t i = 0; i < columns; ++i) {
                for (std::int64_t p = 0; p < parts_; ++p) turn[i * parts_ + p] = from[i * run * parts_ + p];
            }
            static_cast<Self*>(this)->take(turn.data(), first, columns, 0, 0);
        }
    }

protected:
    [[nodiscard]] std::size_t columns() const { return columns_; }
    [[nodiscard]] std::int64_t parts() const { return parts_; }  ///< numbers of an element
    template <class T>
    static void store(std::byte* out, std::size_t i, T v) {
        std::memcpy(out + i * sizeof v, &v, sizeof v);
    }

private:
    using Lane = std::conditional_t<std::is_same_v<W, double>, double, std::uint64_t>;
    void load(const std::byte* elements, std::int64_t n, std::array<W, 2 * numbers_at_once>& to) const {
        load_(elements, n, reinterpret_cast<Lane*>(to.data()));
    }

    decltype(loader<W>(DType())) load_;
    std::int64_t size_;
    std::int64_t parts_;
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

/// Sums of integers, modulo 2^64. Marked ones are left out, or make their sum missing.
template <class W, bool marks>
class IntegerSum final : public Pieces<IntegerSum<W, marks>, W> {
public:
    IntegerSum(const DType& dtype, bool skip, std::int64_t columns)
        : Pieces<IntegerSum, W>(dtype, columns), skip_(skip) {
        reset();
    }
    void reset() override {
        sums_.assign(this->columns(), 0);
        seen_.assign(marks ? this->columns() : 0, 0);
    }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        std::uint64_t* sums = sums_.data() + first;
        for (std::int64_t i = 0; i < n; ++i) {
            const bool lacks = is_missing<W, marks>(v[i]);
            sums[i] += lacks ? 0 : static_cast<std::uint64_t>(v[i]);
            if constexpr (marks) seen_[static_cast<std::size_t>(first + i)] |= lacks ? missing : present;
        }
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const IntegerSum&>(other);
        const auto to = static_cast<std::size_t>(into);
        sums_[to] += from.sums_[static_cast<std::size_t>(column)];
        if constexpr (marks) seen_[to] |= from.seen_[static_cast<std::size_t>(column)];
    }
    void results(std::byte* out) const override {
        std::memcpy(out, sums_.data(), sums_.size() * 8);
        for (std::size_t i = 0; i < seen_.size(); ++i) {
            if (skip_ ? seen_[i] == missing : (seen_[i] & missing) != 0) this->store(out, i, missing_integer);
        }
    }
    [[nodiscard]] DType result_dtype() const override { return DType::of<W>(); }

private:
    static constexpr std::uint8_t present = 1, missing = 2;
    bool skip_;
    std::vector<std::uint64_t> sums_;
    std::vector<std::uint8_t> seen_;
};

/// Sums and means in doubles, by compensated summation. Complex numbers are two columns.
class RealSum final : public Pieces<RealSum, double> {
public:
    RealSum(const Elements& from, bool mean, std::int64_t columns)
        : Pieces<RealSum, double>(from.for_doubles(), columns),
          parts_(static_cast<std::size_t>(parts())),
          mean_(mean),
          skip_(from.skip) {
        reset();
    }
    void reset() override {
        sums_.assign(columns() * parts_, 0);
        lost_.assign(columns() * parts_, 0);
        counts_.assign(columns(), 0);
        lacking_.assign(skip_ ? columns() : 0, 0);
    }
    void take(const double* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        std::array<double, 2 * numbers_at_once> kept;
        if (skip_ && has_nan(v, n * static_cast<std::int64_t>(parts_))) {
            v = without_missing(v, first, n, kept.data());
        } else {
            for (std::int64_t i = 0; i < n; ++i) ++counts_[static_cast<std::size_t>(first + i)];
        }
        const auto parts = static_cast<std::int64_t>(parts_);
        double* sums = sums_.data() + first * parts;
        double* lost = lost_.data() + first * parts;
        for (std::int64_t i = 0; i < n * parts; ++i) add_to(sums[i], lost[i], v[i]);
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const RealSum&>(other);
        const auto c = static_cast<std::size_t>(column);
        const auto i = static_cast<std::size_t>(into);
        for (std::size_t p = 0; p < parts_; ++p) {
            add_to(sums_[i * parts_ + p], lost_[i * parts_ + p], from.sums_[c * parts_ + p]);
            lost_[i * parts_ + p] += from.lost_[c * parts_ + p];
        }
        counts_[i] += from.counts_[c];
        if (skip_) lacking_[i] |= from.lacking_[c];
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < columns() * parts_; ++i) {
            double sum = sums_[i];
            if (std::isfinite(sum) && std::isfinite(lost_[i])) sum += lost_[i];
            // A sum of missing elements alone is missing; one of none is 0, as in NumPy.
            const bool nothing = counts_[i / parts_] == 0 && skip_ && lacking_[i / parts_] != 0;
            if (nothing) sum = std::numeric_limits<double>::quiet_NaN();
            store(out, i, mean_ ? sum / static_cast<double>(counts_[i / parts_]) : sum);
        }
    }
    [[nodiscard]] DType result_dtype() const override {
        return parts_ == 2 ? DType::of<std::complex<double>>() : DType::of<double>();
    }

private:
    static void add_to(double& total, double& lost, double v) {
        const double sum = total + v;
        const double added = sum - total;
        lost += (total - (sum - added)) + (v - added);
        total = sum;
    }
    /// Replaces NaNs (complex: if either part is one) by zeros, and does not count them.
    const double* without_missing(const double* v, std::int64_t first, std::int64_t n, double* kept) {
        for (std::int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i) * parts_;
            bool missing = false;
            for (std::size_t p = 0; p < parts_; ++p) missing |= v[at + p] != v[at + p];
            for (std::size_t p = 0; p < parts_; ++p) kept[at + p] = missing ? 0 : v[at + p];
            counts_[static_cast<std::size_t>(first + i)] += missing ? 0 : 1;
            lacking_[static_cast<std::size_t>(first + i)] |= missing ? 1 : 0;
        }
        return kept;
    }

    std::size_t parts_;
    bool mean_;
    bool skip_;
    std::vector<double> sums_, lost_;
    std::vector<std::int64_t> counts_;
    std::vector<std::uint8_t> lacking_;  ///< where something was left out
};

/// The same, exact until they are rounded, and so whatever is added first. Real numbers alone.
class ExactRealSum final : public Pieces<ExactRealSum, double> {
public:
    ExactRealSum(const Elements& from, bool mean, std::int64_t columns)
        : Pieces<ExactRealSum, double>(from.for_doubles(), columns), mean_(mean), skip_(from.skip) {
        reset();
    }
    void reset() override { columns_.assign(columns(), {}); }
    /// All to the first column, which is the only one then.
    void add_in_turn(const std::byte* elements, std::int64_t n, std::int64_t /*place*/) override {
        for_each_piece(elements, n, [&](double* v, std::int64_t count) { add_to(columns_.front(), v, count); });
    }
    void take(double* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        for (std::int64_t i = 0; i < n; ++i) add_to(columns_[static_cast<std::size_t>(first + i)], v + i, 1);
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const Column& from = static_cast<const ExactRealSum&>(other).columns_[static_cast<std::size_t>(column)];
        Column& to = columns_[static_cast<std::size_t>(into)];
        to.sum.merge(from.sum);
        to.count += from.count;
        to.lacking = to.lacking || from.lacking;
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < columns(); ++i) {
            const Column& c = columns_[i];
            store(out, i, sum_result(c.sum, c.count, c.lacking, mean_));
        }
    }
    [[nodiscard]] DType result_dtype() const override { return DType::of<double>(); }

private:
    struct Column {
        ExactSum sum;
        std::int64_t count = 0;
        bool lacking = false;  ///< whether something was left out
    };

    /// Puts zeros in place of what is left out.
    void add_to(Column& column, double* v, std::int64_t n) const {
        std::int64_t missing = 0;
        if (skip_ && has_nan(v, n)) {
            for (std::int64_t i = 0; i < n; ++i) {
                missing += v[i] != v[i] ? 1 : 0;
                v[i] = v[i] != v[i] ? 0 : v[i];
            }
        }
        column.sum.add(v, n);
        column.count += n - missing;
        column.lacking = column.lacking || missing > 0;
    }

    bool mean_;
    bool skip_;
    std::vector<Column> columns_;
};

// Sums of a block: 64-bit integers could leave the range of 64 bits.
__extension__ using Int128 = __int128;

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

/// Means in the elements' own dtype: of integers exact and rounded once, of floats by plain sums of doubles.
template <class W, bool time>
class BlockMean final : public Pieces<BlockMean<W, time>, W> {
public:
    BlockMean(const Elements& from, std::int64_t columns)
        : Pieces<BlockMean, W>(from.dtype, columns),
          dtype_(this->parts() == 2 ? DType::of<std::complex<double>>() : wide_dtype<W>(from.dtype)),
          skip_(from.skip) {
        reset();
    }
    void reset() override {
        // -0.0 is the neutral element of addition.
        sums_.assign(this->columns() * static_cast<std::size_t>(this->parts()), static_cast<Sum>(-0.0));
        counts_.assign(this->columns(), 0);
        missing_.assign(time ? this->columns() : 0, 0);
    }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        if constexpr (!time) {
            Sum* const sums = sums_.data() + first * this->parts();
            if (!skip_ || !has_nan(v, n * this->parts())) {
                for (std::int64_t i = 0; i < n * this->parts(); ++i) sums[i] += v[i];
                for (std::int64_t i = 0; i < n; ++i) ++counts_[static_cast<std::size_t>(first + i)];
                return;
            }
        }
        for (std::int64_t i = 0; i < n; ++i) add_window(v + i * this->parts(), first + i, 1);
    }
    void take_runs(const W* v, std::int64_t first, std::int64_t n, std::int64_t run) {
        for_each_window(0, n, run, [&](std::int64_t window, std::int64_t at, std::int64_t count) {
            add_window(v + at * this->parts(), first + window, count);
        });
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const BlockMean&>(other);
        const auto to = static_cast<std::size_t>(into);
        const auto c = static_cast<std::size_t>(column);
        const auto parts = static_cast<std::size_t>(this->parts());
        for (std::size_t p = 0; p < parts; ++p) sums_[to * parts + p] += from.sums_[c * parts + p];
        counts_[to] += from.counts_[c];
        if (time) missing_[to] |= from.missing_[c];
    }
    void results(std::byte* out) const override {
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            const std::int64_t n = counts_[i / static_cast<std::size_t>(this->parts())];
            if constexpr (std::is_same_v<W, double>) {
                this->store(out, i, sums_[i] / static_cast<double>(n));
            } else {
                const bool nat = time && (skip_ ? n == 0 : missing_[i] != 0);
                this->store(out, i, nat ? missing_integer : rounded_mean(sums_[i], n));
            }
        }
    }
    [[nodiscard]] DType result_dtype() const override { return dtype_; }

private:
    using Sum = std::conditional_t<std::is_same_v<W, double>, double, Int128>;
    void add_window(const W* v, std::int64_t column, std::int64_t n) {
        const auto c = static_cast<std::size_t>(column);
        const std::int64_t parts = this->parts();
        Sum* const sums = sums_.data() + column * parts;
        if constexpr (std::is_same_v<W, double>) {
            if (skip_ && has_nan(v, n * parts)) return add_present(v, sums, c, n);
        }
        if constexpr (time) return add_present(v, sums, c, n);
        for (std::int64_t p = 0; p < parts; ++p) {
            Sum sum = sums[p];
            for (std::int64_t i = p; i < n * parts; i += parts) sum += v[i];
            sums[p] = sum;
        }
        counts_[c] += n;
    }
    /// Adds those that are not missing.
    void add_present(const W* v, Sum* sums, std::size_t column, std::int64_t n) {
        const std::int64_t parts = this->parts();
        for (std::int64_t i = 0; i < n; ++i) {
            bool lacks = false;
            for (std::int64_t p = 0; p < parts; ++p) lacks |= is_missing<W, time>(v[i * parts + p]);
            if (time && lacks) missing_[column] = 1;
            for (std::int64_t p = 0; !lacks && p < parts; ++p) sums[p] += v[i * parts + p];
            counts_[column] += lacks ? 0 : 1;
        }
    }
    DType dtype_;
    bool skip_;
    std::vector<Sum> sums_;
    std::vector<std::int64_t> counts_;
    std::vector<std::uint8_t> missing_;
};

/// The most frequent element, of several the smallest. NaNs count as equal, and as the largest; so do NaTs.
template <class W, bool time>
class Mode final : public Pieces<Mode<W, time>, W> {
public:
    Mode(const Elements& from, std::int64_t columns, std::int64_t most)
        : Pieces<Mode, W>(from.dtype, columns),
          dtype_(wide_dtype<W>(from.dtype)),
          skip_(from.skip),
          most_(static_cast<std::size_t>(most)) {
        gathered_.resize(this->columns() * most_);
        reset();
    }
    void reset() override { sizes_.assign(this->columns(), 0); }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        take_runs(v, first, n, 1);
    }
    void take_runs(const W* v, std::int64_t first, std::int64_t n, std::int64_t run) {
        for_each_window(0, n, run, [&](std::int64_t window, std::int64_t at, std::int64_t count) {
            const auto c = static_cast<std::size_t>(first + window);
            std::copy_n(v + at, count, gathered_.data() + c * most_ + sizes_[c]);
            sizes_[c] += static_cast<std::size_t>(count);
        });
    }
    void merge(std::int64_t into, const Accumulator& other, std::int64_t column) override {
        const auto& from = static_cast<const Mode&>(other);
        const auto c = static_cast<std::size_t>(column);
        for (std::size_t i = 0; i < from.sizes_[c]; ++i) take(&from.gathered_[c * from.most_ + i], into, 1, 0, 0);
    }
    void results(std::byte* out) const override {
        for (std::size_t c = 0; c < this->columns(); ++c) {
            this->store(out, c, mode_of(gathered_.data() + c * most_, sizes_[c]));
        }
    }
    [[nodiscard]] DType result_dtype() const override { return dtype_; }

private:
    static bool less(W a, W b) {
        return is_missing<W, time>(b) ? !is_missing<W, time>(a) : !is_missing<W, time>(a) && a < b;
    }
    [[nodiscard]] W mode_of(W* v, std::size_t n) const {
        std::sort(v, v + n, less);
        // The missing ones are the last.
        while (skip_ && n > 1 && is_missing<W, time>(v[n - 1])) --n;
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

    DType dtype_;
    bool skip_;
    std::size_t most_;
    mutable std::vector<W> gathered_;  ///< results() sorts those of a column
    std::vector<std::size_t> sizes_;
};

/// The variance, or its root, by Welford's mean and squares; columns are merged by Chan's formula.
class Deviation final : public Pieces<Deviation, double> {
public:
    Deviation(const Elements& from, bool root, std::int64_t columns)
        : Pieces<Deviation, double>(from.for_doubles(), columns), root_(root), skip_(from.skip) {
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
    Count(const DType& dtype, std::int64_t columns) : Pieces<Count, W>(dtype, columns) { reset(); }
    void reset() override { counts_.assign(this->columns(), 0); }
    void take(const W* v, std::int64_t first, std::int64_t n, std::int64_t /*place*/, std::int64_t /*step*/) {
        for (std::int64_t i = 0; i < n; ++i) {
            bool missing = is_missing<W, time>(v[i * this->parts()]);
            if (this->parts() == 2) missing |= is_missing<W, time>(v[2 * i + 1]);
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
    std::vector<std::int64_t> counts_;
};

template <class W, bool time>
std::unique_ptr<Accumulator> make_ordered(const Elements& from, Reduction with, std::int64_t columns) {
    switch (with) {
        case Reduction::min:
            return std::make_unique<ExtremeOf<W, time, false>>(from.dtype, from.skip, columns);
        case Reduction::max:
            return std::make_unique<ExtremeOf<W, time, true>>(from.dtype, from.skip, columns);
        case Reduction::argmin:
            return std::make_unique<ExtremePlace<W, time, false>>(from.dtype, from.skip, columns);
        case Reduction::argmax:
            return std::make_unique<ExtremePlace<W, time, true>>(from.dtype, from.skip, columns);
        default:
            return std::make_unique<Count<W, time>>(from.dtype, columns);
    }
}

template <class W, bool time>
std::unique_ptr<Accumulator> make_block(const Elements& from, Coarsening with, std::int64_t columns,
                                        std::int64_t most) {
    if (with == Coarsening::mode) return std::make_unique<Mode<W, time>>(from, columns, most);
    if (with == Coarsening::mean) return std::make_unique<BlockMean<W, time>>(from, columns);
    return make_ordered<W, time>(from, with == Coarsening::min ? Reduction::min : Reduction::max, columns);
}

/// Calls body(number, whether some may be missing as times are) with a value of the wide type of a dtype: double,
/// std::int64_t, std::uint64_t.
template <class Body>
std::unique_ptr<Accumulator> with_wide(const Elements& from, const Body& body) {
    const Kind kind = from.dtype.kind();
    if (from.marks || is_time(from.dtype)) return body(std::int64_t{}, std::true_type{});
    if (kind == Kind::integer) return body(std::int64_t{}, std::false_type{});
    const bool whole = kind == Kind::unsigned_integer || kind == Kind::boolean;
    return whole ? body(std::uint64_t{}, std::false_type{}) : body(double{}, std::false_type{});
}

}  // namespace

std::unique_ptr<Accumulator> Accumulator::make(const Elements& from, Reduction with, std::int64_t columns) {
    const bool sum = with == Reduction::sum;
    const Kind kind = from.dtype.kind();
    if (with == Reduction::deviation || with == Reduction::variance) {
        return std::make_unique<Deviation>(from, with == Reduction::deviation, columns);
    }
    if (sum && from.marks) return std::make_unique<IntegerSum<std::int64_t, true>>(from.dtype, from.skip, columns);
    if (sum && kind == Kind::unsigned_integer) {
        return std::make_unique<IntegerSum<std::uint64_t, false>>(from.dtype, from.skip, columns);
    }
    if (sum && (kind == Kind::integer || kind == Kind::boolean)) {
        return std::make_unique<IntegerSum<std::int64_t, false>>(from.dtype, from.skip, columns);
    }
    if (sum || with == Reduction::mean) return std::make_unique<RealSum>(from, !sum, columns);
    return with_wide(from, [&](auto number, auto time) {
        return make_ordered<decltype(number), decltype(time)::value>(from, with, columns);
    });
}

std::unique_ptr<Accumulator> Accumulator::make_exact(const Elements& from, Reduction with, std::int64_t columns) {
    const Kind kind = from.dtype.kind();
    if (with == Reduction::sum && kind != Kind::real && kind != Kind::bfloat16) return make(from, with, columns);
    return std::make_unique<ExactRealSum>(from, with == Reduction::mean, columns);
}

std::unique_ptr<Accumulator> Accumulator::make(const Elements& from, Coarsening with, std::int64_t columns,
                                               std::int64_t most) {
    return with_wide(from, [&](auto number, auto time) {
        return make_block<decltype(number), decltype(time)::value>(from, with, columns, most);
    });
}

}  // namespace tessera
