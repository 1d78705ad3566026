#include <tessera/joined_meaning.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <tessera/array.h>
#include <tessera/calendar.h>
#include <tessera/coordinates.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/multiscales.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include <fmt/format.h>

namespace tessera {

namespace {

/// Another source's elements as a dtype of the same bytes; errors about values that do not fit say whose encoding it
/// is.
class EncodedAs final : public ArraySource {
public:
    EncodedAs(std::unique_ptr<ArraySource> of, const DType& dtype, std::string first)
        : of_(std::move(of)), info_(of_->info()), first_(std::move(first)) {
        info_.dtype = dtype;
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return of_->name(); }
    [[nodiscard]] Value attribute_values() const override { return of_->attribute_values(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        try {
            MutableArrayView as = out;
            const DType encoded = of_->info().dtype;
            as.dtype = encoded.size() > 1 ? encoded.with_order(out.dtype.order()) : encoded;
            of_->read_into(region, as, io);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::invalid_argument) throw;
            throw e.reworded(e.code(), fmt::format("{} (stored as {} is)", e.what(), first_));
        }
    }

private:
    std::unique_ptr<ArraySource> of_;
    ArrayInfo info_;
    std::string first_;
};

bool is_integral(const DType& dtype) {
    return dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
}

std::string text_in(const Meaning& meaning, std::string_view name) {
    const Value* value = meaning.attributes.find(name);
    return value == nullptr ? "not there" : value->dump();
}

bool same_text(const Meaning& a, const Meaning& b, std::string_view name) {
    const Value* const one = a.attributes.find(name);
    const Value* const other = b.attributes.find(name);
    return one == nullptr || other == nullptr || *one == *other;
}

bool same_packing(const Packing& a, const Packing& b) {
    return a.scale == b.scale && a.offset == b.offset;
}

/// As numbers, of which each stands once: dtypes may differ.
std::set<std::string> markers(const Meaning& meaning) {
    std::set<std::string> texts;
    for (const ElementBytes& one : meaning.missing) texts.insert(element_to_value(meaning.stored, one.data()).dump());
    return texts;
}

bool same_times(const CfTime& a, const CfTime& b) {
    return a.calendar == b.calendar && a.unit == b.unit && a.start == b.start;
}

/// Whether dates mean the same moments in both: standard and proleptic_gregorian differ before 1582 alone.
bool share_dates(const Meaning& a, const Meaning& b) {
    return a.time->calendar == b.time->calendar || (a.has_datetimes() && b.has_datetimes());
}

/// Whether counts can be exact: those of packed integers and of short floats are rounded.
bool counts_exactly(const Meaning& meaning) {
    return is_integral(meaning.stored) ? !meaning.packing.scaled : meaning.stored.size() == 8;
}

/// Whether packing what is unpacked, in another way, keeps every value that fits: codes are codes again, a whole number
/// of steps away; or a float takes them all.
bool packs_exactly(const Meaning& from, const Meaning& to) {
    if (is_integral(from.stored) && from.stored.size() == 8) return false;
    if (to.stored.kind() == Kind::real && to.stored.size() == 8) return true;
    if (!is_integral(from.stored) || !is_integral(to.stored)) return false;
    const auto is_whole = [](double number, double precision) {
        return std::abs(number - std::round(number)) <= 4 * std::numeric_limits<double>::epsilon() * precision;
    };
    const double ratio = from.packing.scale / to.packing.scale;
    const double shift = (from.packing.offset - to.packing.offset) / to.packing.scale;
    const double precision = (std::abs(from.packing.offset) + std::abs(to.packing.offset)) / std::abs(to.packing.scale);
    return std::round(ratio) != 0 && is_whole(ratio, std::abs(ratio)) && is_whole(shift, precision);
}

/// By its own attributes, or by those of the variable that is its grid mapping.
std::optional<GeoReference> place_of(const ArraySource& source) {
    const Value attributes = source.attribute_values();
    if (auto own = geo_reference_in(attributes)) return own;
    const std::string name = grid_mapping_in(attributes);
    const auto mapping = name.empty() ? nullptr : array_beside(source, name);
    if (mapping == nullptr) return std::nullopt;
    Value said = mapping->attribute_values();
    GeoReference place;
    if (const std::vector<double> n = geo_transform_in(said); !n.empty()) {
        place.transform = std::array{n[1], n[2], n[0], n[4], n[5], n[3]};
    }
    const DimensionNames names = dimension_names_of(source);
    for (std::size_t d = 0; d < 2 && names.size() >= 2; ++d) {
        place.dimensions[d] = names[names.size() - 2 + d].value_or(place.dimensions[d]);
    }
    for (const std::string_view other : {geo_transform_attribute, std::string_view("long_name")}) said.erase(other);
    const Value* const text = said.find("crs_wkt");
    place.crs.set("proj:wkt2", text != nullptr && text->is_string() ? *text : Value(said.dump()));
    return place;
}

}  // namespace

JoinedMeaning::JoinedMeaning(const ArraySource& first, Advice way_out)
    : name_(first.name()),
      info_(first.info()),
      meaning_(meaning_of(first)),
      names_(dimension_names_of(first)),
      place_(place_of(first)),
      way_out_(std::move(way_out)) {}

void JoinedMeaning::refuse(const ArraySource& part, std::string_view what, const std::string& here,
                           const std::string& there, bool has_way_out) const {
    Error error = invalid_argument("{}: its {} is {}, but that of {} is {}: joined, the values would mean others",
                                   part.name(), what, here, name_, there);
    throw has_way_out ? error.advising(way_out_.action, way_out_.effect, way_out_.value) : error;
}

void JoinedMeaning::refuse_attribute(const ArraySource& part, const Meaning& own, std::string_view name,
                                     bool has_way_out) const {
    refuse(part, fmt::format("attribute {}", name), text_in(own, name), text_in(meaning_, name), has_way_out);
}

std::optional<Meaning> JoinedMeaning::encoding_for(const ArraySource& part, const Meaning& own) const {
    const bool codes = as_array(part) == nullptr && part.attribute_values().as_object().empty();
    if (codes || !is_number(part.info().dtype) || !is_number(info_.dtype)) {
        if (!same_text(own, meaning_, "_Encoding")) refuse_attribute(part, own, "_Encoding");
        return std::nullopt;
    }
    const bool times = own.time && meaning_.time;
    if (times ? !share_dates(own, meaning_) : !same_text(own, meaning_, "calendar")) {
        refuse_attribute(part, own, "calendar");
    }
    const bool one_counts = own.time.has_value() != meaning_.time.has_value();
    if (!times && (one_counts || !same_text(own, meaning_, "units"))) refuse_attribute(part, own, "units");

    const DType dtype = native_dtype(part.info().dtype);
    const bool counted = !times || same_times(*own.time, *meaning_.time);
    // Where dtypes differ, they are converted afterwards; but a double takes what is packed, and counts are exact
    // anyway.
    const bool to_double = meaning_.stored == DType::of<double>() && own.packing.scaled;
    const bool as_first = to_double || !counted || dtype == native_dtype(info_.dtype);
    Meaning to = as_first ? meaning_ : meaning_by(dtype, meaning_.attributes);
    const bool packed = same_packing(own.packing, to.packing);
    if (!packed && !packs_exactly(own, to)) {
        const bool offset = own.packing.scale == to.packing.scale;
        refuse_attribute(part, own, offset ? "add_offset" : "scale_factor", true);
    }
    if (!counted && !(counts_exactly(to) && packed)) refuse_attribute(part, own, "units", true);
    if (packed && counted && own.stored == to.stored && markers(own) == markers(to)) return std::nullopt;
    const bool loses_digits = own.packing.scaled && is_integral(own.stored) && own.stored.size() == 8;
    if (loses_digits || to.packing.scale == 0) refuse_attribute(part, own, fill_attribute, true);
    return to;
}

std::unique_ptr<ArraySource> JoinedMeaning::joined(std::unique_ptr<ArraySource> part) const {
    Meaning own = meaning_of(*part);
    const std::optional<Meaning> to = encoding_for(*part, own);
    if (!to) return part;
    const DType dtype = native_dtype(to->stored == meaning_.stored ? info_.dtype : part->info().dtype);
    const bool dates = own.time && !same_times(*own.time, *to->time);
    return std::make_unique<EncodedAs>(
        encoded_source(dates ? moments_source(std::move(part), to->time->calendar) : decoded_source(std::move(part)),
                       *to, to->attributes),
        dtype, name_);
}

void JoinedMeaning::require_same(const ArraySource& part, int axis, std::int64_t begin) const {
    const Meaning own = meaning_of(part);
    require_place(part, axis, begin);
    const std::optional<Meaning> to = encoding_for(part, own);
    if (!to) return;
    for (const std::string_view name : {"units", "calendar", "scale_factor", "add_offset", "_Unsigned", "_FillValue"}) {
        const Value* const here = own.attributes.find(name);
        const Value* const there = to->attributes.find(name);
        if (here == nullptr && there == nullptr) continue;
        if (here == nullptr || there == nullptr || !(*here == *there)) refuse_attribute(part, own, name, true);
    }
    refuse_attribute(part, own, "missing_value", true);
}

void JoinedMeaning::require_place(const ArraySource& part, int axis, std::int64_t begin) const {
    if (!place_) return;
    const auto own = place_of(part);
    if (!own) return;
    const Value* const here = own->crs.find("proj:code");
    const Value* const there = place_->crs.find("proj:code");
    const bool coded = here != nullptr && there != nullptr;
    const bool known = !own->crs.as_object().empty() && !place_->crs.as_object().empty();
    if (known && !(coded ? *here == *there : own->crs == place_->crs)) {
        refuse(part, "coordinate reference system", own->crs_name(), place_->crs_name());
    }
    if (!own->transform || !place_->transform) return;
    const auto [y, x] = geo_dimensions(*place_, names_, info_.shape.rank());
    if (y < 0) return;
    // The corners of the part, by both.
    const auto corner = [](const GeoReference& of, double row, double column) {
        const auto& [a, b, c, d, e, f] = *of.transform;
        if (of.nodes) row -= 0.5, column -= 0.5;
        return std::array{a * column + b * row + c, d * column + e * row + f};
    };
    const double down = axis == y ? static_cast<double>(begin) : 0, right = axis == x ? static_cast<double>(begin) : 0;
    const auto& [a, b, c, d, e, f] = *place_->transform;
    const double near = 1e-3 * std::max({std::abs(a), std::abs(b), std::abs(d), std::abs(e)});
    for (const bool far : {false, true}) {
        const double row = far ? static_cast<double>(info_.shape[y]) : 0;
        const double column = far ? static_cast<double>(info_.shape[x]) : 0;
        const auto found = corner(*own, row, column), expected = corner(*place_, row + down, column + right);
        if (std::abs(found[0] - expected[0]) <= near && std::abs(found[1] - expected[1]) <= near) continue;
        throw invalid_argument(
            "{}: its georeference has its row {} and column {} at {}, {}, but joined to {} they would lie at {}, {}",
            part.name(), row, column, found[0], found[1], name_, expected[0], expected[1]);
    }
}

}  // namespace tessera
