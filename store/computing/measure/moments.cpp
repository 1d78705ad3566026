#include "moments.h"

#include <tessera/measure.h>
#include <tessera/numbers.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "index_bytes.h"

namespace tessera {

namespace {

/// The compiler's vector types, which it maps to the machine's registers.
typedef double Doubles __attribute__((vector_size(32)));           // NOLINT(modernize-use-using)
typedef std::int64_t Masks __attribute__((vector_size(32)));       // NOLINT(modernize-use-using)
typedef std::int32_t Places __attribute__((vector_size(16)));      // NOLINT(modernize-use-using)
typedef float Floats __attribute__((vector_size(32)));             // NOLINT(modernize-use-using)
typedef std::int32_t FloatMasks __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
constexpr std::int64_t lanes = 4;
constexpr std::int64_t vectors = number_step / lanes;  // independent of each other

/// The sums of distances from a number and of their squares.
struct Spread {
    double sum = 0;
    double squares = 0;
};

/// Parameters for finding the bin of each number.
struct Cells {
    double scale;  ///< 2^-exponent
    double shift;  ///< a whole number that is subtracted first
    double first;  ///< the first bin, less the shift
    double dump;   ///< the bin for numbers that are not finite
};

// The kernels are compiled twice, for any x86-64 and for AVX2. Both give the same bits: the lanes determine the order
// of additions, and neither uses fused multiply-add.

[[gnu::always_inline]] inline Survey survey_in(const double* v, std::int64_t n) {
    Doubles low[vectors];
    Doubles high[vectors];
    Doubles sum[vectors];
    Masks finite[vectors];
    for (std::int64_t k = 0; k < vectors; ++k) {
        low[k] = Doubles{} + infinity;
        high[k] = Doubles{} - infinity;
        sum[k] = Doubles{};
        finite[k] = Masks{};
    }
    for (std::int64_t i = 0; i < n; i += number_step) {
        for (std::int64_t k = 0; k < vectors; ++k) {
            Doubles x;
            std::memcpy(&x, v + i + k * lanes, sizeof x);
            const Masks is_finite = x - x == Doubles{};  // infinity − infinity is NaN
            const Doubles kept = reinterpret_cast<Doubles>(reinterpret_cast<Masks>(x) & is_finite);
            sum[k] += kept;
            finite[k] -= is_finite;
            low[k] = x < low[k] ? x : low[k];
            high[k] = x > high[k] ? x : high[k];
        }
    }
    Survey s{.low = infinity, .high = -infinity};
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            s.low = std::min(s.low, low[k][j]);
            s.high = std::max(s.high, high[k][j]);
            s.sum += sum[k][j];
            s.finite += finite[k][j];
        }
    }
    return s;
}

[[gnu::always_inline]] inline Spread spread_in(const double* v, std::int64_t n, double from) {
    Doubles sum[vectors];
    Doubles squares[vectors];
    for (std::int64_t k = 0; k < vectors; ++k) sum[k] = squares[k] = Doubles{};
    for (std::int64_t i = 0; i < n; i += number_step) {
        for (std::int64_t k = 0; k < vectors; ++k) {
            Doubles x;
            std::memcpy(&x, v + i + k * lanes, sizeof x);
            const Masks is_finite = x - x == Doubles{};
            const Doubles distance = x - from;
            const Doubles kept = reinterpret_cast<Doubles>(reinterpret_cast<Masks>(distance) & is_finite);
            sum[k] += kept;
            squares[k] += kept * kept;
        }
    }
    Spread s;
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            s.sum += sum[k][j];
            s.squares += squares[k][j];
        }
    }
    return s;
}

[[gnu::always_inline]] inline Glance glance_in(const double* v, std::int64_t n, double about) {
    Doubles low[vectors];
    Doubles high[vectors];
    Doubles sum[vectors];
    Doubles squares[vectors];
    for (std::int64_t k = 0; k < vectors; ++k) {
        low[k] = high[k] = Doubles{} + v[0];
        sum[k] = squares[k] = Doubles{};
    }
    for (std::int64_t i = 0; i < n; i += number_step) {
        for (std::int64_t k = 0; k < vectors; ++k) {
            Doubles x;
            std::memcpy(&x, v + i + k * lanes, sizeof x);
            low[k] = x < low[k] ? x : low[k];
            high[k] = x > high[k] ? x : high[k];
            const Doubles distance = x - about;
            sum[k] += distance;
            squares[k] += distance * distance;
        }
    }
    Glance g{.low = v[0], .high = v[0], .about = about};
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            g.low = std::min(g.low, low[k][j]);
            g.high = std::max(g.high, high[k][j]);
            g.sum += sum[k][j];
            g.squares += squares[k][j];
        }
    }
    return g;
}

