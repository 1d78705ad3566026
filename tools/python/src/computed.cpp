// Arrays that are computed or joined from others, in memory or written as a copy is.
#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/calc.h>
#include <tessera/cast.h>
#include <tessera/coarsen.h>
#include <tessera/copy.h>
#include <tessera/copy_hierarchy.h>
#include <tessera/destination.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/joined_source.h>
#include <tessera/picture.h>
#include <tessera/reduce.h>

#include <fmt/format.h>

#include <algorithm>
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

/// A source that shares another one.
class SharedSource final : public ArraySource {
public:
    explicit SharedSource(Source of) : of_(std::move(of)) {}
    [[nodiscard]] ArrayInfo info() const override { return of_->info(); }
    [[nodiscard]] const std::string& name() const override { return of_->name(); }
    [[nodiscard]] Value attribute_values() const override { return of_->attribute_values(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        of_->read_into(region, out, io);
    }

private:
    Source of_;
};

/// The destination of a computed source, and its options.
struct ComputedWay {
    py::object to;     ///< None: a NumPy array
    py::dict options;  ///< of the new array
    bool overwrite = false;
    py::object dtype;  ///< None: the source's
    std::string cast = "same_kind";
};

/// Defaults that the new array takes from its sources.
struct Like {
    const ArraySource* format = nullptr;
    Shape chunks = {};
    Names names = {};
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

py::object made_of(std::unique_ptr<ArraySource> source, const Like& like, const ComputedWay& way,
                   const WorkOptions& work) {
    if (!way.dtype.is_none()) {
        source = std::make_unique<CastSource>(std::move(source), dtype_from_argument(way.dtype), parse_cast(way.cast));
    }
    if (way.to.is_none()) return into_memory(*source, work);
    const std::string to = path_from_python(way.to);
    const int rank = source->info().shape.rank();
    HierarchyOptions options{.arrays = wishes_of(way.options), .overwrite = way.overwrite};
    if (way.options.contains("deflate")) options.deflate_level = py::cast<int>(way.options["deflate"]);
    if (named_array_file_format(to) == nullptr) {
        const auto* array = dynamic_cast<const Array*>(like.format);
        if (!options.arrays.format && array != nullptr && format_above(to) == nullptr) {
            options.arrays.like_format = array->dialect().name;
        }
        if (!options.arrays.chunks && rank > 0 && like.chunks.rank() == rank) options.arrays.chunks = like.chunks;
        if (!options.arrays.dimension_names && rank > 0 && std::cmp_equal(like.names.size(), rank)) {
            options.arrays.dimension_names = like.names;
        }
    }
    options.store = PlaceOptions{.read_only = false}.store();
    Work(work).run([&](const IoOptions& io) {
        options.io = io;
        (void)copy_hierarchy(*source, to, options);
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
    const ArrayInfo info = source->info();
    Like like{.format = used.empty() ? nullptr : used.front().array.get(), .chunks = info.chunks, .names = {}};
    for (const CalcOperand& operand : used) {
        if (like.names.empty() && operand.array->info().shape == info.shape) {
            like.names = dimension_names_of(*operand.array);
        }
    }
    return made_of(std::move(source), like, way, work);
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

py::object reduced(const py::object& array, const std::string& with, const std::vector<int>& axes, bool keep_dims,
                   bool skip_nan, const ComputedWay& way, const WorkOptions& work) {
    const Source of = operand_from(array);
    Like like{.format = of.get(), .chunks = {}, .names = dimension_names_of(*of)};
    const auto rank = static_cast<int>(like.names.size());
    for (int d = rank - 1; d >= 0 && !keep_dims; --d) {
        if (!axes.empty() && std::ranges::count(axes, d) + std::ranges::count(axes, d - rank) == 0) continue;
        like.names.erase(like.names.begin() + d);
    }
    const ReduceOptions options{
        .with = parse_reduction(with), .axes = axes, .keep_dimensions = keep_dims, .skip_nan = skip_nan};
    return made_of(reduce_source(std::make_unique<SharedSource>(of), options), like, way, work);
}

/// The chunks of the source, as far as a coarser array is long; empty if it has none.
Shape chunks_like(const ArrayInfo& info, const Shape& coarse) {
    if (info.chunks.rank() != info.shape.rank()) return {};
    Shape chunks = info.chunks;
    for (int d = 0; d < chunks.rank(); ++d) chunks[d] = std::clamp<std::int64_t>(coarse[d], 1, chunks[d]);
    return chunks;
}

py::object coarsened_array(const py::object& array, const py::object& by, const std::string& with,
                           const ComputedWay& way, const WorkOptions& work) {
    const Source of = operand_from(array);
    auto source = coarsen_source(std::make_unique<SharedSource>(of), shape_from_python(by), parse_coarsening(with));
    const Like like{
        .format = of.get(), .chunks = chunks_like(of->info(), source->info().shape), .names = dimension_names_of(*of)};
    return made_of(std::move(source), like, way, work);
}

py::object joined(const py::list& arrays, int axis, bool new_axis, const ComputedWay& way, const WorkOptions& work) {
    if (arrays.empty()) throw invalid_argument("no arrays are given");
    std::vector<std::string> names;
    for (const auto& array : arrays) names.push_back(path_from_python(py::reinterpret_borrow<py::object>(array)));
    const Source first = operand_from(arrays[0]);
    const int rank = first->info().shape.rank();
    JoinOptions options{.axis = axis, .new_axis = new_axis};
    if (options.axis < 0) options.axis += rank + (new_axis ? 1 : 0);
    std::unique_ptr<ArraySource> source;
    {
        const py::gil_scoped_release released;
        source = join_sources(
            names, [](const std::string& name) { return open_source(name); }, options);
    }
    const Like like{.format = first.get(), .chunks = {}, .names = new_axis ? Names{} : dimension_names_of(*first)};
    return made_of(std::move(source), like, way, work);
}

/// A level of a pyramid.
struct Level {
    std::string node;
    std::unique_ptr<ArraySource> source = nullptr;
    PlannedArray plan = {};
};

std::vector<Level> plan_levels(const Source& of, const std::string& path, const Pyramid& pyramid,
                               const ArrayWishes& wishes) {
    std::vector<Level> levels;
    for (std::size_t n = 0; n < pyramid.factors.size(); ++n) {
        Level level{.node = std::to_string(n)};
        // The first level is the array bit for bit.
        level.source = coarsen_source(std::make_unique<SharedSource>(of), pyramid.factors[n],
                                      n == 0 ? Coarsening::nearest : pyramid.with);
        ArrayWishes own = wishes;
        if (const Shape like = chunks_like(of->info(), level.source->info().shape); !own.chunks && !like.empty()) {
            own.chunks = like;
        }
        level.plan =
            in_context([&] { return join_key(path, level.node); }, [&] { return plan_array(*level.source, own); });
        levels.push_back(std::move(level));
    }
    return levels;
}

std::string level_text(const Level& level) {
    const ArrayMetadata& m = level.plan.metadata;
    return fmt::format("{}: {} {}, {}, chunks {}", level.node, m.shape.to_string(), m.dtype.to_string(),
                       level.plan.dialect->name, chunk_layout(m).chunks.to_string());
}

/// How a pyramid is made.
struct PyramidWay {
    bool overwrite = false;
    bool dry_run = false;
};

/// The levels of an image and their metadata, in a group or zip. Returns a sentence for each level.
std::vector<std::string> make_pyramid(const py::object& array, const py::object& to, const py::list& factors,
                                      const std::string& with, const Pyramid& given, const py::dict& wanted,
                                      const PyramidWay& way, const WorkOptions& work) {
    const Source of = operand_from(array);
    const std::string path = path_from_python(to);
    ArrayWishes wishes = wishes_of(wanted);
    const Dialect& dialect = dialect_named(wishes.format.value_or("v3"));
    wishes.separator = "/";
    Pyramid pyramid = given;
    pyramid.with = parse_coarsening(with);
    for (const auto& level : factors) {
        pyramid.factors.push_back(shape_from_python(py::reinterpret_borrow<py::object>(level)));
    }
    const bool v3 = dialect.name == "v3";
    if (v3) wishes.dimension_names = Names(pyramid.axes.begin(), pyramid.axes.end());
    const Value attributes = multiscales_attributes(pyramid, v3);
    const StoreOptions store = PlaceOptions{.read_only = false}.store();
    return Work(work).run([&](const IoOptions& io) {
        std::vector<std::string> said;
        const std::vector<Level> levels = plan_levels(of, path, pyramid, wishes);
        for (const Level& level : levels) said.push_back(level_text(level));
        if (way.dry_run) return said;
        require_pyramid_place(path, levels.size(), dialect, way.overwrite);
        const DestinationLock building = lock_destination(path, store);
        const auto there = std::filesystem::symlink_status(path);
        if (std::filesystem::exists(there) && !way.overwrite) {
            throw already_exists("{}: something lies there already", path);
        }
        const auto destination =
            open_destination(path, {.overwrite = way.overwrite, .store = store, .lock = &building});
        destination->add_group({"", &dialect, attributes});
        for (const Level& level : levels) {
            Array& made = destination->add(level.node, level.plan, of->name());
            copy_array(*level.source, made, {.io = io});
        }
        destination->commit();
        return said;
    });
}

}  // namespace

void bind_computed(py::module_& module) {
    py::class_<ComputedWay>(module, "ComputedWay")
        .def(py::init([](py::object to, py::dict options, bool overwrite, py::object dtype, std::string cast) {
                 return ComputedWay{std::move(to), std::move(options), overwrite, std::move(dtype), std::move(cast)};
             }),
             py::arg("to"), py::arg("options"), py::kw_only(), py::arg("overwrite"), py::arg("dtype"), py::arg("cast"));
    module.def("calc", &calculate);
    module.def("calc_in_place", &calculate_in_place);
    module.def("reduce", &reduced, py::arg("array"), py::arg("how"), py::arg("axes"), py::kw_only(),
               py::arg("keep_dims"), py::arg("skip_nan"), py::arg("way"), py::arg("work"));
    module.def("coarsen", &coarsened_array);
    module.def("join", &joined, py::arg("arrays"), py::arg("axis"), py::kw_only(), py::arg("new_axis"), py::arg("way"),
               py::arg("work"));
    py::class_<Pyramid>(module, "Pyramid")
        .def(py::init([](std::string name, std::vector<std::string> axes, Names units, std::vector<double> scale) {
            return Pyramid{.name = std::move(name),
                           .axes = std::move(axes),
                           .units = std::move(units),
                           .scale = std::move(scale),
                           .factors = {}};
        }));
    py::class_<PyramidWay>(module, "PyramidWay")
        .def(py::init(
                 [](bool overwrite, bool dry_run) { return PyramidWay{.overwrite = overwrite, .dry_run = dry_run}; }),
             py::kw_only(), py::arg("overwrite"), py::arg("dry_run"));
    module.def("pyramid", &make_pyramid);
}

}  // namespace tessera::python
