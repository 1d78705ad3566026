// Copying an array: import, export, rechunking and change of format.
#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/chunk_bytes.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/element.h>
#include <tessera/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// What a copy is to have otherwise than its source.
struct CopyWishes {
    std::optional<Shape> chunks;
    std::optional<Shape> shards;  ///< empty: none
    std::optional<std::string> codec;
    std::optional<std::string> order;
    std::optional<std::string> format;
    std::optional<std::string> separator;
    std::optional<Value> fill;
};

CopyWishes wishes_of(const py::dict& options) {
    CopyWishes w;
    const auto given = [&](const char* name) { return options.contains(name) && !options[name].is_none(); };
    if (given("chunks")) w.chunks = shape_from_python(options["chunks"]);
    if (options.contains("shards")) w.shards = shape_from_python(options["shards"]);
    if (given("codec")) w.codec = py::cast<std::string>(options["codec"]);
    if (given("order")) w.order = py::cast<std::string>(options["order"]);
    if (given("format")) w.format = py::cast<std::string>(options["format"]);
    if (given("separator")) w.separator = py::cast<std::string>(options["separator"]);
    if (options.contains("fill_value")) w.fill = value_from_python(options["fill_value"]);
    return w;
}

/// The lengths that a selection leaves of a chunk or shard.
Shape selected_lengths(const Shape& lengths, const Selection& selection) {
    Shape kept;
    for (int d = 0; d < lengths.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        if (!axis.dropped) kept.push_back(axis.count == 0 ? lengths[d] : std::min(lengths[d], axis.count));
    }
    return kept;
}

struct Planned {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    std::vector<std::string> changes;
};

void apply_fill(ArrayMetadata& m, const CopyWishes& w) {
    if (!w.fill) return;
    m.fill = {.bytes = std::nullopt, .spelling = *w.fill, .error = {}};
    if (!w.fill->is_null()) m.fill.bytes = element_from_value(m.dtype, *w.fill, Assign::exact);
}

/// Of an array of chunks: its own metadata, with what is wished for.
Planned plan_copy(const Array& source, const Selection& selection, const CopyWishes& w) {
    Planned plan{&source.dialect(), source.metadata(), source.attributes().stored(), {}};
    if (w.format) plan.dialect = &dialect_named(*w.format);
    ArrayMetadata& m = plan.metadata;
    ChunkLayout layout = chunk_layout(m);
    const bool dropped = selection.shape().rank() != m.shape.rank();
    layout.chunks = selected_lengths(layout.chunks, selection);
    if (!layout.shards.empty()) layout.shards = selected_lengths(layout.shards, selection);
    std::vector<std::optional<std::string>> names;
    for (std::size_t d = 0; d < m.dimension_names.size(); ++d) {
        if (!selection.axes()[d].dropped) names.push_back(m.dimension_names[d]);
    }
    m.dimension_names = std::move(names);
    m.shape = selection.shape();
    if (w.chunks) layout.chunks = *w.chunks;
    if (w.shards) layout.shards = *w.shards;
    for (int d = 0; d < layout.shards.rank(); ++d) {
        if (!w.shards) layout.shards[d] = ceil_div(layout.shards[d], layout.chunks[d]) * layout.chunks[d];
    }
    const bool transposed = std::ranges::any_of(layout.codecs, [](const auto& c) { return c.name == "transpose"; });
    const Order order = w.order ? (*w.order == "F" ? Order::F : Order::C) : transposed ? Order::F : Order::C;
    if (w.codec) layout.codecs = parse_codecs(*w.codec);
    if (w.codec || w.order || dropped) {
        std::erase_if(layout.codecs, [](const auto& c) { return c.name == "transpose"; });
        layout.codecs = complete_codecs(m.dtype, m.shape.rank(), order, std::move(layout.codecs));
    }
    set_chunk_layout(m, layout);
    apply_fill(m, w);
    if (w.separator) m.keys = m.keys.with_separator(*w.separator);
    Conversion converted = convert_metadata(m, plan.attributes, source.dialect(), *plan.dialect, w.codec.has_value());
    plan.metadata = std::move(converted.metadata);
    plan.attributes = std::move(converted.attributes);
    plan.changes = std::move(converted.changes);
    return plan;
}

/// Of anything else: a new array with the defaults of create.
Planned plan_new(const ArraySource& source, const Selection& selection, const CopyWishes& w) {
    ArrayOptions options;
    options.shape = selection.shape();
    options.dtype = source.info().dtype;
    if (w.chunks) options.chunks = *w.chunks;
    if (w.shards) options.shards = *w.shards;
    if (w.codec) options.codec = *w.codec;
    if (w.format) options.format = *w.format;
    if (w.separator) options.separator = *w.separator;
    if (w.order && *w.order == "F") options.order = Order::F;
    if (w.fill) options.fill_value = w.fill;
    options.attributes = source.attribute_values();
    return {&dialect_named(options.format), make_metadata(options), new_attributes(options), {}};
}

/// How a copy is made.
struct CopyWay {
    bool overwrite = false;
    bool resume = false;  ///< go on with what was kept, and keep what is interrupted
    bool link = false;    ///< chunk files by hard links
    bool dry_run = false;
};

