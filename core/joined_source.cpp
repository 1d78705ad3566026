#include <tessera/derived_source.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>

namespace tessera {

namespace {

/// `lengths` with one more at `axis`.
template <class Lengths>
Lengths inserted(const Lengths& lengths, int axis, std::int64_t length) {
    Lengths more;
    for (int d = 0; d < lengths.rank(); ++d) {
        if (d == axis) more.push_back(length);
        more.push_back(lengths[d]);
    }
    if (axis == lengths.rank()) more.push_back(length);
    return more;
}

template <class Lengths>
Lengths without(const Lengths& lengths, int axis) {
    Lengths less;
    for (int d = 0; d < lengths.rank(); ++d) {
        if (d != axis) less.push_back(lengths[d]);
    }
    return less;
}

Region without(const Region& region, int axis) {
    return {without(region.start, axis), without(region.extent, axis)};
}

/// The view without `axis`, which has length 1.
MutableArrayView without(MutableArrayView view, int axis) {
    view.shape = without(view.shape, axis);
    view.strides = without(view.strides, axis);
    return view;
}

/// The info of an array with an additional axis of this length.
ArrayInfo with_axis(ArrayInfo info, int axis, std::int64_t length) {
    const bool chunked = info.chunks.rank() == info.shape.rank() && !info.shape.empty();
    info.shape = inserted(info.shape, axis, length);
    info.chunks = chunked ? inserted(info.chunks, axis, 1) : Shape();
    info.shards = Shape();
    info.chunk_offset = Index();
    return info;
}

class NewAxisSource final : public ArraySource {
public:
    NewAxisSource(const ArraySource& source, int axis) : source_(source), axis_(axis) {}
    [[nodiscard]] ArrayInfo info() const override { return with_axis(source_.info(), axis_, 1); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info().shape);
        if (!region.empty()) source_.read_into(without(region, axis_), without(out, axis_), io);
    }
    [[nodiscard]] const std::string& name() const override { return source_.name(); }

private:
    const ArraySource& source_;
    int axis_;
};

class JoinedSource final : public ArraySource {
public:
    using Open = std::function<std::unique_ptr<ArraySource>(const std::string&)>;

