// Copying: import, export, rechunking and change of format, of one array or of everything below a path.
#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/chunk_bytes.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/rounding.h>
#include <tessera/where.h>

#include <fmt/format.h>

#include <algorithm>

#include "convert.h"
#include "copies.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// Options of a copy.
struct CopyWay {
    bool overwrite = false;
    bool resume = false;  ///< resume an unfinished copy, and keep an interrupted one
    bool link = false;    ///< chunk files by hard links
    bool dry_run = false;
    bool skip_unreadable = false;  ///< unreadable arrays of a hierarchy are left out
    bool verify = false;           ///< chunk files are decoded before they are copied as they are
    std::shared_ptr<std::set<std::string>> said = std::make_shared<std::set<std::string>>();  ///< of arrays as read
};

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
std::vector<std::string> changes_of(const CopiedHierarchy& copied, const CopyWay& way) {
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
void require_whole(const CopiedHierarchy& copied, const CopyWay& way) {
    if (way.skip_unreadable || way.dry_run || copied.left_out.empty()) return;
    throw corrupt(
        "{}: the copy in {} lacks {} array{} that cannot be read (skip_unreadable=True is "
        "content with that); the first: {}",
        copied.left_out.front().source, copied.path, copied.left_out.size(), copied.left_out.size() == 1 ? "" : "s",
        copied.left_out.front().why);
}

HierarchyOptions hierarchy_options(const std::string& to, const py::dict& options, const CopyWay& way,
                                   const PlaceOptions& place) {
    HierarchyOptions made{.arrays = wishes_of(options),
                          .overwrite = way.overwrite,
                          .resume = way.resume,
                          .link = way.link,
                          .verify = way.verify,
                          .dry_run = way.dry_run,
                          .skip_unreadable = way.skip_unreadable,
                          .store = place.store()};
    if (options.contains("cf")) {
        const std::string cf = py::cast<std::string>(options["cf"]);
        if (cf != "decode" && cf != "encode")
            throw invalid_argument("cf: expected 'decode' or 'encode', found '{}'", cf);
        made.view = [decode = cf == "decode"](std::unique_ptr<ArraySource> opened) {
            return decode ? decode_cf(std::move(opened)) : encode_cf(std::move(opened));
        };
    }
    const auto text = [&](const char* name) {
        return options.contains(name) ? py::cast<std::string>(options[name]) : std::string();
    };
    if (auto rounding = Rounding::parse(text("keep_bits"), text("max_error"))) {
        rounding->copied_to(to, made);
        made.view = [rounding = *rounding, first = made.view, said = way.said](std::unique_ptr<ArraySource> opened) {
            std::string why;
            auto source = rounded(first ? first(std::move(opened)) : std::move(opened), rounding, &why);
            if (!why.empty()) said->insert(std::move(why));
            return source;
        };
    }
    if (options.contains("where")) {
        // Rows are picked first, of the numbers as they are stored.
        made.view = [condition = py::cast<std::string>(options["where"]),
                     then = made.view](std::unique_ptr<ArraySource> opened) {
            auto rows = where_source(std::move(opened), condition);
            return then ? then(std::move(rows)) : std::move(rows);
        };
    }
    made.drop_attributes = options.contains("drop_attributes");
    if (options.contains("deflate")) made.deflate_level = py::cast<int>(options["deflate"]);
    return made;
}

/// `source` is a path or an open array.
template <class Source>
std::vector<std::string> copy_at(const Source& source, const std::string& to, HierarchyOptions options,
                                 const CopyWay& way, const WorkOptions& work) {
    const bool file = named_array_file_format(to) != nullptr;
    if (file && (way.resume || way.link)) {
        throw invalid_argument("{}: an array file is written as a whole, without resume and link", to);
    }
    if (file && way.dry_run) return {};
    return Work(work).run([&](const IoOptions& io) {
        options.io = io;
        if (way.link) require_links(source, to, options);
        std::vector<std::string> lost;  // of groups; what changes about arrays stands in their plans
        if (options.drop_attributes) {
            options.note = [&](const Note& note) { lost.push_back(advised(note.text, note.advice)); };
        }
        const CopiedHierarchy copied = copy_hierarchy(source, to, options);
        require_whole(copied, way);
        std::vector<std::string> changes = changes_of(copied, way);
        for (std::string& note : lost) {
            if (std::ranges::find(changes, note) == changes.end()) changes.push_back(std::move(note));
        }
        changes.insert(changes.end(), way.said->begin(), way.said->end());
        return changes;
    });
}

/// Copies an open array. Returns sentences about differences from the source.
std::vector<std::string> copy_array_handle(ArrayHandle& from, const Picked* picked, const py::object& to,
                                           const py::dict& options, const CopyWay& way, const PlaceOptions& place,
                                           const WorkOptions& work) {
    const auto parts = from.parts();
    const ArraySource& source = parts->readable();
    HierarchyOptions made = hierarchy_options(path_from_python(to), options, way, place);
    if (picked != nullptr && !(picked->selection == Selection::all(source.info().shape))) {
        made.selection = picked->selection.to_string();
    }
    made.made_from = made_from(source, made.selection, way.resume);
    // An array keeps its codec; a file has none.
    const bool anew = as_array(source) == nullptr && named_array_file_format(path_from_python(to)) == nullptr;
    if (std::string codec = anew && !made.arrays.codec ? usual_codec() : ""; !codec.empty()) {
        made.arrays.codec = std::move(codec);
    }
    return copy_at(source, path_from_python(to), std::move(made), way, work);
}

/// Copies everything at and below a path, which is opened as `source` says.
std::vector<std::string> copy_tree(const py::object& from, const PlaceOptions& source, const py::object& to,
                                   const py::dict& options, const CopyWay& way, const PlaceOptions& place,
                                   const WorkOptions& work) {
    HierarchyOptions made = hierarchy_options(path_from_python(to), options, way, place);
    made.from = source.store();
    return copy_at(path_from_python(from), path_from_python(to), std::move(made), way, work);
}

}  // namespace

