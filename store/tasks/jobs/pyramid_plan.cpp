#include <tessera/pyramid.h>

#include <algorithm>
#include <utility>

#include <tessera/action.h>
#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/destination.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/group.h>
#include <tessera/meaning.h>
#include <tessera/multiscales.h>
#include <tessera/node_facts.h>
#include <tessera/place.h>
#include <tessera/pyramid_plan.h>
#include <tessera/shared_source.h>
#include <tessera/write_computed.h>

#include <fmt/ranges.h>

#include "file_chunks.h"

namespace tessera {

namespace {

void require_count(std::string_view what, std::size_t given, std::size_t rank) {
    if (given != rank) throw invalid_argument("{}: {} were given for {} dimensions", what, given, rank);
}

std::vector<std::string> axes_of(const PyramidOptions& o, const ArraySource& array) {
    static const std::vector<std::string> all{"t", "c", "z", "y", "x"};
    const auto rank = static_cast<std::size_t>(array.info().shape.rank());
    std::vector<std::string> axes;
    for (const auto& name : dimension_names_of(array)) axes.push_back(name.value_or(""));
    if (!o.axes.empty()) {
        require_count("axes", o.axes.size(), rank);
        if (o.axes != axes && std::ranges::is_permutation(o.axes, axes)) {
            throw invalid_argument("axes: the dimensions of {} are named {}, in another order", array.name(),
                                   fmt::join(axes, ","));
        }
        return o.axes;
    }
    const bool known = !axes.empty() && std::ranges::all_of(axes, [&](const std::string& name) {
        return std::ranges::count(all, name) == 1;
    });
    if (known) return axes;
    if (rank < 2 || rank > 5) {
        throw invalid_argument("{}: OME-NGFF takes 2 to 5 dimensions, found {}", array.name(), rank);
    }
    if (rank == 4) return {"c", "z", "y", "x"};
    return {all.end() - static_cast<std::ptrdiff_t>(rank), all.end()};
}

/// Where the levels of a pyramid of GeoZarr lie.
struct GeoPlan {
    GeoReference reference;  ///< of the first level
    DimensionNames names;
    int y, x;  ///< the dimensions along which y and x run
};

GeoPlan geo_plan(const PyramidOptions& o, const ArraySource& array) {
    const Shape shape = array.info().shape;
    const int rank = shape.rank();
    if (rank < 2) throw invalid_argument("{}: a georeference takes two dimensions, found {}", array.name(), rank);
    if (!o.ome && (!o.scale.empty() || !o.units.empty())) {
        throw invalid_argument("{}: these are members of OME-Zarr; GeoZarr has a transform instead",
                               o.scale.empty() ? "units" : "scale");
    }
    GeoReference reference = geo_reference_in(array.attribute_values()).value_or(GeoReference{});
    DimensionNames names = dimension_names_of(array);
    if (!o.axes.empty()) names.assign(o.axes.begin(), o.axes.end());
    names.resize(static_cast<std::size_t>(rank));
    const auto [y, x] = geo_dimensions(reference, names, rank);
    const std::array<std::int64_t, 2> lengths{shape[y], shape[x]};
    // A part or a resampled array is no longer where its attributes say.
    if (reference.shape && *reference.shape != lengths) reference.transform.reset();
    if (o.geo->transform) reference.transform = o.geo->transform;
    if (o.geo->crs) reference.crs = in_context([] { return "crs"; }, [&] { return parse_crs(*o.geo->crs); });
    if (!reference.transform) {
        throw invalid_argument("transform: none was given, and the attributes of {} have no spatial:transform for {}",
                               array.name(), shape.to_string());
    }
    const auto& t = *reference.transform;
    if (t[0] * t[4] == t[1] * t[3]) throw invalid_argument("transform: rows and columns run in one direction");
    if (element_count(shape) == 0) throw invalid_argument("{}: an array without elements lies nowhere", array.name());
    reference.shape = lengths;
    const std::array<int, 2> dimensions{y, x};
    for (std::size_t i = 0; i < 2; ++i) {
        auto& name = names[static_cast<std::size_t>(dimensions.at(i))];
        if (!name || name->empty()) name = reference.dimensions.at(i);
        reference.dimensions.at(i) = *name;
    }
    if (reference.dimensions[0] == reference.dimensions[1]) {
        throw invalid_argument("axes: y and x run along two dimensions, found {} twice", reference.dimensions[0]);
    }
    return {std::move(reference), std::move(names), y, x};
}

/// The axes of OME-Zarr; beside a georeference they have the names of the dimensions.
std::vector<std::string> ome_axes(const PyramidOptions& o, const ArraySource& array,
                                  const std::optional<GeoPlan>& geo) {
    const bool named = geo && std::ranges::all_of(geo->names, [](const auto& name) { return name.has_value(); });
    std::vector<std::string> axes = named ? std::vector<std::string>() : axes_of(o, array);
    axes.resize(static_cast<std::size_t>(array.info().shape.rank()));
    for (std::size_t d = 0; geo && d < axes.size(); ++d) axes[d] = geo->names[d].value_or(axes[d]);
    return axes;
}

/// The factor between two levels for each dimension.
Shape steps_of(const PyramidOptions& o, const std::vector<std::string>& axes, const std::optional<GeoPlan>& geo) {
    const bool one = o.by.rank() == 1;
    if (!one) require_count("by", static_cast<std::size_t>(o.by.rank()), axes.size());
    Shape steps;
    for (std::size_t d = 0; d < axes.size(); ++d) {
        const bool plane = !geo || static_cast<int>(d) == geo->y || static_cast<int>(d) == geo->x;
        const bool still = one && (!plane || (axes.size() > 1 && (axes[d] == "t" || axes[d] == "c")));
        steps.push_back(still ? 1 : o.by[one ? 0 : static_cast<int>(d)]);
        if (steps[static_cast<int>(d)] < 1) throw invalid_argument("by: expected factors of at least 1");
    }
    return steps;
}

std::vector<Shape> all_factors(const PyramidOptions& o, const Shape& shape, const Shape& by) {
    constexpr int most = 30;
    const int wanted = o.levels.value_or(most);
    if (wanted < 1 || wanted > most) throw invalid_argument("levels: expected 1 to {}, found {}", most, wanted);
    const auto is_large = [&](const Shape& now) {
        for (int d = 0; d < now.rank(); ++d) {
            if (by[d] > 1 && now[d] > 256) return true;
        }
        return false;
    };
    std::vector<Shape> factors{Shape::filled(shape.rank(), 1)};
    while (std::ssize(factors) < wanted && (o.levels || is_large(coarsened(shape, factors.back())))) {
        Shape next = factors.back();
        for (int d = 0; d < next.rank(); ++d) next[d] = checked_multiply(next[d], by[d], "by");
        factors.push_back(next);
    }
    return factors;
}

const Dialect& format_of(const PyramidOptions& o, const ArraySource& array) {
    if (o.geo) {
        if (o.arrays.format.value_or("v3") != "v3") {
            throw invalid_argument("format: GeoZarr is v3, found {}", *o.arrays.format);
        }
        if (o.ome == OmeVersion::v0_4) {
            throw invalid_argument("ome: 0.4 is v2 and GeoZarr v3, found both");
        }
        return dialect_named("v3");
    }
    if (o.arrays.format && *o.arrays.format != "v2" && *o.arrays.format != "v3") {
        throw invalid_argument("format: OME-NGFF is v2 (0.4) or v3 (0.5), found {}", *o.arrays.format);
    }
    if (o.ome) {
        const std::string_view needed = *o.ome == OmeVersion::v0_4 ? "v2" : "v3";
        if (o.arrays.format && *o.arrays.format != needed) {
            throw invalid_argument("format: OME-NGFF {} is {}, found {}", ome_version_text(*o.ome), needed,
                                   *o.arrays.format);
        }
        return dialect_named(needed);
    }
    if (o.arrays.format) return dialect_named(*o.arrays.format);
    const auto* stored = as_array(array);
    const Dialect& usual =
        stored != nullptr && !is_in_file(*stored) ? stored->dialect() : default_format(o.arrays.preferred_format);
    return dialect_named(usual.name == "v2" ? "v2" : "v3");
}

/// The array, coarsened by one level's factors.
std::unique_ptr<ArraySource> level_source(const std::shared_ptr<const ArraySource>& array,
                                          const std::vector<Shape>& factors, const PyramidOptions& o, std::size_t n) {
    const Coarsening with = n == 0 ? Coarsening::nearest : o.with;
    if (o.raw) return coarsen_source(shared_source(array), factors[n], with, !o.keep_missing);
    return coarsened_as_stored(shared_source(array), factors[n], with, !o.keep_missing);
}

PlannedArray plan_level(const ArraySource& level, const ArraySource& array, const ArrayWishes& wishes) {
    ArrayWishes own = wishes;
    const Shape chunks = coarsened_from(array, level.info().shape).chunks;
    if (!own.chunks && !own.edges && !chunks.empty()) own.chunks = chunks;
    PlannedArray plan = plan_array(level, own);
    plan.recode = "it is computed";
    return plan;
}

/// Gives a level its georeference, which other programs look for where they open it alone.
void georeference(PlannedArray& level, const GeoPlan& geo, const Shape& by, Coarsening with) {
    Value attributes = level.attributes.value_or(Value::object());
    const Shape& shape = level.metadata.shape;
    set_geo_reference(attributes, coarsened(geo.reference, {by[geo.y], by[geo.x]}, {shape[geo.y], shape[geo.x]},
                                            with == Coarsening::nearest));
    level.attributes = std::move(attributes);
}

/// Without the factors of its levels.
Pyramid asked_pyramid(const PyramidOptions& o, const ArraySource& array, const std::optional<GeoPlan>& geo, bool ome) {
    const auto rank = static_cast<std::size_t>(array.info().shape.rank());
    Pyramid pyramid{.name = o.name,
                    .axes = ome ? ome_axes(o, array, geo) : std::vector<std::string>(rank),
                    .units = o.units,
                    .scale = o.scale,
                    .factors = {},
                    .with = o.with};
    if (pyramid.scale.empty()) pyramid.scale.assign(rank, 1.0);
    require_count("scale", pyramid.scale.size(), rank);
    if (!pyramid.units.empty()) require_count("units", pyramid.units.size(), rank);
    return pyramid;
}

/// Those of the group.
Value attributes_of(const Pyramid& pyramid, const Shape& shape, const std::optional<GeoPlan>& geo,
                    const std::optional<OmeVersion>& ome) {
    Value attributes = ome ? multiscales_attributes(pyramid, *ome) : Value::object();
    if (!geo) return attributes;
    std::vector<Shape> shapes;
    for (const Shape& by : pyramid.factors) shapes.push_back(coarsened(shape, by));
    const Value members = geo_attributes(pyramid, shapes, geo->reference, geo->y, geo->x);
    for (const auto& [name, value] : members.as_object()) attributes.set(name, value);
    return attributes;
}

}  // namespace

PlannedPyramid plan_pyramid(const std::shared_ptr<const ArraySource>& array, const std::string& source,
                            const std::string& destination, const PyramidOptions& o) {
    const Shape shape = array->info().shape;
    const std::optional<GeoPlan> geo = o.geo ? std::optional(geo_plan(o, *array)) : std::nullopt;
    const bool ome = !geo || o.ome;
    Pyramid pyramid = asked_pyramid(o, *array, geo, ome);
    pyramid.factors = all_factors(o, shape, steps_of(o, pyramid.axes, geo));
    ArrayWishes wishes = o.arrays;
    const Dialect& dialect = format_of(o, *array);
    wishes.format = dialect.name;
    wishes.separator = "/";
    const bool v3 = dialect.name == "v3";
    if (v3 && ome) wishes.dimension_names.emplace(pyramid.axes.begin(), pyramid.axes.end());
    if (!ome) wishes.dimension_names = geo->names;
    if (named_array_file_format(destination) != nullptr) {
        throw invalid_argument("{}: a pyramid is a group: a directory, a .zip or an .ozx", destination);
    }
    const OmeVersion version = o.ome.value_or(v3 ? OmeVersion::v0_5 : OmeVersion::v0_4);
    Value attributes = attributes_of(pyramid, shape, geo, ome ? std::optional(version) : std::nullopt);
    PlannedPyramid planned{.group = {"", &dialect, std::move(attributes)}, .factors = pyramid.factors, .levels = {}};
    for (std::size_t n = 0; n < pyramid.factors.size(); ++n) {
        const std::string node = std::to_string(n);
        planned.levels.push_back(
            {source, node,
             in_context([&] { return join_key(destination, node); },
                        [&] { return plan_level(*level_source(array, pyramid.factors, o, n), *array, wishes); })});
        if (geo) georeference(planned.levels.back().plan, *geo, pyramid.factors[n], pyramid.with);
    }
    return planned;
}

CopiedHierarchy make_pyramid(const std::shared_ptr<const ArraySource>& array, const std::string& source,
                             const std::string& destination, const PyramidOptions& o) {
    const PlannedPyramid planned = plan_pyramid(array, source, destination, o);
    CopiedHierarchy made{.path = destination, .planned = planned.levels};
    if (o.dry_run) return made;
    require_pyramid_place(destination, planned.levels.size(), *planned.group.dialect, o.overwrite);
    {
        const DestinationLock building = lock_destination(destination, o.store);
        const auto to = open_destination(destination, {.overwrite = o.overwrite, .store = o.store, .lock = &building});
        to->add_group(planned.group);
        for (std::size_t n = 0; n < planned.levels.size(); ++n) {
            Array& level = to->add(planned.levels[n].node, planned.levels[n].plan, source);
            copy_array(*level_source(array, planned.factors, o, n), level, {.io = o.io});
        }
        to->commit();
    }
    const Place place = find_place(destination, {.read_only = true});
    for (const PlannedCopy& job : made.planned) {
        made.made.push_back(
            copied_array(join_key(destination, job.node), Array::open({place.store, place.key(job.node)})));
        made.bytes += made.made.back().bytes.value_or(0);
    }
    return made;
}

std::vector<std::string> upgrade_ome(const std::string& path, OmeVersion to, const StoreOptions& options) {
    Group group = Group::open(path, options);
    if (group.dialect() == nullptr || group.dialect()->name != "v3") {
        throw unsupported("{}: OME-NGFF {} is Zarr v3, and this group is {}", path, ome_version_text(to),
                          group.dialect() == nullptr ? "a plain folder" : group.dialect()->name)
            .advising(Action::copy, "to v3 keeps the chunks", path);
    }
    struct Upgrade {
        std::string path;
        Group group;
        Value attributes;
        bool changed;
    };
    std::vector<Upgrade> all;
    const auto look = [&](const std::string& node, const Group& at) {
        const Value attributes = at.attributes().all();
        Value upgraded = in_context([&] { return at.name(); }, [&] { return upgraded_ome(attributes, to); });
        if (upgraded.find("ome") == nullptr) return;
        const bool changed = upgraded != attributes;
        all.push_back({node, at, std::move(upgraded), changed});
    };
    look("", group);
    for (const Node& node : group.nodes()) {
        if (node.kind == NodeKind::group && node.dialect != nullptr) look(node.path, group.open_group(node.path));
    }
    if (all.empty()) throw not_found("{}: no group here has OME-Zarr metadata", path);
    const bool consolidated = group.consolidated_state().present;
    std::vector<std::string> changed;
    for (const Upgrade& upgrade : all) {
        if (!upgrade.changed) continue;
        upgrade.group.attributes().replace(upgrade.attributes);
        changed.push_back(upgrade.path);
    }
    if (consolidated && !changed.empty()) group.consolidate();
    return changed;
}

}  // namespace tessera
