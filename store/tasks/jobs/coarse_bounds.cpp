#include "coarse_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>

#include <tessera/shared_source.h>

namespace tessera {

namespace {

constexpr std::int64_t most_cells = 10'000'000;

NDArray elements_of(const ArraySource& array) {
    const ArrayInfo info = array.info();
    NDArray elements(native_dtype(info.dtype), info.shape);
    array.read_into(Region::whole(info.shape), elements.view(), {});
    return elements;
}

std::vector<double> numbers_of(const ArraySource& array) {
    const NDArray elements = elements_of(*decoded_source(borrowed_source(array)));
    std::vector<double> numbers(static_cast<std::size_t>(elements.count()));
    to_doubles(elements.dtype())(elements.bytes().data(), elements.count(), numbers.data());
    return numbers;
}

/// Which element is the first end of a cell of several, and which the last.
struct CellEnds {
    std::vector<std::array<std::int64_t, 2>> of;  ///< of each, as indices of elements
    std::vector<double> numbers;                  ///< all elements
};

/// Cells may be named from either end: 0 to 1, 1 to 2, or, where values fall, 1 to 2, 0 to 1.
bool touch(const std::vector<double>& ends, std::int64_t cell, bool falls) {
    const auto at = static_cast<std::size_t>(2 * cell);
    const double apart = falls ? ends[at] - ends[at + 3] : ends[at + 1] - ends[at + 2];
    constexpr double rounded = 1e-4;  // of float32
    return std::abs(apart) <= rounded * std::abs(ends[at + 1] - ends[at]);
}

CellEnds cell_ends(const ArraySource& bounds, std::int64_t by) {
    const ArrayInfo info = bounds.info();
    CellEnds ends;
    const bool numbers = is_number(info.dtype) && info.dtype.kind() != Kind::complex;
    if (!numbers || info.shape.rank() != 2 || info.shape[1] != 2 || info.shape[0] > most_cells) return ends;
    ends.numbers = numbers_of(bounds);
    const std::int64_t count = info.shape[0];
    const bool falls = by > 1 && count > 1 && !touch(ends.numbers, 0, false);
    for (std::int64_t first = 0; first < count; first += by) {
        const std::int64_t last = std::min(first + by, count) - 1;
        for (std::int64_t cell = first; cell < last; ++cell) {
            if (!touch(ends.numbers, cell, falls)) return {};
        }
        ends.of.push_back(falls ? std::array{2 * last, 2 * first + 1} : std::array{2 * first, 2 * last + 1});
    }
    return ends;
}

}  // namespace

std::unique_ptr<ArraySource> coarse_bounds(const ArraySource& bounds, std::int64_t by) {
    const CellEnds ends = cell_ends(bounds, by);
    if (ends.of.empty()) return nullptr;
    const NDArray elements = elements_of(bounds);
    NDArray made(elements.dtype(), {std::ssize(ends.of), 2});
    const auto size = static_cast<std::size_t>(elements.dtype().size());
    std::byte* to = made.bytes().data();
    for (const auto& pair : ends.of) {
        for (const std::int64_t end : pair) {
            std::memcpy(to, elements.bytes().data() + static_cast<std::size_t>(end) * size, size);
            to += size;
        }
    }
    return held_source(std::move(made), bounds.name(), bounds.attribute_values());
}

std::unique_ptr<ArraySource> middles_of(const ArraySource& bounds, std::int64_t by, const ArraySource& coordinate) {
    const CellEnds ends = cell_ends(bounds, by);
    if (ends.of.empty())
        throw unsupported("{}: its cells do not touch, so that no larger ones have bounds", bounds.name());
    std::vector<double> middles;
    for (const auto& [first, last] : ends.of) {
        const double begin = ends.numbers[static_cast<std::size_t>(first)];
        middles.push_back(begin + (ends.numbers[static_cast<std::size_t>(last)] - begin) / 2);
    }
    Value attributes = decoded_source(borrowed_source(coordinate))->attribute_values();
    erase_code_attributes(attributes);
    auto made = held_source(NDArray(middles), coordinate.name(), std::move(attributes));
    const DType dtype = native_dtype(coordinate.info().dtype);
    if (dtype.kind() != Kind::real || dtype == DType::of<double>()) return made;
    return std::make_unique<CastSource>(std::move(made), dtype, Cast::same_kind);
}

}  // namespace tessera
