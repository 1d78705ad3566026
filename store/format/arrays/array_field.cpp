#include <tessera/array.h>

#include <utility>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>

namespace tessera {

namespace {

/// The axes that select structures.
Selection of_structures(const Selection& selection, int rank) {
    return Selection(std::vector(selection.axes().begin(), selection.axes().begin() + rank));
}

/// The view with a selection's dropped dimensions restored as length 1. `in` may have them already.
ArrayView with_all_axes(const ArrayView& in, const Selection& selection, const std::string& name) {
    if (in.shape == selection.full_shape()) return in;
    if (!(in.shape == selection.shape())) {
        throw invalid_argument("{}: the elements given have shape {}, but the selection has {}", name,
                               in.shape.to_string(), selection.shape().to_string());
    }
    ArrayView full = in;
    full.shape = selection.full_shape();
    full.strides = Strides();
    int kept = 0;
    for (const Selection::Axis& axis : selection.axes()) full.strides.push_back(axis.dropped ? 0 : in.strides[kept++]);
    return full;
}

}  // namespace

ArrayField Array::field(std::string_view name) const {
    return {*this, name};
}

ArrayField::ArrayField(const Array& array, std::string_view name)
    : array_(array), field_(name), source_(field_source(std::make_unique<Array>(array), name)) {}

NDArray ArrayField::read(SelectionText selection, const IoOptions& io) const {
    return read_selection(*source_, parse_selection(selection, *this), io);
}

void ArrayField::read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
    source_->read_into(region, out, io);
}

void ArrayField::write(const Selection& selection, const ArrayView& in, const IoOptions& io) {
    if (!in.dtype.equal_but_order(dtype())) {
        throw invalid_argument("{}: expected elements of {}, found {}", name(), dtype().to_string(),
                               in.dtype.to_string());
    }
    const ArrayView full = with_all_axes(in, selection, name());
    const int rank = array_.shape().rank();
    const auto change = [&](const Region& place, const MutableArrayView& structures) {
        MutableArrayView to = field_view(structures, field_);
        Region from = place;
        for (int d = rank; d < selection.rank(); ++d) {
            const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
            to.data += axis.start * to.strides[d];
            to.strides[d] *= axis.step;
            to.shape[d] = axis.count;
            from.start.push_back(0);
            from.extent.push_back(axis.count);
        }
        copy_elements(full.part(from), to);
    };
    array_.update(of_structures(selection, rank), change, io);
}

void ArrayField::write(SelectionText selection, const ArrayView& in, const IoOptions& io) {
    array_.refresh();
    write(parse_selection(selection, *this), in, io);
}

void ArrayField::require_direct(const Selection& selection) const {
    if (element_count(selection.shape()) > 0) array_.require_direct(of_structures(selection, array_.shape().rank()));
}

}  // namespace tessera
