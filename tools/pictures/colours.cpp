// Colour maps, the values at their ends, and round numbers between these.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/numbers.h>
#include <tessera/picture.h>

namespace tessera {

namespace {

std::uint8_t level(double intensity) {
    constexpr double most = 255;
    return static_cast<std::uint8_t>(std::lround(std::clamp(intensity, 0.0, 1.0) * most));
}

/// Maps by Nathaniel Smith and Stéfan van der Walt (CC0), as the polynomials of degree 6 that Matt Zucker fitted to
/// them and published as CC0 (shadertoy.com/view/WlfXRN). Viridis is within 4 of 255 levels of the published table.
using Terms = double[7][3];

Rgb polynomial(const Terms& terms, double t) {
    std::array<double, 3> sum{};
    for (int k = 6; k >= 0; --k) {
        for (std::size_t c = 0; c < 3; ++c) sum.at(c) = sum.at(c) * t + terms[k][c];
    }
    return {level(sum[0]), level(sum[1]), level(sum[2])};
}

Rgb viridis(double t) {
    constexpr Terms terms = {{0.2777273272234177, 0.005407344544966578, 0.3340998053353061},
                             {0.1050930431085774, 1.404613529898575, 1.384590162594685},
                             {-0.3308618287255563, 0.214847559468213, 0.09509516302823659},
                             {-4.634230498983486, -5.799100973351585, -19.33244095627987},
                             {6.228269936347081, 14.17993336680509, 56.69055260068105},
                             {4.776384997670288, -13.74514537774601, -65.35303263337234},
                             {-5.435455855934631, 4.645852612178535, 26.3124352495832}};
    return polynomial(terms, t);
}

Rgb plasma(double t) {
    constexpr Terms terms = {{0.05873234392399702, 0.02333670892565664, 0.5433401826748754},
                             {2.176514634195958, 0.2383834171260182, 0.7539604599784036},
                             {-2.689460476458034, -7.455851135738909, 3.110799939717086},
                             {6.130348345893603, 42.3461881477227, -28.51885465332158},
                             {-11.10743619062271, -82.66631109428045, 60.13984767418263},
                             {10.02306557647065, 71.41361770095349, -54.07218655560067},
                             {-3.658713842777788, -22.93153465461149, 18.19190778539828}};
    return polynomial(terms, t);
}

Rgb inferno(double t) {
    constexpr Terms terms = {{0.0002189403691192265, 0.001651004631001012, -0.01948089843709184},
                             {0.1065134194856116, 0.5639564367884091, 3.932712388889277},
                             {11.60249308247187, -3.972853965665698, -15.9423941062914},
                             {-41.70399613139459, 17.43639888205313, 44.35414519872813},
                             {77.162935699427, -33.40235894210092, -81.80730925738993},
                             {-71.31942824499214, 32.62606426397723, 73.20951985803202},
                             {25.13112622477341, -12.24266895238567, -23.07032500287172}};
    return polynomial(terms, t);
}

Rgb magma(double t) {
    constexpr Terms terms = {{-0.002136485053939582, -0.000749655052795221, -0.005386127855323933},
                             {0.2516605407371642, 0.6775232436837668, 2.494026599312351},
                             {8.353717279216625, -3.577719514958484, 0.3144679030132573},
                             {-27.66873308576866, 14.26473078096533, -13.64921318813922},
                             {52.17613981234068, -27.94360607168351, 12.94416944238394},
                             {-50.76852536473588, 29.04658282127291, 4.23415299384598},
                             {18.65570506591883, -11.48977351997711, -5.601961508734096}};
    return polynomial(terms, t);
}

double encoded_srgb(double linear) {
    return linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
}

/// A colour of Oklab (Björn Ottosson, 2020, public domain), in which equal distances look equal.
Rgb oklab(double lightness, double a, double b) {
    const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    return {level(encoded_srgb(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s)),
            level(encoded_srgb(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s)),
            level(encoded_srgb(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s))};
}

Rgb grey(double t) {
    return oklab(t, 0, 0);
}

/// From blue through near-white to orange-red. Colours at equal distances from the middle are equally light.
Rgb diverging(double t) {
    const double far = std::abs(2 * t - 1);
    constexpr double middle = 0.96, end = 0.42;
    const double lightness = middle + (end - middle) * far;
    // The chroma that sRGB can show at this lightness: largest about half-way to the ends.
    const double chroma = 0.14 * std::sin(std::min(1.0, far * 1.25) * 1.5707963267948966);
    constexpr double blue = 4.43, red = 0.62;  // angles of the hues
    const double hue = t < 0.5 ? blue : red;
    return oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

/// A map whose lightness in Oklab rises evenly, from one hue (an angle) to another.
Rgb ramp(double t, double dark, double light, double first_hue, double last_hue, double chroma) {
    const double hue = first_hue + (last_hue - first_hue) * t;
    // sRGB has the least room for chroma at both ends.
    const double strength = chroma * std::sin((0.12 + 0.8 * t) * 3.141592653589793);
    return oklab(dark + (light - dark) * t, strength * std::cos(hue), strength * std::sin(hue));
}

/// From dark blue to yellow, which people of every sight tell apart.
Rgb dusk(double t) {
    const double side = 2 * t - 1;
    return oklab(0.22 + 0.72 * t, 0.02 * side, 0.11 * side);
}

Rgb ocean(double t) {
    return ramp(t, 0.18, 0.95, 4.75, 3.2, 0.11);
}

Rgb forest(double t) {
    return ramp(t, 0.2, 0.95, 2.75, 1.95, 0.12);
}

Rgb copper(double t) {
    return ramp(t, 0.15, 0.93, 0.65, 1.3, 0.12);
}

Rgb rose(double t) {
    return ramp(t, 0.2, 0.94, 5.6, 6.6, 0.14);
}

/// A circle of hues that are equally light, beginning and ending at blue.
Rgb cyclic(double t) {
    const double hue = 4.6 + t * 2 * 3.141592653589793;
    return oklab(0.7, 0.115 * std::cos(hue), 0.115 * std::sin(hue));
}

/// Hues at the golden angle from each other, in three steps of lightness; the first one is the background.
Rgb labels(double t) {
    const int k = static_cast<int>(std::lround(t * 255));
    if (k == 0) return {36, 38, 42};
    const double hue = 2.399963229728653 * k;
    return oklab(0.6 + 0.12 * (k % 3), 0.12 * std::cos(hue), 0.12 * std::sin(hue));
}

constexpr std::array<std::string_view, 13> map_names{"viridis",   "plasma", "inferno", "magma", "dusk",
                                                     "ocean",     "forest", "copper",  "rose",  "grey",
                                                     "diverging", "cyclic", "labels"};
constexpr std::array<Rgb (*)(double), 13> map_functions{viridis, plasma, inferno, magma,     dusk,   ocean, forest,
                                                        copper,  rose,   grey,    diverging, cyclic, labels};

/// One end of a range.
struct Bound {
    double number = 0;
    bool percent = false;
};

Bound parse_bound(std::string_view text, std::string_view whole) {
    const std::string given(text.substr(0, text.find_last_not_of("% ") + 1));
    const std::string number = given.substr(std::min(given.size(), given.find_first_not_of(' ')));
    Bound bound{.percent = text.find('%') != std::string_view::npos};
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bound.number);
    const bool good = error == std::errc() && end == number.data() + number.size() && std::isfinite(bound.number) &&
                      (!bound.percent || (bound.number >= 0 && bound.number <= 100));
    if (good) return bound;
    throw invalid_argument("range: expected LOW,HIGH, each a number or a percentile as in 2%,98%, found '{}'", whole);
}

/// As numpy.percentile: linear between the two nearest of the sorted values.
double percentile(const std::vector<double>& sorted, double percent) {
    const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

/// The finite values; for lines their extremes.
std::vector<double> finite_values(const Picture& picture) {
    std::vector<double> values;
    const auto add = [&](const NDArray& cells) {
        for (const double v : cells.values<double>()) {
            if (std::isfinite(v)) values.push_back(v);
        }
    };
    add(picture.line ? picture.low : picture.values);
    if (picture.line) add(picture.high);
    std::ranges::sort(values);
    return values;
}

std::string time_text(const DType& dtype, double value) {
    const auto count = static_cast<std::int64_t>(value);
    const DType native = DType::time(dtype.kind(), dtype.time_unit());
    return element_to_text(native, reinterpret_cast<const std::byte*>(&count));
}

}  // namespace

ColourMap parse_colour_map(std::string_view word) {
    const bool turned = word.ends_with("_r");
    std::string_view name = turned ? word.substr(0, word.size() - 2) : word;
    if (name == "gray") name = "grey";
    const auto found = std::ranges::find(map_names, name);
    if (found == map_names.end()) {
        throw invalid_argument("map: expected {}, or one of these with _r at its end, found '{}'",
                               fmt::join(map_names, ", "), word);
    }
    const auto number = static_cast<unsigned>(found - map_names.begin());
    return static_cast<ColourMap>(turned ? number | static_cast<unsigned>(ColourMap::reversed) : number);
}

std::span<const std::string_view> colour_map_names() {
    return map_names;
}

Rgb map_colour(ColourMap map, double at) {
    const double t = at > 0 ? std::min(at, 1.0) : 0;
    // 256 colours, as a table would have them.
    constexpr double steps = 256;
    const double place = std::min(std::floor(t * steps), steps - 1) / (steps - 1);
    const ColourMap forward = forward_map(map);
    return map_functions.at(static_cast<std::size_t>(forward))(forward == map ? place : 1 - place);
}

Rgb value_colour(ColourMap map, double value, std::pair<double, double> range) {
    if (forward_map(map) != ColourMap::labels) return map_colour(map, place_in_range(value, range));
    constexpr double others = 255;
    const double k = value == 0 || !std::isfinite(value) ? 0 : 1 + std::fmod(std::abs(std::trunc(value)) - 1, others);
    return map_colour(map, std::clamp(k, 0.0, others) / others);
}

Rgb cell_colour(const Picture& picture, std::int64_t row, std::int64_t column, ColourMap map,
                std::pair<double, double> range) {
    if (!picture.colours) return value_colour(map, picture.value(row, column), range);
    const std::span<const std::uint8_t> levels = picture.colours->values<std::uint8_t>();
    const auto at = 3 * static_cast<std::size_t>(row * picture.columns.cells() + column);
    return {levels[at], levels[at + 1], levels[at + 2]};
}

std::pair<double, double> picture_range(const Picture& picture, std::string_view range, ColourMap map) {
    std::optional<std::pair<Bound, Bound>> bounds;
    if (!range.empty()) {
        const std::size_t comma = range.find(',');
        const std::string_view high = comma == std::string_view::npos ? "" : range.substr(comma + 1);
        bounds.emplace(parse_bound(range.substr(0, comma), range), parse_bound(high, range));
    }
    const std::vector<double> values = finite_values(picture);
    const auto end_of = [&](const Bound& bound) {
        if (!bound.percent && picture.logarithmic) {
            if (bound.number > 0) return std::log10(bound.number);
            throw invalid_argument("range: a logarithmic range is above 0, found {}", python_float_repr(bound.number));
        }
        if (!bound.percent) return bound.number;
        return values.empty() ? 0.0 : percentile(values, bound.number);
    };
    if (bounds) {
        const std::pair<double, double> ends{end_of(bounds->first), end_of(bounds->second)};
        if (ends.first <= ends.second) return ends;
        throw invalid_argument("range: the lower end {} is above the upper end {}", python_float_repr(ends.first),
                               python_float_repr(ends.second));
    }
    if (values.empty()) return {0, 1};
    if (forward_map(map) != ColourMap::diverging) return {values.front(), values.back()};
    const double far = std::max(std::abs(values.front()), std::abs(values.back()));
    return {-far, far};
}

double place_in_range(double value, std::pair<double, double> range) {
    if (range.second == range.first && value == range.first) return 0.5;
    if (value >= range.second) return 1;  // also for infinities
    if (value <= range.first) return 0;
    const double whole = range.second - range.first;
    if (std::isfinite(whole)) return (value - range.first) / whole;
    // Halved, so that the distance between the largest doubles is finite. Only then, because halving the smallest
    // double gives 0.
    return (value / 2 - range.first / 2) / (range.second / 2 - range.first / 2);
}

std::string picture_text(const Picture& picture, double value, double step) {
    if (is_time(picture.dtype)) return time_text(picture.dtype, value);
    if (picture.logarithmic) return fmt::format("{:.3g}", std::pow(10.0, value));
    if (value == 0) return "0";
    if (!std::isfinite(value)) return fmt::format("{}", value);
    constexpr double many = 1e6, few = 1e-5;
    // May be infinite for the largest or smallest doubles, so it is clamped before it becomes an integer.
    const double finest = std::floor(std::log10(std::max(std::abs(step), std::abs(value) * 1e-12)) + 1e-9);
    if (std::abs(value) < many && step >= few) {
        return fmt::format("{:.{}f}", value, static_cast<int>(std::clamp(-finest, 0.0, 9.0)));
    }
    const double first = std::floor(std::log10(std::abs(value)));
    return fmt::format("{:.{}g}", value, static_cast<int>(std::clamp(first - finest + 1, 1.0, 15.0)));
}

Ticks round_ticks(double low, double high, int most, bool whole_numbers) {
    Ticks ticks;
    // Divided by 4, so that the distance between the largest doubles is finite.
    const double span = (high / 4 - low / 4) / std::max(1, most) * 4;
    if (!(span > 0) || !std::isfinite(span)) {
        ticks.at.push_back(low);
        return ticks;
    }
    const double power = std::pow(10.0, std::floor(std::log10(span)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
        ticks.step = whole_numbers ? std::max(1.0, factor * power) : factor * power;
        const double first = std::ceil(low / ticks.step - 1e-9);
        const double last = std::floor(high / ticks.step + 1e-9);
        if (!(last - first + 1 <= most)) continue;
        for (double k = first; k <= last; ++k) {
            ticks.at.push_back(k * ticks.step + 0.0);  // no -0
            if (k + 1 == k) break;                     // a double cannot count further
        }
        break;
    }
    if (ticks.at.empty()) ticks.at.push_back(low);
    return ticks;
}

}  // namespace tessera
