#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/measure.h>
#include <tessera/ndarray.h>
#include <tessera/reduce.h>

#include <memory>
#include <string>
#include <utility>

#include "picked_part.h"

namespace tessera {

namespace {

/// A part of an array, or all of it, which the caller keeps alive.
class PartSource final : public ArraySource {
public:
    PartSource(const ArraySource& source, const std::optional<Selection>& selection)
        : source_(source), selection_(selection), info_(source.info()) {
        if (!selection_) return;
        // Blocks that end where chunks end are decoded once; elsewhere chunks are no guide.
        Shape chunks;
        for (int d = 0; d < selection_->rank() && !info_.chunks.empty() && selection_->is_region(); ++d) {
            if (!selection_->axes()[static_cast<std::size_t>(d)].dropped) chunks.push_back(info_.chunks[d]);
        }
        info_.chunks = chunks;
        info_.shards = Shape();
        info_.shape = selection_->shape();
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        if (!selection_) return source_.read_into(region, out, io);
        Region full;
        int kept = 0;
        for (const Selection::Axis& axis : selection_->axes()) {
            full.start.push_back(axis.dropped ? 0 : region.start[kept]);
            full.extent.push_back(axis.dropped ? 1 : region.extent[kept]);
            if (!axis.dropped) ++kept;
        }
        const Selection part = selection_->part(full);
        read_selection_into(source_, part, with_dropped(part, out, name()), io);
    }
    [[nodiscard]] const std::string& name() const override { return source_.name(); }

private:
    const ArraySource& source_;
    const std::optional<Selection>& selection_;
    ArrayInfo info_;
};

}  // namespace

NDArray statistic(const ArraySource& source, std::string_view word, std::optional<int> axis, const IoOptions& io,
                  const std::optional<Selection>& selection) {
    const PartSource part(source, selection);
    const ArrayInfo info = part.info();
    ReduceOptions options{.with = parse_reduction(word), .percent = parse_percent(word), .skip_nan = true};
    if (axis) {
        const int kept = *axis < 0 ? *axis + info.shape.rank() : *axis;
        if (kept < 0 || kept >= info.shape.rank()) {
            throw out_of_bounds("axis {}: the array has {} dimensions", *axis, info.shape.rank());
        }
        for (int d = 0; d < info.shape.rank(); ++d) {
            if (d != kept) options.axes.push_back(d);
        }
    }
    // What a reduction goes along: if nothing is left for that, a dimension of one element.
    const bool none = info.shape.empty() || (axis && options.axes.empty());
    if (none) options.axes = {0};
    auto whole = std::make_unique<PartSource>(source, selection);
    const auto reduced =
        in_context([&] { return source.name(); },
                   [&] {
                       return reduce_source(
                           none ? with_new_axis(part, 0) : std::unique_ptr<ArraySource>(std::move(whole)), options);
                   });
    NDArray made(reduced->info().dtype, reduced->info().shape);
    reduced->read_into(Region::whole(made.shape()), made.view(), io);
    return made;
}

}  // namespace tessera
