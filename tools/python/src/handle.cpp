#include "handle.h"

#include <tessera/boxes.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>

#include "convert.h"

namespace tessera::python {

ArrayHandle::ArrayHandle(std::unique_ptr<ArrayParts> parts, Reopen reopen)
    : parts_(std::move(parts)),
      reopen_(std::move(reopen)),
      dtype_(parts_->readable().info().dtype),
      numpy_dtype_(dtype_to_numpy(dtype_)),
      items_(items_of(parts_->readable())) {}

std::shared_ptr<ArrayParts> ArrayHandle::parts() {
    if (parts_.inherited()) {
        if (!reopen_) {
            throw unsupported(
                "a batch of edits or a cache belongs to the process that began it, and this is a fork of "
                "that; begin one here");
        }
        parts_ = Held<ArrayParts>(Work({}, Length::brief).run([&](const IoOptions&) { return reopen_(); }));
    }
    if (!parts_.usable()) {
        throw invalid_argument(reopen_ ? "the array is closed; open it again"
                                       : "the batch of edits or the cache is closed");
    }
    return parts_.share();
}

void ArrayHandle::refresh() {
    const auto present = this->parts();
    std::unique_ptr<ArrayParts> anew;
    Work({}, Length::brief).run([&](const IoOptions&) {
        try {
            if (present->cached != nullptr) return present->cached->refresh();
            if (present->array) present->array->refresh();
        } catch (const Error& e) {
            const bool gone = e.code() == ErrorCode::not_found || e.code() == ErrorCode::invalid_argument;
            if (!gone || !reopen_) throw;
            anew = reopen_();
        }
    });
    if (!anew) return;
    dtype_ = anew->readable().info().dtype;
    numpy_dtype_ = dtype_to_numpy(dtype_);
    items_ = items_of(anew->readable());
    parts_ = Held<ArrayParts>(std::move(anew));
}

Array ArrayHandle::array() {
    const auto all = parts();
    if (!all->array) {
        throw unsupported(all->readable().name() + ": only an array of chunks can do this, and this is an array file");
    }
    return *all->array;
}

DType ArrayHandle::dtype_of(const py::array& array) const {
    if (array.dtype().equal(numpy_dtype_)) return dtype_;
    return dtype_from_numpy(array.dtype());
}

namespace {

/// The result's memory with the selection's own dimensions.
template <class View>
View unfolded(const Picked& picked, View v) {
    v.strides = picked.strides(v.strides);
    v.shape = picked.selection.full_shape();
    return v;
}

/// The selected part of memory that holds a whole array.
template <class View>
View picked_view(const Selection& selection, View v) {
    for (int d = 0; d < selection.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        v.data += axis.start * v.strides[d];
        v.strides[d] *= axis.step;
    }
    v.shape = selection.full_shape();
    return v;
}

void read_parts(const ArrayParts& parts, const Selection& selection, const MutableArrayView& out, const IoOptions& io) {
    if (parts.mapped) {
        copy_elements(picked_view(selection, parts.mapped->view()), out);
    } else if (parts.array) {
        parts.array->read_into(selection, out, io);
    } else if (selection.is_region()) {
        parts.source->read_into(selection.bounds(), out, io);
    } else {
        read_selection_into(*parts.source, selection, out, io);
    }
}

void write_parts(ArrayParts& parts, const Selection& selection, const ArrayView& in, const IoOptions& io) {
    if (parts.mapped) {
        copy_elements(in, picked_view(selection, parts.mapped->mutable_view()));
    } else if (parts.cached != nullptr) {
        for_each_box(selection, in,
                     [&](const Region& region, const ArrayView& part) { parts.cached->write(region, part, io); });
    } else {
        parts.array->write(selection, in, io);
    }
}

}  // namespace

void ArrayHandle::read(const Picked& picked, const py::array& out, const WorkOptions& options) {
    const auto held = parts();
    const ArrayParts& from = *held;
    Work work(options, length_of(picked.shape, dtype_));
    if (dtype_.is_variable()) {
        const NDArray slots = work.run([&](const IoOptions& io) {
            NDArray read(dtype_, picked.selection.full_shape());
            read_parts(from, picked.selection, read, io);
            return read;
        });
        slots_to_objects(slots.view(), out, items_);
        return;
    }
    const MutableArrayView v = unfolded(picked, view_to_write(out, dtype_of(out)));
    work.run([&](const IoOptions& io) { read_parts(from, picked.selection, v, io); });
}

void ArrayHandle::write(const Picked& picked, const py::array& values, const WorkOptions& options) {
    const auto held = parts();
    ArrayParts& to = *held;
    if (!to.mapped && to.cached == nullptr) static_cast<void>(array());
    Work work(options, length_of(picked.shape, dtype_));
    if (dtype_.is_variable()) {
        const NDArray slots = objects_to_slots(values, dtype_, items_);
        ArrayView v = slots.view();
        v.shape = picked.selection.full_shape();
        v.strides = contiguous_strides(v.shape, dtype_.size());
        work.run([&](const IoOptions& io) { write_parts(to, picked.selection, v, io); });
        return;
    }
    const ArrayView v = unfolded(picked, view_to_read(values, dtype_of(values)));
    work.run([&](const IoOptions& io) { write_parts(to, picked.selection, v, io); });
}

}  // namespace tessera::python
