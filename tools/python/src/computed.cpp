// Arrays that are computed or joined from others, in memory or written as a copy is.
#include <pybind11/stl.h>

#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/calc.h>
#include <tessera/coordinates_beside.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/divided_recipe.h>
#include <tessera/error_text.h>
#include <tessera/pyramid.h>
#include <tessera/reduce.h>
#include <tessera/unstack.h>
#include <tessera/write_computed.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "convert.h"
#include "handle.h"
#include "recipes.h"

namespace tessera::python {

namespace {

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

std::vector<std::string> sentences(const std::vector<Note>& notes) {
    std::vector<std::string> texts;
    for (const Note& note : notes) texts.push_back(advised(note.text, note.advice));
    return texts;
}

/// The arrays of a data set in memory: the name, dimensions, elements and attributes of each, and the attributes of the
/// groups.
std::pair<py::object, std::vector<std::string>> set_in_memory(const Asked& asked, const DividedRecipe& parts,
                                                              const WorkOptions& work) {
    std::vector<std::string> notes = sentences(parts.notes);
    HierarchyOptions options;
    // As in a file, where the names of dimensions are an attribute.
    const std::string like_file = "memory.nc";
    about_keywords(asked, [&] {
        Work(work).run([&](const IoOptions& io) {
            options.io = io;
            make_set(options, parts, like_file,
                     [&](const Note& note) { notes.push_back(advised(note.text, note.advice)); });
        });
    });
    py::list arrays;
    for (const ArraySet::One& one : options.set->arrays) {
        const auto source =
            about_keywords(asked, [&] { return Work(work).run([&](const IoOptions&) { return one.open(); }); });
        Value attributes = source->attribute_values();
        attributes.erase(dimensions_attribute);
        const py::object dims = value_to_python(dimension_names_json(dimension_names_of(*source)));
        arrays.append(py::make_tuple(one.path, dims, into_memory(*source, work), value_to_python(attributes)));
    }
    py::dict groups;
    for (const ArrayFileGroup& group : options.set->groups) {
        groups[py::str(group.name)] = value_to_python(group.attributes);
    }
    return {py::make_tuple(arrays, groups), std::move(notes)};
}

/// Makes the arrays of a data set; returns sentences about it.
std::vector<std::string> made_set(const Asked& asked, const DividedRecipe& parts, const std::optional<std::string>& to,
                                  const WorkOptions& work) {
    return about_keywords(asked, [&] {
        return Work(work).run([&](const IoOptions& io) {
            std::vector<std::string> notes = sentences(parts.notes);
            HierarchyOptions options = hierarchy_options(asked, *to, io, notes);
            options.store = PlaceOptions{.read_only = false}.store();
            make_set(options, parts, *to, [&](const Note& note) { notes.push_back(advised(note.text, note.advice)); });
            (void)copy_hierarchy("the data set", *to, options);
            return notes;
        });
    });
}

/// Makes what a recipe describes, in a place or in memory; and sentences about it.
std::pair<py::object, std::vector<std::string>> made(const py::dict& given, const py::object& destination,
                                                     const WorkOptions& work) {
    Asked asked = asked_from_python(given);
    const auto to = destination.is_none() ? std::nullopt : std::optional(path_from_python(destination));
    if (!to) {
        visit_options(asked.result, [](const Option& /*option*/, const auto& member) {
            if (!is_given(member)) return;
            throw invalid_argument("without a destination the result is a NumPy array, which has no such options");
        });
    } else {
        require_fitting(asked.recipe, asked.result, *to);
        const py::gil_scoped_release released;  // a server that is asked may run in this process
        asked.recipe = rounded_for(std::move(asked.recipe), asked.result, *to);
    }
    const auto parts = about_keywords(asked, [&] {
        return Work(work).run(
            [&](const IoOptions&) { return to ? divided_for(asked.recipe, *to) : divided(asked.recipe); });
    });
    if (parts && !to) return set_in_memory(asked, *parts, work);
    if (parts) return {py::none(), made_set(asked, *parts, to, work)};
    OpenedRecipe opened = about_keywords(
        asked, [&] { return Work(work).run([&](const IoOptions& io) { return open_recipe(asked.recipe, io); }); });
    if (to && becomes_text(asked.recipe, *to)) show_as_text(opened);
    note_marks(opened, to);
    if (!to) return {into_memory(*opened.source, work), sentences(opened.notes)};
    const CoordinatesBeside beside = about_keywords(asked, [&] {
        return Work(work).run([&](const IoOptions& io) { return CoordinatesBeside(opened, asked.recipe, *to, io); });
    });
    const std::vector<std::string> told = sentences(opened.notes);
    about_keywords(asked, [&] {
        Work(work).run([&](const IoOptions& io) {
            std::vector<std::string> notes;
            HierarchyOptions options = hierarchy_options(asked, *to, io, notes);
            options.store = PlaceOptions{.read_only = false}.store();
            (void)write_computed(*opened.source, *to, opened.from, options);
            beside.write({.io = io, .store = options.store});
        });
    });
    return {py::none(), told};
}

/// Changes the elements of an open array; returns how many values changed.
std::int64_t calculate_in_place(ArrayHandle& handle, const py::dict& given, const Picked* picked,
                                const WorkOptions& work) {
    const Asked asked = asked_from_python(given);
    const auto& calc = std::get<CalcRecipe>(asked.recipe.make);
    Array array = handle.array();
    InPlaceOptions options{.cast = parse_cast(asked.recipe.cast.value_or("same_kind"))};
    if (picked != nullptr) options.selection = picked->selection;
    options.decoded = !calc.raw;
    return Work(work).run([&](const IoOptions& io) {
        options.io = io;
        return calc_in_place(array, calc.expression, open_operands(calc, open_by_path()), options);
    });
}

int axis_of(const std::variant<int, std::string>& given, const ArraySource& array) {
    if (const auto* name = std::get_if<std::string>(&given)) {
        return in_context([] { return "axis"; }, [&] { return find_dimension(*name, array); });
    }
    const int rank = array.info().shape.rank();
    const int axis = std::get<int>(given);
    if (axis < -rank || axis >= rank) throw out_of_bounds("axis {} of an array of {} dimensions", axis, rank);
    return axis < 0 ? axis + rank : axis;
}

/// Each step along an axis on its own. Returns the paths, and sentences about what differs from the source.
std::pair<std::vector<std::string>, std::vector<std::string>> unstacked(const py::dict& given,
                                                                        const std::string& pattern,
                                                                        const std::variant<int, std::string>& axis,
                                                                        const PlaceOptions& place,
                                                                        const WorkOptions& work) {
    const Asked asked = asked_from_python(given);
    return about_keywords(asked, [&] {
        UnstackOptions options = unstack_options(asked.result, asked.recipe, pattern);
        options.arrays.preferred_format = usual_format();
        if (!asked.result.fills.empty()) options.arrays.fill = asked.result.fills.back();
        options.store = place.store();
        std::vector<std::string> notes;
        options.note = [&](const Note& note) { notes.push_back(advised(note.text, note.advice)); };
        return Work(work).run([&](const IoOptions& io) {
            options.io = io;
            const Ingredient& from = std::get<CopyRecipe>(asked.recipe.make).source;
            if (!from.array && DataSet::at(from.path)) {
                const auto* const name = std::get_if<std::string>(&axis);
                const std::string dimension = name != nullptr ? *name : std::to_string(std::get<int>(axis));
                return std::pair(unstack_set(asked.recipe, asked.result, pattern, dimension, options).paths, notes);
            }
            const OpenedRecipe opened = open_recipe(asked.recipe, io);
            options.axis = axis_of(axis, *opened.source);
            return std::pair(unstack(*opened.source, pattern, options).paths, notes);
        });
    });
}

/// The levels of an image and their metadata, in a group or zip. Returns a sentence for each level.
std::vector<std::string> pyramid(const py::dict& given, const py::object& to, const WorkOptions& work) {
    const Asked asked = asked_from_python(given);
    const std::string path = path_from_python(to);
    const auto& recipe = std::get<PyramidRecipe>(asked.recipe.make);
    const std::string& source = recipe.source.part_of.empty() ? recipe.source.path : recipe.source.part_of;
    PyramidOptions options = about_keywords(asked, [&] { return pyramid_options(recipe); });
    if (recipe.source.path.empty()) options.name = "image";
    options.overwrite = asked.result.overwrite;
    options.dry_run = asked.result.dry_run;
    options.arrays = wishes_of(asked.result);
    options.arrays.preferred_format = usual_format();
    if (!asked.result.fills.empty()) options.arrays.fill = asked.result.fills.back();
    options.store = PlaceOptions{.read_only = false}.store();
    const CopiedHierarchy made = Work(work).run([&](const IoOptions& io) {
        if (!source.empty()) require_apart({source}, path);
        if (!options.overwrite && std::filesystem::exists(std::filesystem::symlink_status(path))) {
            throw already_exists("{}: something lies there already", path)
                .advising(Action::overwrite, "replaces levels");
        }
        options.io = io;
        const std::shared_ptr<const ArraySource> of = recipe.source.array ? recipe.source.array : open_source(source);
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
    module.def("make", &made);
    module.def("calc_in_place", &calculate_in_place);
    module.def("unstack", &unstacked);
    module.def("pyramid", &pyramid);
    module.def("require_apart", &require_apart);
}

}  // namespace tessera::python