    JoinedSource(std::vector<std::string> names, Open open, const JoinOptions& options)
        : names_(std::move(names)), open_(std::move(open)), options_(options) {
        if (names_.empty()) throw invalid_argument("there are no arrays to join");
        const auto first = part(0);
        first_ = first->info();
        const int axes = first_.shape.rank() + (options_.new_axis ? 1 : 0);
        if (options_.axis < 0) options_.axis += axes;
        if (options_.axis < 0 || options_.axis >= axes) {
            throw invalid_argument("no axis {} among {} dimensions ({})", options.axis, axes, first->name());
        }
        name_ = names_.size() == 1 ? names_.front() : fmt::format("{} and {} more", names_.front(), names_.size() - 1);
        ends_.reserve(names_.size());
        std::int64_t length = 0;
        bool together = true;  // whether chunks of the whole are chunks of the parts
        for (std::size_t i = 0; i < names_.size(); ++i) {
            const ArrayInfo info = part(i)->info();
            require_fit(info, names_[i]);
            if (info.access != Access::any) first_.access = Access::sequential;
            if (info.order != first_.order) mixed_order_ = true;
            const std::int64_t here = length_of(info);
            together = together && info.chunks == first_.chunks && (options_.new_axis || length % chunk_length() == 0);
            length = checked_add(length, here, "the length along the axis");
            ends_.push_back(length);
        }
        settle(length, together);
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const int axis = options_.axis;
        const std::int64_t end = region.start[axis] + region.extent[axis];
        for (std::int64_t at = region.start[axis]; at < end;) {
            const auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, at) - ends_.begin());
            const std::int64_t begin = i == 0 ? 0 : ends_[i - 1];
            const std::int64_t until = std::min(end, ends_[i]);
            Region here = region;
            here.start[axis] = at - begin;
            here.extent[axis] = until - at;
            Region place = Region::whole(region.extent);
            place.start[axis] = at - region.start[axis];
            place.extent[axis] = until - at;
            const auto source = part(i);
            if (options_.new_axis) {
                source->read_into(without(here, axis), without(out.part(place), axis), io);
            } else {
                source->read_into(here, out.part(place), io);
            }
            at = until;
        }
    }

    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] std::int64_t length_of(const ArrayInfo& info) const {
        return options_.new_axis ? 1 : info.shape[options_.axis];
    }
    [[nodiscard]] bool chunked() const { return !first_.chunks.empty() && first_.chunks.rank() == first_.shape.rank(); }
    [[nodiscard]] std::int64_t chunk_length() const {
        return chunked() ? std::max<std::int64_t>(1, first_.chunks[options_.axis]) : 1;
    }

    void require_fit(const ArrayInfo& info, const std::string& name) const {
        if (!info.dtype.equal_but_order(first_.dtype)) {
            throw invalid_argument("{} holds {}, but {} holds {}; values are not converted", name,
                                   info.dtype.to_string(), names_.front(), first_.dtype.to_string());
        }
        bool fits = info.shape.rank() == first_.shape.rank();
        for (int d = 0; fits && d < info.shape.rank(); ++d) {
            fits = info.shape[d] == first_.shape[d] || (!options_.new_axis && d == options_.axis);
        }
        if (fits) return;
        throw invalid_argument(
            "{} has the shape {}, but {} has {}{}", name, info.shape.to_string(), names_.front(),
            first_.shape.to_string(),
            options_.new_axis ? "" : fmt::format("; every length but that of axis {} must agree", options_.axis));
    }

    void settle(std::int64_t length, bool together) {
        if (options_.new_axis) {
            if (first_.shape.rank() == max_rank) throw unsupported("more than {} dimensions", max_rank);
            info_ = with_axis(first_, options_.axis, length);
        } else {
            info_ = first_;
            info_.shape[options_.axis] = length;
            info_.shards = Shape();
        }
        (void)byte_count(info_.shape, info_.dtype.size());
        if (!together) info_.chunks = Shape();
        if (mixed_order_) info_.order = Order::C;
    }

    /// One of the arrays; opens it if it is not open.
    std::shared_ptr<const ArraySource> part(std::size_t i) const {
        const std::lock_guard lock(mutex_);
        const auto there = std::ranges::find(opened_, i, &Opened::first);
        if (there != opened_.end()) {
            opened_.splice(opened_.begin(), opened_, there);
            return there->second;
        }
        std::shared_ptr<const ArraySource> source = open_(names_[i]);
        if (i < ends_.size()) {
            const ArrayInfo info = source->info();
            const std::int64_t length = ends_[i] - (i == 0 ? 0 : ends_[i - 1]);
            Shape shape = first_.shape;
            if (!options_.new_axis) shape[options_.axis] = length;
            if (!(info.shape == shape) || !info.dtype.equal_but_order(first_.dtype)) {
                throw corrupt("{} was changed while it was read", names_[i]);
            }
        }
        opened_.emplace_front(i, source);
        if (std::ssize(opened_) > std::max(1, options_.most_open)) opened_.pop_back();
        return source;
    }

    using Opened = std::pair<std::size_t, std::shared_ptr<const ArraySource>>;

    std::vector<std::string> names_;
    Open open_;
    JoinOptions options_;
    std::string name_;
    ArrayInfo first_, info_;
    bool mixed_order_ = false;
    std::vector<std::int64_t> ends_;  ///< of each array along the axis
    mutable std::mutex mutex_;
    mutable std::list<Opened> opened_;  ///< most recently used first
};

class SplitSink final : public ArraySink {
public:
    SplitSink(std::vector<std::unique_ptr<ArraySink>> sinks, int axis)
        : sinks_(std::move(sinks)), axis_(axis), info_(with_axis(sinks_.at(0)->info(), axis, std::ssize(sinks_))) {}
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        require_inside(region, info_.shape);
        Region step = Region::whole(region.extent);
        step.extent[axis_] = 1;
        for (std::int64_t i = 0; i < region.extent[axis_]; ++i) {
            step.start[axis_] = i;
            ArrayView part = in.part(step);
            part.shape = without(part.shape, axis_);
            part.strides = without(part.strides, axis_);
            sinks_[static_cast<std::size_t>(region.start[axis_] + i)]->write(without(region, axis_), part, io);
        }
    }
    void finish() override {
        for (const auto& sink : sinks_) sink->finish();
    }
    [[nodiscard]] const std::string& name() const override { return sinks_.front()->name(); }

private:
    std::vector<std::unique_ptr<ArraySink>> sinks_;
    int axis_;
    ArrayInfo info_;
};

}  // namespace

std::unique_ptr<ArraySink> split_sink(std::vector<std::unique_ptr<ArraySink>> sinks, int axis) {
    return std::make_unique<SplitSink>(std::move(sinks), axis);
}

std::unique_ptr<ArraySource> join_sources(std::vector<std::string> names,
                                          std::function<std::unique_ptr<ArraySource>(const std::string&)> open,
                                          const JoinOptions& options) {
    return std::make_unique<JoinedSource>(std::move(names), std::move(open), options);
}

std::unique_ptr<ArraySource> with_new_axis(const ArraySource& source, int axis) {
    return std::make_unique<NewAxisSource>(source, axis);
}

}  // namespace tessera
