// The names of reductions and the dtypes of their results.
#include <tessera/reduce.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <system_error>

#include <tessera/error_text.h>
#include <tessera/number_text.h>
#include <tessera/numbers.h>

#include "reduced_array.h"

namespace tessera {

namespace {

struct NamedReduction {
    std::string_view name;
    Reduction reduction;
};
constexpr std::array<NamedReduction, 13> reduction_names{{{"min", Reduction::min},
                                                          {"max", Reduction::max},
                                                          {"sum", Reduction::sum},
                                                          {"mean", Reduction::mean},
                                                          {"std", Reduction::deviation},
                                                          {"var", Reduction::variance},
                                                          {"count", Reduction::count},
                                                          {"argmin", Reduction::argmin},
                                                          {"argmax", Reduction::argmax},
                                                          {"median", Reduction::median},
                                                          {"any", Reduction::any},
                                                          {"all", Reduction::all},
                                                          {"percentile", Reduction::percentile}}};

std::optional<double> percent_in(std::string_view word) {
    if (!word.starts_with('p')) return std::nullopt;
    double percent = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = number_from_text(word.data() + 1, end, percent);
    const bool fits = error == std::errc() && stop == end && percent >= 0 && percent <= 100;
    return fits ? std::optional(percent) : std::nullopt;
}

}  // namespace

Reduction parse_reduction(std::string_view word) {
    if (percent_in(word)) return Reduction::percentile;
    for (const NamedReduction& one : reduction_names) {
        if (one.name == word && one.reduction != Reduction::percentile) return one.reduction;
    }
    throw invalid_argument(
        "expected min, max, sum, mean, std, var, count, argmin, argmax, any, all, median or a percentile such as p95 "
        "or p2.5, found '{}'",
        word);
}

std::optional<std::string> called_reduction(std::string_view name) {
    if (name.starts_with("nan")) name.remove_prefix(3);
    if (name == "percentile") return std::string(name);
    try {
        (void)parse_reduction(name);
    } catch (const Error&) {
        return std::nullopt;
    }
    return std::string(name);
}

double parse_percent(std::string_view word) {
    return percent_in(word).value_or(50);
}

std::string_view reduction_name(Reduction reduction) {
    return std::ranges::find(reduction_names, reduction, &NamedReduction::reduction)->name;
}

DType reduced_dtype(const DType& dtype, Reduction with) {
    const bool complex = dtype.kind() == Kind::complex;
    const bool truth = with == Reduction::any || with == Reduction::all;
    const bool for_complex = truth || with == Reduction::sum || with == Reduction::mean || with == Reduction::count;
    const bool known = (is_number(dtype) && (!complex || for_complex)) ||
                       (is_time(dtype) && (chooses_by_order(with) || with == Reduction::count));
    if (!known) {
        throw unsupported("there is no {} of elements of {}", reduction_name(with), dtype.to_string());
    }
    if (with == Reduction::any || with == Reduction::all) return DType::of<bool>();
    const bool integer = dtype.kind() == Kind::boolean || dtype.kind() == Kind::integer;
    switch (with) {
        case Reduction::min:
        case Reduction::max:
            return dtype;
        case Reduction::count:
        case Reduction::argmin:
        case Reduction::argmax:
            return DType::of<std::int64_t>();
        case Reduction::sum:
            if (integer) return DType::of<std::int64_t>();
            if (dtype.kind() == Kind::unsigned_integer) return DType::of<std::uint64_t>();
            break;
        default:
            if (integer || dtype.kind() == Kind::unsigned_integer) return DType::of<double>();
            break;
    }
    return dtype.kind() == Kind::bfloat16 ? DType::of<float>() : dtype;
}

}  // namespace tessera
