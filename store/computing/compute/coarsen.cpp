#include <tessera/action.h>
#include <tessera/reduce.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/meaning.h>
#include <tessera/multiscales.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/selection_items.h>
#include <tessera/slices.h>

#include "accumulate.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 5> coarsening_names{"mean", "max", "min", "mode", "nearest"};

class CoarsenSource final : public ArraySource {
public:
    CoarsenSource(std::unique_ptr<ArraySource> array, const Shape& by, Coarsening with, bool skip)
        : array_(std::move(array)),
          from_(array_->info()),
          by_(by),
          with_(with),
          dtype_(native_dtype(from_.dtype)),
          elements_{.dtype = dtype_, .skip = skip, .marks = from_.marks_missing} {
        require_factors();
        for (int d = 0; d < by_.rank(); ++d) {
            block_.push_back(std::min(by_[d], std::max<std::int64_t>(1, from_.shape[d])));
        }
        info_ = from_;
        info_.shape = coarsened(from_.shape, by_);
        info_.shards = Shape();
        if (!chunked()) info_.chunks = from_.chunks;
        for (int d = 0; chunked() && d < by_.rank(); ++d)
            info_.chunks[d] = std::max<std::int64_t>(1, from_.chunks[d] / by_[d]);
        info_.working = reading_memory(from_) + slice_memory(info_, item());
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override {
        Value attributes = with_ == Coarsening::nearest ? array_->attribute_values() : result_attributes();
        const auto reference = geo_reference_in(attributes);
        if (!reference || !reference->transform) return attributes;
        const auto [y, x] = geo_dimensions(*reference, dimension_names_of(*array_), by_.rank());
        if (y < 0 || (reference->shape && *reference->shape != std::array{from_.shape[y], from_.shape[x]})) {
            return attributes;  // it is of something else
        }
        set_geo_reference(attributes, coarsened(*reference, {by_[y], by_[x]}, {info_.shape[y], info_.shape[x]},
                                                with_ == Coarsening::nearest));
        return attributes;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        if (with_ == Coarsening::nearest) {
            std::vector<Selection::Axis> axes;
            for (int d = 0; d < region.rank(); ++d)
                axes.push_back({region.start[d] * block_[d], block_[d], region.extent[d]});
            read_selection_into(*array_, Selection(std::move(axes)), out, io);
            return;
        }
        ArrayInfo slices = info_;
        slices.order = Order::C;
        for_each_slice(slices, item(), region, io.stop, [&](const Region& slice) {
            const NDArray made = reduced(slice, io);
            copy_elements(made.view(), out.part(within(region, slice)));
        });
    }

private:
    [[nodiscard]] Value result_attributes() const {
        std::vector<int> axes;
        for (int d = 0; d < block_.rank(); ++d) {
            if (block_[d] > 1) axes.push_back(d);
        }
        const std::string_view method = with_ == Coarsening::min    ? "minimum"
                                        : with_ == Coarsening::max  ? "maximum"
                                        : with_ == Coarsening::mean ? "mean"
                                                                    : "mode";
        return attributes_of_result(*array_, info_, {.method = method}, axes);
    }
    [[nodiscard]] bool chunked() const { return from_.chunks.rank() == by_.rank(); }

    /// Bytes for each result while it is computed.
    [[nodiscard]] std::int64_t item() const {
        return checked_add(checked_multiply(element_count(block_), dtype_.size() + 16, "memory"), 40, "memory");
    }

    void require_factors() const {
        if (by_.rank() != from_.shape.rank()) {
            throw invalid_argument("{}: {} factors were given for {} dimensions", array_->name(), by_.rank(),
                                   from_.shape.rank());
        }
        for (const std::int64_t factor : by_) {
            if (factor < 1) throw invalid_argument("a factor must be at least 1, found {}", factor);
        }
        const bool complex_order = dtype_.kind() == Kind::complex && with_ != Coarsening::mean;
        if (with_ != Coarsening::nearest && ((!is_number(dtype_) && !is_time(dtype_)) || complex_order)) {
            throw unsupported("{}: there is no {} of elements of {}", array_->name(), coarsening_name(with_),
                              dtype_.to_string())
                .advising(Action::coarsening, "takes any", "nearest");
        }
    }

    [[nodiscard]] NDArray reduced(const Region& slice, const IoOptions& io) const {
        Region block = slice;
        for (int d = 0; d < slice.rank(); ++d) {
            block.start[d] *= block_[d];
            block.extent[d] = std::min(slice.extent[d] * block_[d], from_.shape[d] - block.start[d]);
        }
        NDArray elements(dtype_, block.extent);
        array_->read_into(block, elements.view(), io);

        const auto blocks = Accumulator::make(elements_, with_, slice.count(), element_count(block_));
        const int last = slice.rank() - 1;
        const std::int64_t length = last < 0 ? 1 : block.extent[last];
        const std::byte* row = elements.bytes().data();
        Index at = Index::filled(std::max(last, 0), 0);
        for (std::int64_t r = elements.count() / length; r > 0; --r, row += length * dtype_.size()) {
            std::int64_t column = 0;
            for (int d = 0; d < last; ++d) column = column * slice.extent[d] + at[d] / block_[d];
            blocks->add_runs(row, last < 0 ? 0 : column * slice.extent[last], length, last < 0 ? 1 : block_[last]);
            for (int d = last - 1; d >= 0 && ++at[d] == block.extent[d]; --d) at[d] = 0;
        }
        NDArray results(blocks->result_dtype(), slice.extent);
        blocks->results(results.bytes().data());
        NDArray out(dtype_, slice.extent);
        (void)cast_packed(results.dtype(), results.bytes().data(), dtype_, out.bytes().data(), out.count(),
                          Cast::unsafe);
        return out;
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    Shape by_;
    Shape block_;  ///< by_, but nowhere longer than the array: what a person may give to mean all of a dimension
    Coarsening with_;
    DType dtype_;  ///< the source's, in host order
    Elements elements_;
    ArrayInfo info_;
};

}  // namespace

std::pair<int, int> geo_dimensions(const GeoReference& reference, const DimensionNames& names, int rank) {
    const auto find = [&](const std::string& name) {
        const auto found = std::ranges::find(names, name);
        return found == names.end() ? -1 : static_cast<int>(found - names.begin());
    };
    const int y = find(reference.dimensions[0]), x = find(reference.dimensions[1]);
    if (y >= 0 && x >= 0 && x != y) return {y, x};
    return rank >= 2 ? std::pair(rank - 2, rank - 1) : std::pair(-1, -1);
}

Coarsening parse_coarsening(std::string_view word) {
    const auto found = std::ranges::find(coarsening_names, word);
    if (found == coarsening_names.end()) {
        throw invalid_argument("expected mean, max, min, mode or nearest, found '{}'", word);
    }
    return static_cast<Coarsening>(found - coarsening_names.begin());
}

std::string_view coarsening_name(Coarsening with) {
    return coarsening_names.at(static_cast<std::size_t>(with));
}

Shape parse_factors(std::string_view text, const ArraySource& array) {
    const int rank = array.info().shape.rank();
    Shape by = Shape::filled(rank, 1);
    if (text.find('=') == std::string_view::npos) {
        const Shape given = parse_shape(text);
        by = given.rank() == 1 ? Shape::filled(rank, given[0]) : given;
    } else {
        for (const std::string_view item : unquoted_parts(text, ',')) {
            const std::size_t equals = std::min(item.rfind('='), item.size());
            const int d = find_dimension(without_blanks(item.substr(0, equals)), array);
            const Shape factor = parse_shape(equals == item.size() ? "" : without_blanks(item.substr(equals + 1)));
            if (factor.rank() != 1) throw invalid_argument("expected NAME=FACTOR, found '{}'", item);
            by[d] = factor[0];
        }
    }
    for (const std::int64_t factor : by) {
        if (factor < 1) throw invalid_argument("expected factors of at least 1, found {}", text);
    }
    return by;
}

Shape coarsened(const Shape& shape, const Shape& by) {
    Shape made = shape;
    for (int d = 0; d < shape.rank(); ++d) made[d] = ceil_div(shape[d], by[d]);
    return made;
}

std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by, Coarsening with,
                                            bool skip_missing) {
    return std::make_unique<CoarsenSource>(std::move(array), by, with, skip_missing);
}

}  // namespace tessera
