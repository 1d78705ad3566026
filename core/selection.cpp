#include <tessera/selection.h>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <optional>

namespace tessera {

Selection Selection::all(const Shape& shape) {
    Selection s{std::vector<Axis>{}};
    for (const std::int64_t n : shape) s.axes_.push_back({.start = 0, .step = 1, .count = n});
    return s;
}

Selection::Selection(const Region& region, const Shape& shape) {
    require_inside(region, shape);
    for (int d = 0; d < shape.rank(); ++d)
        axes_.push_back({.start = region.start[d], .step = 1, .count = region.extent[d]});
}

Shape Selection::shape() const {
    Shape s;
    for (const Axis& a : axes_) {
        if (!a.dropped) s.push_back(a.count);
    }
    return s;
}

Shape Selection::full_shape() const {
    Shape s;
    for (const Axis& a : axes_) s.push_back(a.count);
    return s;
}

Region Selection::bounds() const {
    Region r;
    for (const Axis& a : axes_) {
        const std::int64_t last = a.count == 0 ? a.start : a.start + (a.count - 1) * a.step;
        r.start.push_back(std::min(a.start, last));
        r.extent.push_back(a.count == 0 ? 0 : std::max(a.start, last) - std::min(a.start, last) + 1);
    }
    return r;
}

bool Selection::is_region() const {
    return std::all_of(axes_.begin(), axes_.end(), [](const Axis& a) { return a.step == 1; });
}

std::string Selection::to_string() const {
    std::string s;
    for (const Axis& a : axes_) {
        if (!s.empty()) s += ", ";
        if (a.dropped) {
            s += std::to_string(a.start);
        } else if (a.step > 0) {
            s += fmt::format("{}:{}", a.start, a.count == 0 ? a.start : a.start + (a.count - 1) * a.step + 1);
            if (a.step != 1) s += fmt::format(":{}", a.step);
        } else {
            const std::int64_t stop = a.start + (a.count - 1) * a.step - 1;
            s += stop < 0 ? fmt::format("{}::{}", a.start, a.step) : fmt::format("{}:{}:{}", a.start, stop, a.step);
        }
    }
    return s;
}

Selection Selection::part(const Region& box) const {
    std::vector<Axis> axes = axes_;
    for (int d = 0; d < box.rank(); ++d) {
        Axis& axis = axes[static_cast<std::size_t>(d)];
        axis.start += box.start[d] * axis.step;
        axis.count = box.extent[d];
    }
    return Selection(std::move(axes));
}

}  // namespace tessera
