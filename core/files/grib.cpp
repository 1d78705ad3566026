// GRIB 1 and 2 as a format of array files: read only. A helper (helper_process.h) works with ecCodes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>

#include "array_file_row.h"
#include "grib_index.h"
#include "netcdf_format.h"

namespace tessera {

extern const ArrayFileFormat grib_format;

namespace {

bool grib_recognise(ByteSpan first) {
    return starts_with(first, "GRIB") && first.size() > 7 && (first[7] == std::byte{1} || first[7] == std::byte{2});
}

// ---- the index of a file, kept as long as the file is open: each array is opened by itself

struct OpenGrib {
    std::shared_ptr<const ByteSource> file;
    std::shared_ptr<const GribIndex> index;
};

struct KeptIndex {
    std::weak_ptr<const ByteSource> file;
    std::shared_ptr<const GribIndex> index;
};

/// Never destroyed, because other threads may still read when the program ends.
std::vector<KeptIndex>& kept_indices() {
    static auto& kept = *new std::vector<KeptIndex>;
    return kept;
}

OpenGrib open_grib_file(const ArrayPath& path) {
    OpenGrib open{.file = path.bytes(), .index = nullptr};
    if (path.opened != nullptr) {
        const std::lock_guard lock(library_mutex(LibraryMutex::readers));
        auto& all = kept_indices();
        std::erase_if(all, [](const KeptIndex& kept) { return kept.file.expired(); });
        for (const KeptIndex& kept : all) {
            if (kept.file.lock() == open.file) open.index = kept.index;
        }
    }
    if (open.index != nullptr) return open;
    open.index = std::make_shared<const GribIndex>(read_grib_index(*open.file));
    if (path.opened == nullptr) return open;
    const std::lock_guard lock(library_mutex(LibraryMutex::readers));
    constexpr std::size_t most = 4;
    auto& all = kept_indices();
    if (all.size() >= most) all.erase(all.begin());
    all.push_back({open.file, open.index});
    return open;
}

// ---- members

/// What a member of a file is.
struct GribMember {
    enum class What : std::uint8_t { variable, axis, valid_time, latitude, longitude };
    const GribGroup* group = nullptr;
    std::string name;  ///< in the group
    What what = What::variable;
    const GribVariable* variable = nullptr;  ///< for coordinates: one that has them
    std::size_t axis = 0;