/// Extremes as floats, sums as doubles.
[[gnu::always_inline]] inline Glance glance_in(const float* v, std::int64_t n, double about) {
    constexpr std::int64_t pairs = vectors / 2;
    Floats low[pairs];
    Floats high[pairs];
    Doubles sum[vectors];
    Doubles squares[vectors];
    for (std::int64_t k = 0; k < pairs; ++k) low[k] = high[k] = Floats{} + v[0];
    for (std::int64_t k = 0; k < vectors; ++k) sum[k] = squares[k] = Doubles{};
    for (std::int64_t i = 0; i < n; i += number_step) {
        for (std::int64_t k = 0; k < pairs; ++k) {
            Floats x;
            std::memcpy(&x, v + i + k * 2 * lanes, sizeof x);
            low[k] = x < low[k] ? x : low[k];
            high[k] = x > high[k] ? x : high[k];
        }
        for (std::int64_t k = 0; k < vectors; ++k) {
            const float* const p = v + i + k * lanes;
            const Doubles x = {p[0], p[1], p[2], p[3]};  // one conversion
            const Doubles distance = x - about;
            sum[k] += distance;
            squares[k] += distance * distance;
        }
    }
    Glance g{.low = v[0], .high = v[0], .about = about};
    for (std::int64_t k = 0; k < pairs; ++k) {
        for (std::int64_t j = 0; j < 2 * lanes; ++j) {
            g.low = std::min(g.low, static_cast<double>(low[k][j]));
            g.high = std::max(g.high, static_cast<double>(high[k][j]));
        }
    }
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            g.sum += sum[k][j];
            g.squares += squares[k][j];
        }
    }
    return g;
}

/// For finite floats and small bin numbers. Rounds before scaling, so that no number underflows and loses its sign.
[[gnu::always_inline]] inline void float_cells_in(const float* v, std::int64_t n, const Cells& cells,
                                                  std::int32_t* to) {
    const auto scale = static_cast<float>(cells.scale);
    const float whole = 12582912.0F / scale;  // 1.5 · 2^23 bins: adding it rounds to whole bins
    const auto first = static_cast<std::int32_t>(cells.first);
    for (std::int64_t i = 0; i < n; i += 2 * lanes) {
        Floats x;
        std::memcpy(&x, v + i, sizeof x);
        const Floats near = (x + whole) - whole;
        const FloatMasks above = near > x;  // −1 where true
        const FloatMasks at = __builtin_convertvector(near * scale, FloatMasks) + above - first;
        std::memcpy(to + i, &at, sizeof at);
    }
}

[[gnu::always_inline]] inline void cells_in(const double* v, std::int64_t n, const Cells& cells, std::int32_t* to) {
    constexpr double whole = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to whole numbers
    for (std::int64_t i = 0; i < n; i += lanes) {
        Doubles x;
        std::memcpy(&x, v + i, sizeof x);
        const Masks is_finite = x - x == Doubles{};
        x = x * cells.scale - cells.shift;
        const Doubles near = (x + whole) - whole;
        const Doubles floor = near > x ? near - 1.0 : near;
        const Doubles at = is_finite ? floor - cells.first : Doubles{} + cells.dump;
        const Places places = __builtin_convertvector(at, Places);
        std::memcpy(to + i, &places, sizeof places);
    }
}

Survey survey_portable(const double* v, std::int64_t n) {
    return survey_in(v, n);
}
Spread spread_portable(const double* v, std::int64_t n, double from) {
    return spread_in(v, n, from);
}
Glance glance_portable(const double* v, std::int64_t n, double about) {
    return glance_in(v, n, about);
}
Glance float_glance_portable(const float* v, std::int64_t n, double about) {
    return glance_in(v, n, about);
}
void float_cells_portable(const float* v, std::int64_t n, const Cells& cells, std::int32_t* to) {
    float_cells_in(v, n, cells, to);
}
void cells_portable(const double* v, std::int64_t n, const Cells& cells, std::int32_t* to) {
    cells_in(v, n, cells, to);
}

struct Kernels {
    Survey (*survey)(const double*, std::int64_t);
    Spread (*spread)(const double*, std::int64_t, double);
    void (*cells)(const double*, std::int64_t, const Cells&, std::int32_t*);
    Glance (*glance)(const double*, std::int64_t, double);
    Glance (*float_glance)(const float*, std::int64_t, double);
    void (*float_cells)(const float*, std::int64_t, const Cells&, std::int32_t*);
};

constexpr Kernels portable{survey_portable, spread_portable,       cells_portable,
                           glance_portable, float_glance_portable, float_cells_portable};

#if defined(__x86_64__)

