#include <tessera/calc.h>
#include <tessera/calendar.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/meaning.h>
#include <tessera/measure.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/reduce.h>
#include <tessera/slices.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// What a stored element is compared with as text, with the sign that `stored` gives it.
std::string limit_text(double limit, const DType& stored) {
    if (limit < 0 && stored.kind() == Kind::unsigned_integer)
        limit += std::ldexp(1.0, static_cast<int>(stored.size()) * 8);
    const bool whole = stored.kind() != Kind::real && stored.kind() != Kind::bfloat16;
    return whole && std::trunc(limit) == limit ? fmt::format("{:.0f}", limit) : python_float_repr(limit);
}

}  // namespace

std::optional<std::int64_t> outside_valid_range(const ArraySource& source, const IoOptions& io,
                                                const std::optional<Selection>& selection) {
    const Meaning meaning = meaning_of(source);
    const auto& [least, most] = std::pair(meaning.packing.valid_min, meaning.packing.valid_max);
    if (!least && !most) return std::nullopt;
    std::vector<std::string> either;
    if (least) either.push_back("a < " + limit_text(*least, meaning.stored));
    if (most) either.push_back("a > " + limit_text(*most, meaning.stored));
    std::string outside = fmt::format("(({}))", fmt::join(either, ") | ("));
    for (const ElementBytes& one : meaning.missing) {
        outside += fmt::format(" & (a != {})", element_to_text(meaning.stored, one.data()));
    }
    std::shared_ptr<const ArraySource> codes = std::make_unique<PartSource>(source, selection);
    if (!(meaning.stored == native_dtype(codes->info().dtype))) {
        codes =
            std::make_unique<CastSource>(std::make_unique<PartSource>(source, selection), meaning.stored, Cast::unsafe);
    }
    const NDArray sum = statistic(*calc_source(outside, {{"a", codes}}), "sum", std::nullopt, io);
    return load_number<std::int64_t>(sum.bytes().data(), 0);
}

std::vector<Statistics> with_dates(std::vector<Statistics> found, const ArraySource& source) {
    const Meaning meaning = meaning_of(source);
    if (!meaning.time || meaning.has_datetimes()) return found;
    const auto date = [&](double count) -> std::optional<std::string> {
        const auto time = meaning.time->time(count);
        return time ? std::optional(time_text(meaning.time->calendar, *time)) : std::nullopt;
    };
    for (Statistics& s : found) {
        if (s.mean) s.mean_date = date(*s.mean);
        for (auto [text, json] : {std::pair(&s.min, &s.min_json), std::pair(&s.max, &s.max_json)}) {
            const auto iso = json->is_number() ? date(json->as_double()) : std::nullopt;
            if (iso) *text = *iso;
            if (iso) *json = *iso;
        }
    }
    return found;
}

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