    [[nodiscard]] std::string path() const { return group->name.empty() ? name : group->name + "/" + name; }
};

constexpr auto time_axis = static_cast<std::size_t>(GribAxis::time),
               step_axis = static_cast<std::size_t>(GribAxis::step);

bool has_valid_time(const GribVariable& v) {
    return !v.axes[time_axis].empty() && !v.axes[step_axis].empty();
}

/// The coordinates of a group, each once, and then its variables.
void add_members(const GribGroup& group, std::vector<GribMember>& members) {
    std::set<std::string> known;
    const auto add = [&](const std::string& name, GribMember::What what, const GribVariable& v, std::size_t axis = 0) {
        if (known.insert(name).second) members.push_back({&group, name, what, &v, axis});
    };
    for (const GribVariable& v : group.variables) {
        for (std::size_t axis = 0; axis < grib_axes; ++axis) {
            if (!v.axes[axis].empty()) add(v.axis_name(axis), GribMember::What::axis, v, axis);
        }
        if (has_valid_time(v)) add("valid_time", GribMember::What::valid_time, v);
        if (!v.grid.positions || v.error) continue;
        add("latitude", GribMember::What::latitude, v);
        add("longitude", GribMember::What::longitude, v);
    }
    for (const GribVariable& v : group.variables) add(v.name, GribMember::What::variable, v);
}

std::vector<GribMember> members_of(const GribIndex& index) {
    std::vector<GribMember> members;
    for (const GribGroup& group : index.groups) add_members(group, members);
    return members;
}

GribMember find_member(const GribIndex& index, const ArrayPath& path) {
    const std::vector<GribMember> members = members_of(index);
    std::vector<std::string> names;
    for (const GribMember& member : members) names.push_back(member.path());
    const std::string name = chosen_member(path, names);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw not_found("{} has no array '{}'", path.path.string(), name);
    return members[static_cast<std::size_t>(found - names.begin())];
}

std::vector<std::string> dims_of(const GribMember& member) {
    const GribVariable& v = *member.variable;
    const auto of_axis = [&](std::size_t axis) {
        return v.axes[axis].size() > 1 ? std::vector<std::string>{v.axis_name(axis)} : std::vector<std::string>{};
    };
    switch (member.what) {
        case GribMember::What::axis:
            return of_axis(member.axis);
        case GribMember::What::valid_time: {
            std::vector<std::string> dims = of_axis(time_axis);
            for (std::string& name : of_axis(step_axis)) dims.push_back(std::move(name));
            return dims;
        }
        case GribMember::What::latitude:
            return v.grid.is_regular() ? std::vector<std::string>{"latitude"} : v.grid.dims;
        case GribMember::What::longitude:
            return v.grid.is_regular() ? std::vector<std::string>{"longitude"} : v.grid.dims;
        case GribMember::What::variable:
            break;
    }
    return v.dims();
}

ArrayInfo info_of(const GribMember& member) {
    const GribVariable& v = *member.variable;
    ArrayInfo info;
    info.dtype = DType::of<double>();
    if (member.what == GribMember::What::variable) {
        info.dtype = v.wide ? DType::of<double>() : DType::of<float>();
        info.shape = v.shape();
        const Shape grid = v.grid.shape();
        info.chunks = Shape::filled(info.shape.rank(), 1);
        for (int d = 0; d < grid.rank(); ++d) info.chunks[info.shape.rank() - grid.rank() + d] = grid[d];
        return info;
    }
    const bool is_real = member.axis == step_axis || member.axis == static_cast<std::size_t>(GribAxis::level);
    if (member.what == GribMember::What::valid_time || (member.what == GribMember::What::axis && !is_real)) {
        info.dtype = DType::of<std::int64_t>();
    }
    for (const std::string& name : dims_of(member)) {
        std::int64_t length = name == "latitude" || name == "y" ? v.grid.rows : v.grid.columns;
        for (std::size_t axis = 0; axis < grib_axes; ++axis) {
            if (v.axis_name(axis) == name) length = std::ssize(v.axes[axis]);
        }
        info.shape.push_back(length);
    }
    return info;
}

// ---- attributes

struct Text {
    const char *key, *value;
};

/// cfgrib's attributes of a coordinate; empty for a type of level that it does not know.
std::vector<Text> coordinate_texts(std::string_view name) {
    constexpr const char *units = "units", *standard = "standard_name", *about = "long_name", *positive = "positive";
    if (name == "latitude") return {{units, "degrees_north"}, {standard, "latitude"}, {about, "latitude"}};
    if (name == "longitude") return {{units, "degrees_east"}, {standard, "longitude"}, {about, "longitude"}};
    if (name == "depthBelowLand" || name == "depthBelowLandLayer") {
        return {{units, "m"}, {positive, "down"}, {about, "soil depth"}, {standard, "depth"}};
    }
    if (name == "hybrid") {
        return {{units, "1"},
                {positive, "down"},
                {about, "hybrid level"},
                {standard, "atmosphere_hybrid_sigma_pressure_coordinate"}};
    }
    if (name == "heightAboveGround") {
        return {{units, "m"}, {positive, "up"}, {about, "height above the surface"}, {standard, "height"}};
    }
    if (name == "isobaricInhPa" || name == "isobaricInPa" || name == "isobaricLayer") {
        std::vector<Text> texts{{units, name == "isobaricInhPa" ? "hPa" : "Pa"}, {positive, "down"}};
        if (name != "isobaricLayer") texts.push_back({"stored_direction", "decreasing"});
        texts.insert(texts.end(), {{standard, "air_pressure"}, {about, "pressure"}});
        return texts;
    }
    if (name == "number") {
        return {{units, "1"}, {standard, "realization"}, {about, "ensemble member numerical id"}};
    }
    if (name == "step") {
        return {{units, "hours"}, {standard, "forecast_period"}, {about, "time since forecast_reference_time"}};
    }
    if (name == "time" || name == "valid_time") {
        const bool first = name == "time";
        return {{units, "seconds since 1970-01-01T00:00:00"},
                {"calendar", "proleptic_gregorian"},
                {standard, first ? "forecast_reference_time" : "time"},
                {about, first ? "initial time of forecast" : "time"}};
    }
    return {};
}

/// Of a variable: names of coordinates that are no dimensions of it.
std::string other_coordinates(const GribMember& member) {
    const GribVariable& v = *member.variable;
    std::string names;
    const auto add = [&](const std::string& name) { names += names.empty() ? name : " " + name; };
    for (std::size_t axis = 0; axis < grib_axes; ++axis) {
        if (v.axes[axis].size() == 1) add(v.axis_name(axis));
    }
    if (v.grid.positions && !v.grid.is_regular()) {
        add("latitude");
        add("longitude");
    }
    if (has_valid_time(v)) add("valid_time");
    return names;
}

Value attributes_of(const GribMember& member, bool falls) {
    Value attributes = Value::object();
    if (member.what == GribMember::What::variable) {
        attributes = member.variable->attributes;
        const std::string coordinates = other_coordinates(member);
        if (!coordinates.empty()) attributes.set("coordinates", coordinates);
    } else {
        for (const Text& text : coordinate_texts(member.name)) attributes.set(text.key, text.value);
        if (member.what == GribMember::What::latitude && falls) attributes.set("stored_direction", "decreasing");
        if (attributes.as_object().empty()) {
            const bool level = member.axis == static_cast<std::size_t>(GribAxis::level);
            attributes.set("long_name", fmt::format("original GRIB coordinate for key: {}({})",
                                                    level ? "level" : member.name, member.name));
            attributes.set("units", "1");
        }
    }
    Value dims = Value::array();
    for (std::string& name : dims_of(member)) dims.push_back(std::move(name));
    attributes.set(netcdf_dimensions, std::move(dims));
    return attributes;
}

// ---- elements

/// A member as an array.
class GribArray : public ArraySource {
public:
    GribArray(OpenGrib open, GribMember member, const ArrayPath& path)
        : open_(std::move(open)), member_(std::move(member)), info_(info_of(member_)) {
        name_ = fmt::format("{}::{}", path.path.string(), member_.path());
    }
    [[nodiscard]] ArrayInfo info() const final { return info_; }
    [[nodiscard]] const std::string& name() const final { return name_; }
    [[nodiscard]] Value attribute_values() const override { return attributes_of(member_, false); }

protected:
    [[nodiscard]] const GribVariable& variable() const { return *member_.variable; }
    [[nodiscard]] const OpenGrib& open() const { return open_; }
    [[nodiscard]] const GribMember& member() const { return member_; }

private:
    OpenGrib open_;
    GribMember member_;
    ArrayInfo info_;
    std::string name_;
};

class GribCoordinate final : public GribArray {
public:
    GribCoordinate(OpenGrib open, GribMember member, const ArrayPath& path)
        : GribArray(std::move(open), std::move(member), path) {
        values_ = in_context([&] { return name(); }, [&] { return make(); });
    }
    [[nodiscard]] Value attribute_values() const override { return attributes_of(member(), falls()); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        in_context([&] { return name(); }, [&] { require_inside(region, values_.shape()); });
        copy_elements(values_.view().part(region), out);
    }

private:
    /// Whether the numbers become smaller along the only dimension.
    [[nodiscard]] bool falls() const {
        if (values_.shape().rank() != 1 || values_.count() < 2 || !variable().grid.is_regular()) return false;
        const auto* const numbers = reinterpret_cast<const double*>(values_.bytes().data());
        return numbers[0] > numbers[values_.count() - 1];
    }

