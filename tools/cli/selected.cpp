#include "selected.h"

#include <tessera/array_io.h>
#include <tessera/dimensions.h>
#include <utility>

#include "blocks.h"
#include "options.h"

namespace tessera::cli {

namespace {

class SelectedSource final : public ArraySource {
public:
    SelectedSource(std::unique_ptr<ArraySource> source, Selection selection)
        : source_(std::move(source)), selection_(std::move(selection)), info_(source_->info()) {
        const Shape chunks = info_.chunks;
        const bool chunked = chunks.rank() == info_.shape.rank() && selection_.is_region();
        info_.shape = selection_.shape();
        info_.chunks = info_.shards = Shape();
        for (int d = 0; chunked && d < chunks.rank(); ++d) {
            if (!selection_.axes()[static_cast<std::size_t>(d)].dropped) info_.chunks.push_back(chunks[d]);
        }
        // A stream cannot be read backwards in memory order.
        if (!selection_.is_region() && info_.access != Access::any) info_.access = Access::sequential;
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        Region box;
        MutableArrayView full = out;
        full.shape = Shape();
        full.strides = Strides();
        int k = 0;
        for (const Selection::Axis& axis : selection_.axes()) {
            box.start.push_back(axis.dropped ? 0 : region.start[k]);
            box.extent.push_back(axis.dropped ? 1 : region.extent[k]);
            full.shape.push_back(box.extent[box.rank() - 1]);
            full.strides.push_back(axis.dropped ? 0 : out.strides[k]);
            if (!axis.dropped) ++k;
        }
        read_selection_into(*source_, selection_.part(box), full, io);
    }

    [[nodiscard]] const std::string& name() const override { return source_->name(); }

private:
    std::unique_ptr<ArraySource> source_;
    Selection selection_;
    ArrayInfo info_;
};

}  // namespace

Selection chosen_part(Session& session, const std::string& path, const std::string& text, const ArraySource& source) {
    std::string said;
    const Selection selection = about_path(path, [&] { return parse_selection(text, source, &said); });
    if (!said.empty()) session.note(path + ": " + said);
    return selection;
}

std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection) {
    return std::make_unique<SelectedSource>(std::move(source), std::move(selection));
}

}  // namespace tessera::cli
