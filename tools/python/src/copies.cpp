// Copying: import, export, rechunking and change of format, of one array or of everything below a path.
#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/chunk_bytes.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/divided_recipe.h>
#include <tessera/error_text.h>

#include <fmt/format.h>

#include <algorithm>

#include "convert.h"
#include "handle.h"
#include "recipes.h"

namespace tessera::python {

namespace {

/// Identifies a copy, to recognise it when it is resumed.
std::string made_from(const ArraySource& source, const std::optional<std::string>& selection, bool resume) {
    std::string text = fmt::format("tessera.copy of {}[{}]", source.name(), selection.value_or("..."));
    if (!resume) return text;
    if (const auto* const array = as_array(source)) return text + " " + ChunkBytes(*array).state().sum;
    std::error_code ignored;
    const std::filesystem::path file = split_array_path(source.name()).path;
    const auto changed = std::filesystem::last_write_time(file, ignored).time_since_epoch().count();
    return fmt::format("{} {} {}", text, std::filesystem::file_size(file, ignored), changed);
}

/// Throws if links were requested and are impossible: never copies instead, nor links only a part.
template <class Source>
void require_links(const Source& source, const std::string& to, HierarchyOptions options) {
    options.dry_run = true;
    options.note = nullptr;
    for (const PlannedCopy& job : copy_hierarchy(source, to, options).planned) {
        if (!job.plan.recode) continue;
        throw invalid_argument("link=True: {}: chunks cannot be linked: {}", job.source, *job.plan.recode);
    }
}

/// Sentences about differences from the source; for several arrays, each with its path.
std::vector<std::string> changes_of(const CopiedHierarchy& copied, const ResultOptions& way) {
    std::vector<std::string> changes;
    for (const PlannedCopy& job : copied.planned) {
        const std::string place = job.node.empty() ? "" : job.node + ": ";
        for (const Note& change : job.plan.changes) changes.push_back(place + advised(change.text, change.advice));
        if (!way.dry_run) continue;
        changes.push_back(place + (job.plan.recode ? fmt::format("chunks are encoded anew: {}", *job.plan.recode)
                                   : way.link      ? "chunks are linked as they are"
                                                   : "chunks are copied as they are"));
    }
    for (const LeftOut& array : copied.left_out) changes.push_back(fmt::format("left out: {}", array.why));
    for (const PassedFolder& folder : copied.passed) changes.push_back(fmt::format("left out: {}", folder.path));
    return changes;
}

/// Throws if the copy lacks arrays, unless the caller allows it. The readable arrays were copied.
void require_whole(const CopiedHierarchy& copied, const ResultOptions& way) {
    if (way.skip_unreadable || way.dry_run || copied.left_out.empty()) return;
    throw corrupt(
        "{}: the copy in {} lacks {} array{} that cannot be read (skip_unreadable=True is "
        "content with that); the first: {}",
        copied.left_out.front().source, copied.path, copied.left_out.size(), copied.left_out.size() == 1 ? "" : "s",
        copied.left_out.front().why);
}

/// `source` is a path or an open array.
template <class Source>
std::vector<std::string> copy_at(const Source& source, const std::string& to, HierarchyOptions options,
                                 const ResultOptions& way) {
    if (way.link) require_links(source, to, options);
    std::vector<std::string> lost;  // of groups; what changes about arrays stands in their plans
    if (way.drop_attributes) {
        options.note = [&](const Note& note) { lost.push_back(advised(note.text, note.advice)); };
    }
    const CopiedHierarchy copied = copy_hierarchy(source, to, options);
    require_whole(copied, way);
    std::vector<std::string> changes = changes_of(copied, way);
    for (std::string& note : lost) {
        if (std::ranges::find(changes, note) == changes.end()) changes.push_back(std::move(note));
    }
    return changes;
}

/// Copies an open array, or everything at and below a path, which is opened as `from` says. `picked`: the part. Returns
/// sentences about differences from the source.
std::vector<std::string> copy(const py::dict& given, const Picked* picked, const PlaceOptions& from,
                              const py::object& destination, const PlaceOptions& place, const WorkOptions& work) {
    Asked asked = asked_from_python(given);
    const std::string to = path_from_python(destination);
    // No structured binding, which Clang 14 captures in no lambda.
    const Ingredient& source = std::get<CopyRecipe>(asked.recipe.make).source;
    const std::string& path = source.path;
    const auto& array = source.array;
    if (picked != nullptr && !(picked->selection == Selection::all(array->info().shape))) {
        asked.recipe.selection = picked->selection.to_string();
    }
    const bool file = named_array_file_format(to) != nullptr;
    return about_keywords(asked, [&] {
        return Work(work).run([&](const IoOptions& io) {
            std::vector<std::string> notes;
            HierarchyOptions options = hierarchy_options(asked, to, io, notes);
            if (file && asked.result.dry_run) return std::vector<std::string>();
            options.store = place.store();
            options.from = from.store();
            // An array keeps its codec; a file has none.
            const bool anew = array && as_array(*array) == nullptr && !file;
            if (std::string codec = anew && !options.arrays.codec ? usual_codec() : ""; !codec.empty()) {
                options.arrays.codec = std::move(codec);
            }
            if (array) options.made_from = made_from(*array, options.selection, asked.result.resume);
            const auto parts = divided_for(rounded_for(asked.recipe, asked.result, to), to);
            if (parts) {
                make_set(options, *parts, to,
                         [&](const Note& note) { notes.push_back(advised(note.text, note.advice)); });
            }
            std::vector<std::string> changes =
                array && !parts ? copy_at(*array, to, std::move(options), asked.result)
                                : copy_at(array ? array->name() : path, to, std::move(options), asked.result);
            changes.insert(changes.end(), notes.begin(), notes.end());
            return changes;
        });
    });
}

}  // namespace

void bind_copies(py::module_& module) {
    module.def("copy", &copy);
    module.def("require_no_other_file", [](const py::object& path) { require_no_other_file(path_from_python(path)); });
    module.def("is_array_file",
               [](const py::object& path) { return named_array_file_format(path_from_python(path)) != nullptr; });
}

}  // namespace tessera::python
