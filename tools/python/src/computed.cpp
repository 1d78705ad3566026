// Arrays that are computed or joined from others, in memory or written as a copy is.
#include <pybind11/stl.h>

#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/calc.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/pyramid.h>
#include <tessera/reduce.h>
#include <tessera/write_computed.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "convert.h"
#include "copies.h"
#include "handle.h"

namespace tessera::python {

namespace {

using Source = std::shared_ptr<const ArraySource>;
using Names = std::vector<std::optional<std::string>>;

/// An operand: an open array, a NumPy array, which the caller keeps alive, or the path of anything else.
Source operand_from(const py::object& given) {
    if (py::isinstance<ArrayHandle>(given)) {
        const auto parts = py::cast<ArrayHandle&>(given).parts();
        return {parts, &parts->readable()};
    }
    if (py::isinstance<py::array>(given)) {
        const auto values = py::reinterpret_borrow<py::array>(given);
        return view_source(view_to_read(values, dtype_from_numpy(values.dtype())), "a NumPy array");
    }
    const std::string path = path_from_python(given);
    const py::gil_scoped_release released;
    return open_source(path);
}

/// The destination of a computed source, and its options.
struct ComputedWay {
    py::object to;     ///< None: a NumPy array
    py::dict options;  ///< of the new array
    bool overwrite = false;
    py::object dtype;  ///< None: the source's
    std::string cast = "same_kind";
    std::vector<std::string> paths;  ///< of the sources
};

py::object into_memory(const ArraySource& source, const WorkOptions& work) {
    const ArrayInfo info = source.info();
    if (info.dtype.is_variable()) {
        throw unsupported("elements of variable length are not computed into memory: give a destination");
    }
    const py::array made = empty_array(dtype_to_numpy(info.dtype), info.shape);
    const MutableArrayView view = view_to_write(made, info.dtype);
    Work(work).run([&](const IoOptions& io) { source.read_into(Region::whole(info.shape), view, io); });
    return made;
}

py::object made_of(std::unique_ptr<ArraySource> source, ComputedFrom from, const ComputedWay& way,
                   const WorkOptions& work) {
    if (!way.dtype.is_none()) {
        source = std::make_unique<CastSource>(std::move(source), dtype_from_argument(way.dtype), parse_cast(way.cast));
    }
    if (way.to.is_none()) return into_memory(*source, work);
    const std::string to = path_from_python(way.to);
    from.paths = way.paths;
    HierarchyOptions options{.arrays = wishes_of(way.options), .overwrite = way.overwrite};
    if (way.options.contains("deflate")) options.deflate_level = py::cast<int>(way.options["deflate"]);
    options.store = PlaceOptions{.read_only = false}.store();
    Work(work).run([&](const IoOptions& io) {
        options.io = io;
        (void)write_computed(*source, to, from, options);
    });
    return py::none();
}

py::object calculate(const std::string& expression, const py::dict& operands, const ComputedWay& way,
                     const WorkOptions& work) {
    std::vector<CalcOperand> arrays;
    for (const auto& [name, value] : operands) {
        arrays.push_back({py::cast<std::string>(name), operand_from(py::reinterpret_borrow<py::object>(value))});
    }
    const std::vector<CalcOperand> used = arrays;  // keeps them
    auto source = calc_source(expression, std::move(arrays));
    ComputedFrom from = calculated_from(used, source->info());
    return made_of(std::move(source), std::move(from), way, work);
}

/// Changes the elements of an open array; returns how many values changed.
std::int64_t calculate_in_place(ArrayHandle& handle, const std::string& expression, const py::dict& operands,
                                const Picked* picked, const std::string& cast, const WorkOptions& work) {
    std::vector<CalcOperand> arrays;
    for (const auto& [name, value] : operands) {
        arrays.push_back({py::cast<std::string>(name), operand_from(py::reinterpret_borrow<py::object>(value))});
    }
    Array array = handle.array();
    InPlaceOptions options{.cast = parse_cast(cast)};
    if (picked != nullptr) options.selection = picked->selection;
    const std::vector<CalcOperand> used = arrays;  // NumPy arrays among them end with the GIL held
    return Work(work).run([&](const IoOptions& io) {
        options.io = io;
        return calc_in_place(array, expression, std::move(arrays), options);
    });
}

int axis_from(const std::string& word, const ArraySource& array) {
    return in_context([] { return "axis"; }, [&] { return find_dimension(word, array); });
}

py::object reduced(const py::object& array, const std::string& with, const std::vector<std::string>& named,
                   bool keep_dims, bool skip_nan, const py::object& by, const ComputedWay& way,
                   const WorkOptions& work) {
    const Source of = operand_from(array);
    std::vector<int> axes;
    for (const std::string& axis : named) axes.push_back(axis_from(axis, *of));
    std::shared_ptr<const Grouping> groups;
    if (!by.is_none()) {
        if (axes.size() > 1) throw invalid_argument("by: groups along one axis, found {}", axes.size());
        const bool word =
            py::isinstance<py::str>(by) && std::ranges::count(grouping_words(), py::cast<std::string>(by)) > 0;
        groups = in_context(
            [] { return "by"; },
            [&] {
                if (word) {
                    return group_by_time(*of, axes.empty() ? time_dimension(*of) : axes[0], py::cast<std::string>(by));
                }
                if (axes.empty() && of->info().shape.rank() != 1) throw invalid_argument("labels need an axis");
                return group_by_labels(*of, axes.empty() ? 0 : axes[0], shared_source(operand_from(by)));
            });
    }
    const ReduceOptions options{.with = parse_reduction(with),
                                .percent = parse_percent(with),
                                .axes = axes,
                                .keep_dimensions = keep_dims,
                                .skip_nan = skip_nan,
                                .groups = groups};
    return made_of(reduce_source(shared_source(of), options), reduced_from(*of, options), way, work);
}

/// A factor for each dimension, or those of the dimensions that a dict names.
Shape factors_from(const py::object& by, const ArraySource& array) {
    if (!py::isinstance<py::dict>(by)) return shape_from_python(by);
    Shape factors = Shape::filled(array.info().shape.rank(), 1);
    for (const auto& [name, factor] : py::reinterpret_borrow<py::dict>(by)) {
        factors[axis_from(py::str(name), array)] = py::cast<std::int64_t>(factor);
    }
    return factors;
}

py::object coarsened_array(const py::object& array, const py::object& by, const std::string& with,
                           const ComputedWay& way, const WorkOptions& work) {
    const Source of = operand_from(array);
    auto source = coarsen_source(shared_source(of), factors_from(by, *of), parse_coarsening(with));
    ComputedFrom from = coarsened_from(*of, source->info().shape);
    return made_of(std::move(source), std::move(from), way, work);
}

py::object joined(const py::list& arrays, const std::string& axis, bool new_axis, const ComputedWay& way,
                  const WorkOptions& work) {
    if (arrays.empty()) throw invalid_argument("no arrays are given");
    std::vector<std::string> names;
    for (const auto& array : arrays) names.push_back(path_from_python(py::reinterpret_borrow<py::object>(array)));
    const Source first = operand_from(arrays[0]);
    const int rank = first->info().shape.rank();
    JoinOptions options{.axis = 0, .new_axis = new_axis};
    options.axis =
        in_context([] { return "axis"; },
                   [&] { return new_axis ? find_dimension(axis, {}, rank + 1) : find_dimension(axis, *first); });
    std::unique_ptr<ArraySource> source;
    {
        const py::gil_scoped_release released;
        source = join_sources(
            names, [](const std::string& name) { return open_source(name); }, options);
    }
    ComputedFrom from{.like = first.get()};
    if (!new_axis) from.dimension_names = dimension_names_of(*first);
    return made_of(std::move(source), std::move(from), way, work);
}

/// The levels of an image and their metadata, in a group or zip. Returns a sentence for each level.
std::vector<std::string> pyramid(const py::object& array, const std::string& source, const py::object& to,
                                 const PyramidOptions& given, const py::dict& wanted, const WorkOptions& work) {
    const Source of = operand_from(array);
    const std::string path = path_from_python(to);
    PyramidOptions options = given;
    options.arrays = wishes_of(wanted);
    options.store = PlaceOptions{.read_only = false}.store();
    const CopiedHierarchy made = Work(work).run([&](const IoOptions& io) {
        if (!source.empty()) require_apart({source}, path);
        if (!options.overwrite && std::filesystem::exists(std::filesystem::symlink_status(path))) {
            throw already_exists("{}: something lies there already", path)
                .advising(Action::overwrite, "replaces levels");
        }
        options.io = io;
        return make_pyramid(of, source.empty() ? "an array in memory" : source, path, options);
    });
    std::vector<std::string> said;
    for (const PlannedCopy& level : made.planned) {
        const ArrayMetadata& m = level.plan.metadata;
        said.push_back(fmt::format("{}: {} {}, {}, chunks {}", level.node, m.shape.to_string(), m.dtype.to_string(),
                                   level.plan.dialect->name, chunk_layout(m).chunks.to_string()));
    }
    return said;
}

}  // namespace

void bind_computed(py::module_& module) {
    py::class_<ComputedWay>(module, "ComputedWay")
        .def(py::init([](py::object to, py::dict options, bool overwrite, py::object dtype, std::string cast,
                         std::vector<std::string> paths) {
                 return ComputedWay{std::move(to),    std::move(options), overwrite,
                                    std::move(dtype), std::move(cast),    std::move(paths)};
             }),
             py::arg("to"), py::arg("options"), py::kw_only(), py::arg("overwrite"), py::arg("dtype"), py::arg("cast"),
             py::arg("paths"));
    module.def("calc", &calculate);
    module.def("calc_in_place", &calculate_in_place);
    module.def("reduce", &reduced, py::arg("array"), py::arg("how"), py::arg("axes"), py::kw_only(),
               py::arg("keep_dims"), py::arg("skip_nan"), py::arg("by"), py::arg("way"), py::arg("work"));
    module.def("coarsen", &coarsened_array);
    module.def("join", &joined, py::arg("arrays"), py::arg("axis"), py::kw_only(), py::arg("new_axis"), py::arg("way"),
               py::arg("work"));
    py::class_<PyramidOptions>(module, "Pyramid")
        .def(py::init([](std::string name, std::vector<std::string> axes, const py::object& by,
                         std::optional<int> levels, const std::string& how, std::vector<double> scale, Names units,
                         const std::optional<std::string>& ome, bool geo, std::optional<std::string> crs,
                         std::optional<std::array<double, 6>> transform, bool overwrite, bool dry_run) {
                 return PyramidOptions{.name = std::move(name),
                                       .axes = std::move(axes),
                                       .by = shape_from_python(by),
                                       .levels = levels,
                                       .with = parse_coarsening(how),
                                       .scale = std::move(scale),
                                       .units = std::move(units),
                                       .ome = ome ? std::optional(ome_version_named(*ome)) : std::nullopt,
                                       .geo = geo ? std::optional(GeoWishes{transform, std::move(crs)}) : std::nullopt,
                                       .overwrite = overwrite,
                                       .dry_run = dry_run};
             }),
             py::arg("name"), py::kw_only(), py::arg("axes"), py::arg("by"), py::arg("levels"), py::arg("how"),
             py::arg("scale"), py::arg("units"), py::arg("ome"), py::arg("geo"), py::arg("crs"), py::arg("transform"),
             py::arg("overwrite"), py::arg("dry_run"));
    module.def("pyramid", &pyramid);
    module.def("require_apart", &require_apart);
}

}  // namespace tessera::python
