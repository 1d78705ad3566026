// Writes an expression's value to the elements of an existing array.
#include <tessera/calc.h>

#include <memory>
#include <utility>

#include <tessera/copy.h>
#include <tessera/edit.h>
#include <tessera/meaning.h>
#include <tessera/shared_source.h>

#include "calc_program.h"

namespace tessera {

namespace {

/// A selection of an array as a sink.
class SelectionSink final : public ArraySink {
public:
    SelectionSink(Array& array, Selection selection) : array_(array), selection_(std::move(selection)) {
        const ArrayInfo all = array.info();
        info_ = {.dtype = all.dtype, .shape = selection_.shape(), .chunks = {}};
        if (!selection_.is_region() || selection_.shape().rank() != all.shape.rank()) return;
        info_.chunks = all.chunks;  // blocks end where chunks do
        for (int d = 0; d < all.chunks.rank(); ++d) {
            info_.chunk_offset.push_back(selection_.bounds().start[d] % all.chunks[d]);
        }
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        Region box;  // including dropped dimensions
        int kept = 0;
        for (const Selection::Axis& axis : selection_.axes()) {
            box.start.push_back(axis.dropped ? 0 : region.start[kept]);
            box.extent.push_back(axis.dropped ? 1 : region.extent[kept]);
            kept += axis.dropped ? 0 : 1;
        }
        array_.write(selection_.part(box), in, io);
    }
    void finish() override { array_.finish(); }
    [[nodiscard]] const std::string& name() const override { return array_.name(); }

private:
    Array& array_;
    Selection selection_;
    ArrayInfo info_;
};

}  // namespace

std::int64_t calc_in_place(Array& array, std::string_view expression, std::vector<CalcOperand> operands,
                           const InPlaceOptions& options) {
    std::unique_ptr<ArraySource> source = calc_source_into(expression, std::move(operands), borrowed_source(array));
    const Meaning meaning = meaning_of(array);
    if (options.decoded && meaning.is_encoded(array.dtype())) {
        source = encoded_source(std::move(source), meaning, Value::object());
    } else if (!(source->info().dtype == array.dtype())) {
        source = std::make_unique<CastSource>(std::move(source), array.dtype(), options.cast);
    }
    const Selection selection = options.selection.value_or(Selection::all(array.shape()));
    Edit edit(array, {.keep_old = options.keep_old});
    edit.array().require_direct(selection);
    SelectionSink sink(edit.array(), selection);
    copy_array(*source, sink, {.io = options.io, .selection = selection});
    return edit.commit();
}

}  // namespace tessera