ArrayWishes wishes_of(const py::dict& options) {
    ArrayWishes w;
    w.preferred_format = usual_format();
    const auto given = [&](const char* name) { return options.contains(name) && !options[name].is_none(); };
    if (given("chunks") && py::isinstance<py::bool_>(options["chunks"])) {
        throw invalid_argument("chunks: expected the lengths of a chunk; without them those of the source are kept");
    }
    if (given("chunks")) lengths_from_python(options["chunks"]).give(w.chunks, w.edges);
    if (options.contains("shards")) lengths_from_python(options["shards"]).give(w.shards, w.shard_edges);
    if (given("codec")) w.codec = py::cast<std::string>(options["codec"]);
    if (given("order")) w.order = py::cast<std::string>(options["order"]) == "F" ? Order::F : Order::C;
    if (given("format")) w.format = py::cast<std::string>(options["format"]);
    if (given("structures")) w.structures = py::cast<std::string>(options["structures"]);
    if (given("separator")) w.separator = py::cast<std::string>(options["separator"]);
    if (given("dims")) {
        w.dimension_names = py::cast<std::vector<std::optional<std::string>>>(options["dims"]);
        in_context([] { return "dims"; }, [&] { require_distinct_names(*w.dimension_names); });
    }
    if (options.contains("fill_value")) w.fill = value_from_python(options["fill_value"]);
    return w;
}

void bind_copies(py::module_& module) {
    py::class_<CopyWay>(module, "CopyWay")
        .def(py::init([](bool overwrite, bool resume, bool link, bool dry_run, bool skip_unreadable, bool verify) {
                 return CopyWay{overwrite, resume, link, dry_run, skip_unreadable, verify};
             }),
             py::kw_only(), py::arg("overwrite"), py::arg("resume"), py::arg("link"), py::arg("dry_run"),
             py::arg("skip_unreadable"), py::arg("verify") = false);
    module.def("copy", &copy_array_handle);
    module.def("copy_tree", &copy_tree);
    module.def("require_no_other_file", [](const py::object& path) { require_no_other_file(path_from_python(path)); });
    module.def("is_array_file",
               [](const py::object& path) { return named_array_file_format(path_from_python(path)) != nullptr; });
}

}  // namespace tessera::python
