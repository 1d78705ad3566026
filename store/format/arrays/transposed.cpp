#include <tessera/transposed.h>

#include <algorithm>
#include <utility>

#include <tessera/coordinates.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/value.h>

#include "dialects.h"

namespace tessera {

namespace {

class TransposedSource final : public ArraySource {
public:
    TransposedSource(std::unique_ptr<ArraySource> array, const DimensionNames& order)
        : array_(std::move(array)), info_(array_->info()), attributes_(attributes_as_meant(*array_)) {
        const DimensionNames names = dimension_names_of(*array_);
        for (const auto& name : order) {
            const auto at = std::ranges::find(names, name) - names.begin();
            of_.push_back(at < std::ssize(names) ? static_cast<int>(at) : none);
        }
        info_.shape = in_order(info_.shape);
        info_.chunks = in_order(info_.chunks);
        info_.shards = in_order(info_.shards);
        attributes_.set(dimensions_attribute, dimension_names_json(order));
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    [[nodiscard]] std::optional<std::vector<std::byte>> fill_bytes() const override { return array_->fill_bytes(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        const int rank = array_->info().shape.rank();
        Region stored{Index::filled(rank, 0), Shape::filled(rank, 0)};
        MutableArrayView view = out;
        view.shape = Shape::filled(rank, 0);
        view.strides = Strides::filled(rank, 0);
        for (int d = 0; d < region.start.rank(); ++d) {
            const int to = of_[static_cast<std::size_t>(d)];
            if (to == none) continue;
            stored.start[to] = region.start[d];
            stored.extent[to] = region.extent[d];
            view.shape[to] = out.shape[d];
            view.strides[to] = out.strides[d];
        }
        array_->read_into(stored, view, io);
    }

private:
    [[nodiscard]] Shape in_order(const Shape& shape) const {
        Shape made;
        if (shape.rank() != array_->info().shape.rank() || shape.empty()) return made;
        for (const int of : of_) made.push_back(of == none ? 1 : shape[of]);
        return made;
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo info_;
    Value attributes_;
    static constexpr int none = -1;
    std::vector<int> of_;  ///< of each dimension, that of the array; none: it has the length 1
};

}  // namespace

bool reorders(const ArraySource& array, const DimensionNames& order) {
    if (order.empty()) return false;  // names are not asked for in vain
    const DimensionNames names = dimension_names_of(array);
    return names != order && names.size() == order.size() && std::ranges::is_permutation(names, order) &&
           std::ranges::all_of(names, [](const auto& name) { return name.has_value(); });
}

std::unique_ptr<ArraySource> transposed_source(std::unique_ptr<ArraySource> array, const DimensionNames& order) {
    return std::make_unique<TransposedSource>(std::move(array), order);
}

}  // namespace tessera