[[gnu::target("avx2")]] Survey survey_avx2(const double* v, std::int64_t n) {
    return survey_in(v, n);
}
[[gnu::target("avx2")]] Spread spread_avx2(const double* v, std::int64_t n, double from) {
    return spread_in(v, n, from);
}
[[gnu::target("avx2")]] Glance glance_avx2(const double* v, std::int64_t n, double about) {
    return glance_in(v, n, about);
}
[[gnu::target("avx2")]] Glance float_glance_avx2(const float* v, std::int64_t n, double about) {
    return glance_in(v, n, about);
}
[[gnu::target("avx2")]] void float_cells_avx2(const float* v, std::int64_t n, const Cells& cells, std::int32_t* to) {
    float_cells_in(v, n, cells, to);
}
[[gnu::target("avx2")]] void cells_avx2(const double* v, std::int64_t n, const Cells& cells, std::int32_t* to) {
    cells_in(v, n, cells, to);
}

const Kernels kernels = __builtin_cpu_supports("avx2") != 0 ? Kernels{survey_avx2, spread_avx2,       cells_avx2,
                                                                      glance_avx2, float_glance_avx2, float_cells_avx2}
                                                            : portable;

#else

constexpr const Kernels& kernels = portable;

#endif

/// A number that is likely to be near the mean.
template <class T>
double middle(const T* v, std::int64_t n) {
    return (static_cast<double>(v[0]) + static_cast<double>(v[n / 4]) + static_cast<double>(v[n / 2]) +
            static_cast<double>(v[n / 4 * 3])) /
           4;
}

/// Whether the squares of up to 1024 distances of at most this size do not overflow, and significant ones do not
/// underflow.
bool in_range(double width) {
    return width < 1e150 && (width > 1e-120 || width == 0);
}

constexpr std::size_t turns = 4;  // see Bins::recent_

}  // namespace

Survey survey(const double* v, std::int64_t n) {
    return kernels.survey(v, n);
}

Glance glance(const float* v, std::int64_t n) {
    return kernels.float_glance(v, n, middle(v, n));
}

Glance glance(const double* v, std::int64_t n) {
    return kernels.glance(v, n, middle(v, n));
}

bool Glance::enough(std::int64_t n) const {
    // Any number that is not finite makes the squares so. The last condition limits cancellation to 15/16, which is 4
    // bits.
    return std::isfinite(squares) && in_range(high - low) &&
           sum * sum / static_cast<double>(n) <= squares * (15.0 / 16.0);
}

// ---- moments

void Moments::add(const Glance& g, std::int64_t n) {
    Moments part;
    part.count_ = n;
    const auto count = static_cast<long double>(n);
    part.mean_ = g.about + g.sum / count;
    part.squares_ = g.squares - static_cast<long double>(g.sum) * g.sum / count;
    merge(part);
}

void Moments::add(const double* v, std::int64_t n, const Survey& s, double low, double high) {
    if (s.finite == 0) return;
    Moments part;
    part.count_ = s.finite;
    const auto count = static_cast<long double>(s.finite);
    if (std::isfinite(s.sum) && in_range(high - low)) {
        const double about = s.sum / static_cast<double>(s.finite);
        const Spread d = kernels.spread(v, n, about);
        part.mean_ = about + d.sum / count;
        part.squares_ = std::max(d.squares - static_cast<long double>(d.sum) * d.sum / count, 0.0L);
    } else {
        for (std::int64_t i = 0; i < n; ++i) part.mean_ += std::isfinite(v[i]) ? v[i] : 0.0L;
        part.mean_ /= count;
        for (std::int64_t i = 0; i < n; ++i) {
            const long double distance = std::isfinite(v[i]) ? v[i] - part.mean_ : 0.0L;
            part.squares_ += distance * distance;
        }
    }
    merge(part);
}

void Moments::merge(const Moments& part) {
    if (part.count_ == 0) return;
    const auto n = static_cast<long double>(count_);
    const auto m = static_cast<long double>(part.count_);
    const long double distance = part.mean_ - mean_;
    const long double share = m / (n + m);
    mean_ += distance * share;
    squares_ += part.squares_ + distance * distance * n * share;
    count_ += part.count_;
}

double Moments::deviation() const {
    return static_cast<double>(std::sqrt(squares_ / static_cast<long double>(count_)));
}

void Moments::save(IndexWriter& to) const {
    to.real(mean_);
    to.real(squares_);
}

void Moments::load(IndexReader& from, std::int64_t count) {
    count_ = count;
    mean_ = from.long_real();
    squares_ = from.long_real();
    if (squares_ < 0) throw corrupt("a sum of squares of the index of chunks is negative");
}

// ---- bins

double Bins::cell(double v) const {
    return std::floor(std::ldexp(v, -exponent_));
}

/// Adapts the bins so that `v` falls into one.
void Bins::reach(double v) {
    for (;;) {
        const double at = cell(v) - first_;
        if (at >= 0 && at < static_cast<double>(counts_.size())) return;
        const double span = at < 0 ? static_cast<double>(counts_.size()) - at : at + 1;
        if (span <= static_cast<double>(most_)) {
            extend(at);
        } else {
            coarsen();
        }
    }
}

