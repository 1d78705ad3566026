#include <tessera/complex_part.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

namespace tessera {

ComplexPart::ComplexPart(std::shared_ptr<const ArraySource> whole, std::string_view part)
    : whole_(std::move(whole)),
      part_(static_cast<std::size_t>(std::ranges::find(complex_parts, part) - complex_parts.begin())),
      info_(whole_->info()) {
    if (info_.dtype.kind() != Kind::complex) {
        throw invalid_argument("{}: elements of {} have no {}", whole_->name(), info_.dtype.to_string(), part);
    }
    if (part_ == complex_parts.size()) {
        throw invalid_argument("{}: expected magnitude, phase, real or imaginary, found '{}'", whole_->name(), part);
    }
    info_.dtype = info_.dtype.size() == 8 ? DType::of<float>() : DType::of<double>();
}

double ComplexPart::number(const double pair[2]) const {
    switch (part_) {
        case 0:
            return std::hypot(pair[0], pair[1]);
        case 1:
            return std::atan2(pair[1], pair[0]);
        case 2:
            return pair[0];
        default:
            return pair[1];
    }
}

double ComplexPart::number_of(const std::byte* element) const {
    const DType stored = whole_->info().dtype;
    const DType native = native_dtype(stored);
    ElementBytes copy(element, element + stored.size());
    if (!(native == stored)) swap_elements(stored, copy.data(), 1);
    double pair[2];
    to_doubles(native)(copy.data(), 1, pair);
    return number(pair);
}

void ComplexPart::read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
    const ArrayInfo whole = whole_->info();
    const DType native = native_dtype(whole.dtype);
    const ToDoubles doubles = to_doubles(native);
    for_each_slice(whole, native.size(), region, io.stop, [&](const Region& slice) {
        NDArray elements(native, slice.extent);
        whole_->read_into(slice, elements.view(), io);
        NDArray parts(DType::of<double>(), slice.extent);
        const auto to = parts.values<double>();
        double pairs[2 * numbers_at_once];
        for (std::int64_t i = 0; i < elements.count(); i += numbers_at_once) {
            const std::int64_t n = std::min(numbers_at_once, elements.count() - i);
            doubles(elements.bytes().data() + i * native.size(), n, pairs);
            for (std::int64_t k = 0; k < n; ++k) to[static_cast<std::size_t>(i + k)] = number(pairs + 2 * k);
        }
        NDArray narrow(out.dtype, slice.extent);
        (void)cast_packed(parts.dtype(), parts.bytes().data(), narrow.dtype(), narrow.bytes().data(), parts.count(),
                          Cast::unsafe);
        copy_elements(narrow.view(), out.part(within(region, slice)));
    });
}

}  // namespace tessera
