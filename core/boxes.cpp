#include <tessera/boxes.h>

#include <utility>
#include <vector>

namespace tessera {

void for_each_box(const Selection& selection, const ArrayView& in,
                  const std::function<void(const Region& region, const ArrayView& elements)>& write) {
    for (int d = 0; d < selection.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        if (axis.step == 1) continue;
        for (std::int64_t i = 0; i < axis.count; ++i) {
            std::vector<Selection::Axis> axes = selection.axes();
            axes[static_cast<std::size_t>(d)] = {.start = axis.start + i * axis.step, .step = 1, .count = 1};
            ArrayView row = in;
            row.data += i * in.strides[d];
            row.shape[d] = 1;
            for_each_box(Selection(std::move(axes)), row, write);
        }
        return;
    }
    write(selection.bounds(), in);
}

}  // namespace tessera