void Bins::make_room(double low, double high) {
    if (counts_.empty()) {
        // The finest bins for which the bin numbers at both ends are still exact integers as doubles.
        const double largest = std::max(std::abs(low), std::abs(high));
        exponent_ = largest == 0 ? -1000 : std::max(std::ilogb(largest) - 50, -1000);
        first_ = cell(low);
        counts_.assign(1, 0);
    }
    const bool there = cell(low) >= first_ && cell(high) < first_ + static_cast<double>(counts_.size());
    if (!there) {
        fold();
        reach(low);
        reach(high);
    }
    if (recent_.empty()) recent_.assign(turns * (counts_.size() + 1), 0);
}

void Bins::add(const double* v, std::int64_t n, double low, double high) {
    count(v, n, low, high);
}

void Bins::add(const float* v, std::int64_t n, double low, double high) {
    count(v, n, low, high);
}

template <class T>
void Bins::count(const T* v, std::int64_t n, double low, double high) {
    make_room(low, high);
    // If bin numbers are large, the first is subtracted before rounding, which is exact there; if they are small, after
    // rounding.
    constexpr double large = 1099511627776.0;  // 2^40
    const double shift = std::abs(first_) > large ? first_ : 0;
    const Cells cells{std::ldexp(1.0, -exponent_), shift, first_ - shift, static_cast<double>(counts_.size())};
    std::int32_t at[numbers_at_once];
    if constexpr (std::is_same_v<T, float>) {
        // In floats if that is exact: bin numbers are small, and the scale is a float.
        constexpr double small = 1048576.0;  // 2^20
        if (std::abs(first_) < small && std::abs(exponent_) < 100) {
            kernels.float_cells(v, n, cells, at);
        } else {
            double numbers[numbers_at_once];
            std::copy(v, v + n, numbers);
            kernels.cells(numbers, n, cells, at);
        }
    } else {
        kernels.cells(v, n, cells, at);
    }
    const std::size_t places = counts_.size() + 1;
    std::int64_t* const counts = recent_.data();
    for (std::int64_t i = 0; i < n; i += turns) {
        for (std::size_t t = 0; t < turns; ++t) {
            ++counts[t * places + static_cast<std::size_t>(at[i + static_cast<std::int64_t>(t)])];
        }
    }
}

/// Adds the counts since the last call.
void Bins::fold() {
    if (recent_.empty()) return;
    const std::size_t places = counts_.size() + 1;
    for (std::size_t t = 0; t < turns; ++t) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += recent_[t * places + i];
    }
    recent_.clear();
}

void Bins::merge(const Bins& other) {
    fold();
    Bins theirs = other;
    theirs.fold();
    if (theirs.counts_.empty()) return;
    if (counts_.empty()) {
        *this = std::move(theirs);
        return;
    }
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

std::optional<Histogram> Bins::histogram() const {
    if (counts_.empty()) return {};
    Bins b = *this;
    b.fold();
    // A single value: its bin need not be the finest possible.
    if (b.counts_.size() == 1) {
        const int wanted = b.first_ == 0 ? 0 : std::ilogb(b.first_) + b.exponent_ - 4;
        while (b.exponent_ < wanted) b.coarsen();
    }
    return Histogram{std::ldexp(b.first_, b.exponent_), std::ldexp(1.0, b.exponent_), b.counts_};
}

void Bins::save(IndexWriter& to) const {
    Bins b = *this;
    b.fold();
    to.number(b.exponent_);
    to.real(b.first_);
    to.count(b.counts_.size());
    for (const std::int64_t n : b.counts_) to.count(static_cast<std::uint64_t>(n));
}

void Bins::load(IndexReader& from, std::int64_t count) {
    constexpr std::int64_t widest = 1100;  // as a power of two
    const std::int64_t exponent = from.number();
    first_ = from.real();
    counts_.resize(static_cast<std::size_t>(from.count(static_cast<std::int64_t>(most_))));
    for (std::int64_t& n : counts_) count -= n = from.count(count);
    if (exponent < -widest || exponent > widest || count != 0 || std::trunc(first_) != first_ ||
        std::abs(first_) > 0x1p60) {
        throw corrupt("bins of the index of chunks are none");
    }
    exponent_ = static_cast<int>(exponent);
}

/// Makes room for the bin `at` places after the first one.
void Bins::extend(double at) {
    if (at < 0) {
        counts_.insert(counts_.begin(), static_cast<std::size_t>(-at), 0);
        first_ += at;
    } else if (at >= static_cast<double>(counts_.size())) {
        counts_.resize(static_cast<std::size_t>(at) + 1, 0);
    }
}

void Bins::coarsen() {
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

}  // namespace tessera
