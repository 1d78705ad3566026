#include "windows.h"

#include <cmath>

#include <tessera/copy_elements.h>

namespace tessera {

NumberRows::NumberRows(const DType& dtype) : dtype_(dtype), convert_(to_doubles(dtype)) {}

const std::byte* NumberRows::packed_piece(const std::byte* elements, std::int64_t step, std::int64_t n) {
    if (step == dtype_.size()) return elements;
    if (packed_.bytes().empty()) packed_ = NDArray(dtype_, {numbers_at_once});
    copy_elements(ArrayView{elements, dtype_, {n}, {step}}, view_bytes(packed_.bytes().data(), dtype_, {n}));
    return packed_.bytes().data();
}

const double* NumberRows::real_piece(const std::byte* elements, std::int64_t n) {
    if (numbers_.bytes().empty()) numbers_ = NDArray(DType::of<double>(), {2 * numbers_at_once});
    double* numbers = numbers_.values<double>().data();
    convert_(elements, n, numbers);
    for (std::int64_t i = 0; dtype_.kind() == Kind::complex && i < n; ++i) {
        numbers[i] = std::hypot(numbers[2 * i], numbers[2 * i + 1]);
    }
    return numbers;
}

void Window::merge(const Window& other) {
    sum += other.sum;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    count += other.count;
    has_missing = has_missing || other.has_missing;
}

double Window::value(Coarsening with) const {
    if (count == 0) return std::numeric_limits<double>::quiet_NaN();
    return with == Coarsening::min || with == Coarsening::max ? part(with) : sum / static_cast<double>(count);
}

}  // namespace tessera