/// What is copied, exactly enough to know the same copy again where one is gone on with.
std::string made_from(const ArraySource& source, const Selection& selection, bool resume) {
    std::string text = fmt::format("tessera.copy of {}[{}]", source.name(), selection.to_string());
    if (!resume) return text;
    if (const auto* const array = dynamic_cast<const Array*>(&source))
        return text + " " + ChunkBytes(*array).state().sum;
    std::error_code ignored;
    const std::filesystem::path file = split_array_path(source.name()).path;
    const auto changed = std::filesystem::last_write_time(file, ignored).time_since_epoch().count();
    return fmt::format("{} {} {}", text, std::filesystem::file_size(file, ignored), changed);
}

/// Why chunks are not copied as they are; nothing where they are.
std::optional<std::string> why_not_as_they_are(const Array* from, const Selection& selection,
                                               const ArrayMetadata& metadata) {
    if (from == nullptr) return "the source is a file";
    if (!(selection == Selection::all(from->shape()))) return "a part is copied";
    return why_recode(from->metadata(), metadata);
}

void copy_to_store(const ArraySource& source, const std::string& to, const Selection& selection, const CopyWishes& w,
                   const CopyWay& way, const StoreOptions& store, const IoOptions& io,
                   std::vector<std::string>& changes) {
    const auto* const array = dynamic_cast<const Array*>(&source);
    const Planned plan = array != nullptr ? plan_copy(*array, selection, w) : plan_new(source, selection, w);
    changes = plan.changes;
    const auto recode = why_not_as_they_are(array, selection, plan.metadata);
    if (way.link && recode) throw invalid_argument(fmt::format("link=True: chunks cannot be linked: {}", *recode));
    if (way.dry_run) {
        plan.dialect->require_expressible(plan.metadata);
        changes.push_back(
            recode ? fmt::format("chunks are encoded anew: {}", *recode)
                   : std::string(way.link ? "chunks are linked as they are" : "chunks are copied as they are"));
        return;
    }
    NewArray made(to, *plan.dialect, plan.metadata, {.overwrite = way.overwrite, .resume = way.resume, .store = store},
                  made_from(source, selection, way.resume));
    if (plan.attributes && !plan.attributes->as_object().empty()) made.array().attributes().replace(*plan.attributes);
    try {
        if (!recode) {
            copy_chunks(*array, made.array(), way.link, io);
        } else {
            CopyOptions options{.io = io};
            if (!(selection == Selection::all(source.info().shape))) options.selection = selection;
            const Array& there = made.array();
            if (made.resumed()) options.done = [&](const Region& region) { return there.is_stored(region); };
            copy_array(source, made.array(), options);
        }
    } catch (const Error&) {
        if (way.resume) static_cast<void>(made.keep());
        throw;
    }
    made.commit();
}

void copy_to_file(const ArraySource& source, const std::string& to, const Selection& selection,
                  const ArrayFileOptions& options, bool overwrite, const IoOptions& io) {
    const ArrayPath split = split_array_path(to);
    if (!overwrite && std::filesystem::exists(split.path)) {
        throw already_exists(fmt::format("{}: a file is there; overwrite=True replaces it", split.path.string()));
    }
    const auto converted = convert_for_array_file(split, source, options, io);
    const ArraySource& from = converted ? *converted : source;
    const auto sink = create_array_file(split, from.info().dtype, selection.shape(), options);
    copy_array(from, *sink, {.io = io, .selection = selection});
}

/// Returns what became otherwise than in the source.
std::vector<std::string> copy_path(ArrayHandle& from, const Picked* picked, const py::object& to,
                                   const py::dict& options, const CopyWay& way, const PlaceOptions& place,
                                   const WorkOptions& work) {
    const auto parts = from.parts();
    const ArraySource& source = parts->readable();
    const std::string target = path_from_python(to);
    const CopyWishes wishes = wishes_of(options);
    const Selection selection = picked != nullptr ? picked->selection : Selection::all(source.info().shape);
    const std::string extension = split_array_path(target).path.extension().string();
    const bool file =
        std::ranges::any_of(array_file_formats(), [&](const auto& f) { return f.extension == extension; });
    ArrayFileOptions file_options;
    if (wishes.order && *wishes.order == "F") file_options.order = Order::F;
    if (options.contains("deflate")) file_options.deflate_level = py::cast<int>(options["deflate"]);
    if (file && (way.resume || way.link)) {
        throw invalid_argument(fmt::format("{}: an array file is written as a whole, without resume and link", target));
    }
    std::vector<std::string> changes;
    Work(work).run([&](const IoOptions& io) {
        if (!file) return copy_to_store(source, target, selection, wishes, way, place.store(), io, changes);
        if (!way.dry_run) copy_to_file(source, target, selection, file_options, way.overwrite, io);
    });
    return changes;
}

}  // namespace

void bind_copies(py::module_& module) {
    py::class_<CopyWay>(module, "CopyWay").def(py::init([](bool overwrite, bool resume, bool link, bool dry_run) {
        return CopyWay{overwrite, resume, link, dry_run};
    }));
    module.def("copy", &copy_path);
    module.def("is_array_file", [](const py::object& path) {
        const std::string extension = split_array_path(path_from_python(path)).path.extension().string();
        return std::ranges::any_of(array_file_formats(), [&](const auto& f) { return f.extension == extension; });
    });
}

}  // namespace tessera::python
