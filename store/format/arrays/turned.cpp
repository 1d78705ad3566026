#include <tessera/turned.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dtype.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/packing.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

std::int64_t turns_below(long double value, long double start) {
    return static_cast<std::int64_t>(std::floor((value - start) / whole_turn));
}

/// The first index, counted on beyond the ends, whose value is not below `low`.
std::int64_t first_from(const std::vector<long double>& values, long double low) {
    const std::int64_t turns = turns_below(low, values.front());
    const auto at = std::ranges::lower_bound(values, low - turns * whole_turn);
    return turns * std::ssize(values) + (at - values.begin());
}

/// Reads the pieces of each region, and adds turns to longitudes.
class TurnedSource final : public ArraySource {
public:
    TurnedSource(std::unique_ptr<ArraySource> array, const Turn& turn, const std::string& name, bool longitudes)
        : array_(std::move(array)), turn_(turn), info_(array_->info()), attributes_(array_->attribute_values()) {
        info_.shards = Shape();
        if (longitudes) {
            const Packing packing = packing_of(attributes_).value_or(Packing());
            added_ = packing.scaled ? whole_turn / packing.scale : whole_turn;
            widen_ranges();
        }
        move_place(name);
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    [[nodiscard]] std::optional<std::vector<std::byte>> fill_bytes() const override { return array_->fill_bytes(); }
    [[nodiscard]] const ArraySource* model() const override { return array_.get(); }
    [[nodiscard]] const Turn& turn() const { return turn_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const int d = turn_.dimension;
        for (std::int64_t done = 0; done < region.extent[d];) {
            const std::int64_t at = region.start[d] + done;
            Region part = region;
            part.start[d] = turn_.stored(at);
            part.extent[d] = std::min(region.extent[d] - done, turn_.length - part.start[d]);
            Region to(Index::filled(region.rank(), 0), part.extent);
            to.start[d] = done;
            read_piece(part, static_cast<double>(turn_.turns(at)) * added_, out.part(to), io);
            done += part.extent[d];
        }
    }

private:
    void read_piece(const Region& part, double more, const MutableArrayView& out, const IoOptions& io) const {
        if (more == 0) return array_->read_into(part, out, io);
        const DType dtype = native_dtype(info_.dtype);
        for_each_slice(info_, dtype.size() + 16, part, io.stop, [&](const Region& slice) {
            NDArray elements(dtype, slice.extent);
            array_->read_into(slice, elements.view(), io);
            count_on(elements, more);
            copy_elements(elements.view(), out.part(within(part, slice)));
        });
    }

    void count_on(NDArray& elements, double more) const {
        const DType& dtype = elements.dtype();
        NDArray wide(DType::of<double>(), elements.shape());
        const std::int64_t n = elements.count();
        (void)cast_packed(dtype, elements.bytes().data(), wide.dtype(), wide.bytes().data(), n, Cast::unsafe);
        for (double& value : wide.values<double>()) value += more;
        const bool real = dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
        const bool whole = real || more == std::nearbyint(more);
        const auto bad = cast_packed(wide.dtype(), wide.bytes().data(), dtype, elements.bytes().data(), n,
                                     real ? Cast::unsafe : Cast::round);
        if (whole && !bad) return;
        throw invalid_argument(
            "{}: longitudes of the range that was asked for do not fit into its elements of {}: select its two parts, "
            "one after the other",
            name(), dtype.to_string());
    }

    [[nodiscard]] Value more_by(const Value& number, std::int64_t turns) const {
        if (!number.is_number()) return number;
        const double made = number.as_double() + static_cast<double>(turns) * added_;
        const bool whole = number.is_integer() && made == std::nearbyint(made) && std::fabs(made) < 1e15;
        return whole ? Value(static_cast<std::int64_t>(made)) : Value(made);
    }

    /// What the attributes call valid takes in the longitudes that are counted on.
    void widen_ranges() {
        const std::int64_t low = std::min<std::int64_t>(turn_.turns(0), 0);
        const std::int64_t high = std::max<std::int64_t>(turn_.turns(turn_.count - 1), 0);
        if (const Value* const least = attributes_.find("valid_min"))
            attributes_.set("valid_min", more_by(*least, low));
        if (const Value* const most = attributes_.find("valid_max")) attributes_.set("valid_max", more_by(*most, high));
        for (const char* const name : {"valid_range", "actual_range"}) {
            const Value* const ends = attributes_.find(name);
            if (ends == nullptr || !ends->is_array() || ends->as_array().size() != 2) continue;
            const Value::Array made{more_by(ends->as_array()[0], low), more_by(ends->as_array()[1], high)};
            attributes_.set(name, made);
        }
    }

    void move_place(const std::string& name) {
        auto place = geo_reference_in(attributes_);
        if (!place || !place->transform || place->dimensions[1] != name) return;
        const std::int64_t rows = place->shape ? (*place->shape)[0] : 1;
        GeoReference moved = selected(*place, {0, turn_.first}, {1, 1}, {rows, turn_.length});
        if (!place->shape) moved.shape.reset();
        set_geo_reference(attributes_, moved);
    }

    std::unique_ptr<ArraySource> array_;
    Turn turn_;
    ArrayInfo info_;
    Value attributes_;
    double added_ = 0;  ///< to elements, for a turn
};

/// What stands behind the last '/' or "::" of a name.
std::string_view last_of(std::string_view name) {
    return name.substr(name.find_last_of("/:") + 1);
}

}  // namespace

std::string Turn::to_string() const {
    const std::int64_t start = stored(0);
    if (start + count <= length) return fmt::format("{}:{}", start, start + count);
    return fmt::format("{}:{} and 0:{}", start, length, start + count - length);
}

std::optional<Turn> turn_of_range(const std::vector<long double>& values, long double low, long double high) {
    if (values.empty() || !std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
    const std::int64_t n = std::ssize(values);
    // Values of float32 and packed ones are not those of another turn to the last digit.
    const long double near = whole_turn / static_cast<long double>(n) / 1000;
    if (high - low > whole_turn + near) return std::nullopt;  // all of them, however they are counted
    const std::int64_t first = first_from(values, low - near);
    const std::int64_t end = first_from(values, high + near);
    if (end <= first || (first >= 0 && end <= n)) return std::nullopt;
    const Turn turn{.first = first, .count = std::min(end - first, n), .length = n};
    return first == 0 ? std::nullopt : std::optional(turn);
}

long double in_turn(const std::vector<long double>& values, long double value) {
    if (values.empty() || !std::isfinite(value)) return value;
    const long double half = whole_turn / static_cast<long double>(std::ssize(values)) / 2;
    return value - turns_below(value, values.front() - half) * whole_turn;
}

const Turn* turn_of(const ArraySource& source) {
    for (const ArraySource* at = &source; at != nullptr;) {
        if (const auto* const turned = dynamic_cast<const TurnedSource*>(at)) return &turned->turn();
        const ArraySource* const from = at->converted_from();
        at = from != nullptr ? from : at->model();
    }
    return nullptr;
}

std::unique_ptr<ArraySource> turned_by(std::unique_ptr<ArraySource> array, const Turn& turn, const std::string& name,
                                       const std::string& bounds) {
    const Shape shape = array->info().shape;
    const std::string_view own = last_of(array->name());
    const bool longitudes =
        (shape.rank() == 1 && own == name) || (shape.rank() == 2 && shape[1] == 2 && !bounds.empty() && own == bounds);
    return std::make_unique<TurnedSource>(std::move(array), turn, name, longitudes);
}

}  // namespace tessera