    [[nodiscard]] NDArray make() const {
        const GribVariable& v = variable();
        switch (member().what) {
            case GribMember::What::latitude:
            case GribMember::What::longitude:
                return grib_positions(*open().file, *open().index, v, member().what == GribMember::What::latitude);
            case GribMember::What::valid_time: {
                std::vector<std::int64_t> times;
                for (const double time : v.axes[time_axis]) {
                    for (const double step : v.axes[step_axis]) {
                        constexpr double seconds = 3600;
                        times.push_back(static_cast<std::int64_t>(time + step * seconds));
                    }
                }
                return NDArray(times).reshaped(info().shape);
            }
            case GribMember::What::axis:
            case GribMember::What::variable:
                break;
        }
        const std::vector<double>& values = v.axes[member().axis];
        if (info().dtype.kind() == Kind::real) return NDArray(values).reshaped(info().shape);
        return NDArray(std::vector<std::int64_t>(values.begin(), values.end())).reshaped(info().shape);
    }

    NDArray values_;
};

/// A variable: a message is a chunk. What no message has is NaN.
class GribSource final : public GribArray {
public:
    GribSource(OpenGrib open, GribMember member, const ArrayPath& path)
        : GribArray(std::move(open), std::move(member), path), pieces_(info().shape, info().chunks) {}

    [[nodiscard]] std::optional<std::vector<std::byte>> fill_bytes() const override { return nan_bytes(); }
    [[nodiscard]] std::optional<std::vector<std::byte>> absent_element() const override { return nan_bytes(); }
    bool visit_stored(const std::function<void(const Region&)>& each) const override {
        for (const auto& [place, field] : variable().fields) each(pieces_.chunk_region(pieces_.index(place)));
        return true;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        in_context([&] { return name(); },
                   [&] {
                       require_inside(region, info().shape);
                       if (region.empty()) return;
                       const Region touched = pieces_.overlapping(region);
                       parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
                           const StopScope scope(io.stop);
                           const ChunkPart part = chunk_part(pieces_, region, touched, n);
                           read_message(part, out.part(part.in_request));
                       });
                   });
    }

private:
    [[nodiscard]] std::vector<std::byte> nan_bytes() const {
        std::vector<std::byte> bytes(static_cast<std::size_t>(info().dtype.size()));
        constexpr float narrow = std::numeric_limits<float>::quiet_NaN();
        constexpr double wide = std::numeric_limits<double>::quiet_NaN();
        bytes.size() == sizeof wide ? std::memcpy(bytes.data(), &wide, sizeof wide)
                                    : std::memcpy(bytes.data(), &narrow, sizeof narrow);
        return bytes;
    }

    void read_message(const ChunkPart& part, const MutableArrayView& out) const {
        const auto field = variable().fields.find(pieces_.linear(part.chunk));  // one chunk along the grid's dimensions
        if (field == variable().fields.end()) return fill_elements(out, info().dtype, nan_bytes().data());
        const NDArray values = grib_values(*open().file, open().index->fields[field->second], variable());
        const Region grid = part.in_chunk;
        const int leading = grid.rank() - values.shape().rank();
        Region inner{Index::filled(values.shape().rank(), 0), Shape::filled(values.shape().rank(), 0)};
        for (int d = 0; d < values.shape().rank(); ++d) {
            inner.start[d] = grid.start[leading + d];
            inner.extent[d] = grid.extent[leading + d];
        }
        const NDArray wanted = NDArray::copy_of(values.view().part(inner));
        copy_elements(view_bytes(wanted.bytes().data(), info().dtype, out.shape), out);
    }

    ChunkGrid pieces_;
};

// ---- the row

std::unique_ptr<ArraySource> open_grib(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    OpenGrib open = open_grib_file(path);
    GribMember member = find_member(*open.index, path);
    if (member.what != GribMember::What::variable) {
        return std::make_unique<GribCoordinate>(std::move(open), std::move(member), path);
    }
    if (member.variable->error) throw member.variable->error->within(member.path()).within(path.path.string());
    return std::make_unique<GribSource>(std::move(open), std::move(member), path);
}

std::vector<std::string> grib_names(const ArrayPath& path) {
    const OpenGrib open = open_grib_file(path);  // members lead into its index
    std::vector<std::string> names;
    for (const GribMember& member : members_of(*open.index)) names.push_back(member.path());
    return names;
}

std::vector<ArrayFileMember> grib_listed(const ArrayPath& path) {
    const OpenGrib open = open_grib_file(path);
    std::vector<ArrayFileMember> members;
    for (const GribMember& member : members_of(*open.index)) {
        ArrayFileMember& made = members.emplace_back(ArrayFileMember{.name = member.path(), .info = {}, .error = {}});
        if (member.what == GribMember::What::variable && member.variable->error) {
            made.error = member.variable->error;
        } else {
            made.info = info_of(member);
        }
    }
    return members;
}

std::vector<ArrayFileGroup> grib_groups(const ArrayPath& path) {
    const OpenGrib open = open_grib_file(path);
    std::vector<ArrayFileGroup> groups;
    if (!open.index->groups.front().name.empty()) groups.push_back({.name = ""});
    for (const GribGroup& group : open.index->groups) groups.push_back({group.name, group.attributes});
    return groups;
}

Value grib_facts(const ArrayPath& path) {
    const OpenGrib open = open_grib_file(path);
    Value facts = Value::object();
    facts.set("format", "grib");
    if (!path.member) {
        std::set<int> editions;
        for (const GribField& field : open.index->fields) editions.insert(field.edition);
        facts.set("editions", Value::Array(editions.begin(), editions.end()));
        facts.set("messages", open.index->fields.back().message);
        facts.set("fields", open.index->fields.size());
        return facts;
    }
    const GribMember member = find_member(*open.index, path);
    if (member.what == GribMember::What::variable) {
        facts.set("fields", member.variable->fields.size());
        facts.set("attributes", attributes_of(member, false));
    }
    return facts;
}

void grib_check(const ArrayPath& path, ArrayFileChecker& checker) {
    for (const std::string& name : grib_names(path)) checker.read_array(name);
}

}  // namespace

extern constinit const ArrayFileFormat grib_format{
    .name = "grib",
    .extension = ".grib2",
    .also = ".grib .grib1 .grb .grb1 .grb2 .gb2 ",
    .about = "GRIB 1 and 2, only read",
    .ranged = true,
    .recognise = grib_recognise,
    .members = grib_names,
    .listed = grib_listed,
    .groups = grib_groups,
    .open = open_grib,
    .create = nullptr,
    .describe = grib_facts,
    .check = grib_check,
};

}  // namespace tessera
