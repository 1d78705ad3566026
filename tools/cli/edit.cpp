// tessera set, append, resize
#include <fmt/format.h>

#include <tessera/apart.h>
#include <tessera/append_group.h>
#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_plan.h>
#include <tessera/boxes.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>
#include <tessera/place.h>
#include <tessera/recipe.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>
#include <tessera/update_file.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "blocks.h"
#include "command.h"
#include "edit.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "selected.h"
#include "streams.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

/// Adds to the error of a cancelled edit what it left behind, and to that of a full disk what would help.
template <class Edit>
void run_edit(const std::string& left, const Undoable& keeping, const Edit& edit) {
    try {
        edit();
    } catch (const Error& e) {
        const std::string_view text = e.what();
        if (keeping.has_kept() && e.code() == ErrorCode::io && text.find("No space left") != text.npos) {
            throw e.reworded(e.code(), fmt::format("{}; --no-undo saves room by keeping no old values", text));
        }
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled("interrupted; {}{}", left,
                        keeping.has_kept() ? "; `tessera undo` takes back what was changed" : "");
    }
}

/// The file that a value names, opened: always for "@FILE", else only if it exists. "-" is standard input, where text
/// is set only as "@-". Null for any other value.
std::unique_ptr<ArraySource> named_source(const ArrayFileOptions& options, const std::string& value,
                                          const std::optional<std::string>& as) {
    const DType& dtype = *options.dtype;
    const bool takes_text = dtype.kind() == Kind::bytes || dtype.kind() == Kind::text || dtype.is_variable();
    const auto input = input_stream(value.starts_with('@') ? value.substr(1) : takes_text ? "" : value);
    if (input) return open_stream(read_stream(*input), as, options);
    if (as) throw invalid_argument("--as: only for standard input and pipes, but found {}", value);
    if (value.starts_with('@')) return open_source(value.substr(1), options);
    // A value is rarely a path, and a text may look like one. So only an existing file is resolved as a path.
    const std::filesystem::path path = split_array_path(value).path;
    if (const auto facts = path_facts(path); facts && facts->regular) {
        auto source = at_located(value, [&](const Located& at) {
            const bool archive = at.place && find_array_file_format(at.file.path) != nullptr;
            return at.format != nullptr || archive ? open_source(at, options) : nullptr;
        });
        if (source != nullptr) return source;
    }
    if (names_array_file(value) && !takes_text) {
        throw not_found("{}: no such array file", path.string());
    }
    return nullptr;
}

/// Codes that replace a part: where they stand for what is there already, the codes that are there.
template <class Target>
void keep_present_codes(const Target& array, const Selection& part, const Meaning& meaning, NDArray& codes,
                        const IoOptions& io) {
    if constexpr (std::is_base_of_v<ArraySource, Target>) {
        if (several_codes(meaning)) keep_codes(meaning, read_selection(array, part, io), codes);
    }
}

/// With the array's dtype: codes have the sign that is meant.
template <class Target>
ArrayView as_stored(const Target& array, const NDArray& codes) {
    ArrayView view = codes.view();
    if (view.dtype.kind() != array.dtype().kind()) view.dtype = native_dtype(array.dtype());
    return view;
}

/// Throws unless a file holds what a selection of this shape takes.
template <class Target>
void require_same_elements(const ArrayInfo& found, std::string_view file, const Target& array, const Shape& shape,
                           const Meaning& meaning) {
    if (found.shape != shape) {
        throw invalid_argument("{} has the shape {}, but the selection has {}", file, found.shape.to_string(),
                               shape.to_string());
    }
    if (!found.dtype.equal_but_order(array.dtype()) && !(found.dtype == meaning.stored)) {
        throw invalid_argument("{} holds {}, but {} holds {}; values are not converted", file, found.dtype.to_string(),
                               array.name(), array.dtype().to_string());
    }
}

/// Writes a file over a selection in parts that fit in memory. `Target` is an Array or an ArrayField.
template <class Target>
void set_from_file(Session& session, Target& array, const Selection& selection, const Meaning& meaning,
                   const ArraySource& source, std::string_view file) {
    require_same_elements(source.info(), file, array, selection.shape(), meaning);
    const IoOptions io = session.io();
    if (io.progress != nullptr) io.progress->start(byte_count(selection.shape(), array.dtype().size()), "set");
    array.require_direct(selection);
    IoOptions quiet = io;
    quiet.progress = nullptr;  // progress is counted here, by parts
    // A quarter: the rest is for decoding and encoding.
    const auto most = static_cast<std::int64_t>(session.options().max_memory / 4);
    const auto read = [&](const Region& box) {
        const Region in_file = without_dropped(box, selection);
        NDArray part(source.info().dtype, in_file.extent);
        source.read_into(in_file, part.view(), quiet);
        return part;
    };
    if (source.converted_from() != nullptr && byte_count(selection.shape(), source.info().dtype.size()) > most) {
        // A value that cannot be stored is found before anything is written.
        for_each_box(selection, array.info(), most, [&](const Region& box) { (void)read(box); });
    }
    for_each_box(selection, array.info(), most, [&](const Region& box) {
        NDArray part = read(box);
        keep_present_codes(array, selection.part(box), meaning, part, quiet);
        array.write(selection.part(box), as_stored(array, part), quiet);
        if (io.progress != nullptr) io.progress->advance(byte_count(part.shape(), array.dtype().size()));
    });
}

template <class Target>
void set_to_value(Session& session, Target& array, const Selection& selection, const Meaning& meaning,
                  const std::string& text) {
    IoOptions io = session.io();
    const DType native = native_dtype(array.dtype());
    if (meaning.says_more(native)) {
        const ElementBytes code = code_from_text(meaning, text);
        const auto most = static_cast<std::int64_t>(session.options().max_memory / 4);
        for_each_box(selection, array.info(), most, [&](const Region& box) {
            NDArray part(meaning.stored, without_dropped(box, selection).extent);
            fill_elements(part, meaning.stored, code.data());
            keep_present_codes(array, selection.part(box), meaning, part, io);
            array.write(selection.part(box), as_stored(array, part), io);
        });
        return;
    }
    const ElementBytes element = element_from_text(array.dtype(), text);
    const VariableSlot slot{reinterpret_cast<const char*>(element.data()), element.size()};
    const std::byte* p = array.dtype().is_variable() ? reinterpret_cast<const std::byte*>(&slot) : element.data();
    // One element, repeated by strides of zero: takes no memory for any size of selection.
    const Shape shape = selection.full_shape();
    array.write(selection, ArrayView{p, array.dtype(), shape, Strides::filled(shape.rank(), 0)}, io);
}

}  // namespace

Array open_to_edit(Session& session, const std::string& path) {
    Array array = Array::open(path, session.store());
    if (uses_unknown_zstd(array.dialect(), array.metadata())) {
        session.note(
            fmt::format("{}: {} will not read the chunks that change, because it does not know today's zstd; "
                        "`tessera copy` to another --codec makes an array that it reads",
                        path, array.dialect().cannot_read_zstd));
    }
    return array;
}

Undoable keep_for_undo(const Session& session, const Array& array, bool no_undo) {
    return Undoable(array, {.keep_old = !no_undo, .what = path_value(session.words()).as_string()});
}

Undoable keep_for_undo(const Session& session, const Group& group, bool no_undo) {
    return Undoable(group, {.keep_old = !no_undo, .what = path_value(session.words()).as_string()});
}

namespace {

/// Values as codes of an array. An array that has a meaning of its own is taken by it.
std::unique_ptr<ArraySource> as_codes(std::unique_ptr<ArraySource> values, const Meaning& meaning, const DType& dtype) {
    if (meaning.marks_missing() && values->info().dtype.equal_but_order(meaning.stored)) {
        // No value of 8 bytes stands for a missing one but the mark itself.
        values = shared_source(std::move(values), meaning.attributes);
    }
    values = decoded(std::move(values));
    if (!meaning.is_encoded(dtype) && !(meaning.time && values->info().dtype.kind() == Kind::datetime)) return values;
    return encoded_source(std::move(values), meaning, Value::object());
}

template <class Target>
void set_any(Session& session, Target& array, const Selection& selection, const std::string& value, bool raw,
             const std::optional<std::string>& as = std::nullopt) {
    const DType native = native_dtype(array.dtype());
    Meaning meaning{.stored = native};
    if constexpr (std::is_base_of_v<ArraySource, Target>) {
        if (!raw) meaning = meaning_of(array);
    }
    const bool marked = meaning.marks_missing();
    const DType given = marked || !meaning.says_more(native) ? array.dtype() : decoded_dtype(meaning);
    const auto mark =
        marked ? std::optional(element_to_text(meaning.stored, meaning.missing.front().data())) : std::nullopt;
    if (auto source = named_source({.dtype = given, .missing = mark}, value, as)) {
        const std::string file = value.substr(value.starts_with('@') ? 1 : 0);
        if (!input_stream(file)) source = apart_source(std::move(source), file, array.name(), session.io());
        if (!raw) source = as_codes(std::move(source), meaning, native);
        set_from_file(session, array, selection, meaning, *source, file);
    } else {
        set_to_value(session, array, selection, meaning, value);
    }
}

}  // namespace

void set_elements(Session& session, Array& array, const Selection& selection, const std::string& value, bool raw) {
    set_any(session, array, selection, value, raw);
}

void append_file(Session& session, Array& array, const std::string& file, int axis, const std::optional<Cast>& cast) {
    const auto input = input_stream(file);
    std::unique_ptr<ArraySource> source =
        input ? open_stream(read_stream(*input), std::nullopt, {.dtype = array.dtype()})
              : apart_source(open_source(file, {.dtype = array.dtype()}), file, array.name(), session.io());
    array.append(*fitting_source(std::move(source), array, axis, cast), axis, session.io());
}

namespace {

struct SetOptions {
    std::string path, selection, value;
    std::optional<std::string> as;
    bool no_undo = false;
    bool raw = false;
};

/// An array file that is changed in place, as set_any() takes arrays.
class FileTarget {
public:
    FileTarget(Session& session, const Located& at)
        : path_(at.path), sink_(update_array_file(at.file, session.options().durability != Durability::none)) {
        const std::filesystem::path file = real_path(at.file.path);
        directory_store(file.parent_path(), session.store())->require_unsealed(file.filename().string());
    }

    [[nodiscard]] ArrayInfo info() const { return sink_->info(); }
    [[nodiscard]] DType dtype() const { return info().dtype; }
    [[nodiscard]] Shape shape() const { return info().shape; }
    [[nodiscard]] const std::string& name() const { return path_; }
    void require_direct(const Selection& /*selection*/) const {}
    void write(const Selection& selection, ArrayView in, const IoOptions& io) {
        if (in.shape.rank() != selection.rank()) in = with_dropped(selection, in);
        for_each_box(selection, in,
                     [&](const Region& region, const ArrayView& part) { sink_->write(region, part, io); });
    }
    void finish() { sink_->finish(); }

private:
    /// With the dimensions that the selection drops as length 1.
    static ArrayView with_dropped(const Selection& selection, const ArrayView& in) {
        ArrayView full{in.data, in.dtype, Shape(), Strides()};
        int k = 0;
        for (const Selection::Axis& axis : selection.axes()) {
            full.shape.push_back(axis.dropped ? 1 : in.shape[k]);
            full.strides.push_back(axis.dropped ? 0 : in.strides[k]);
            if (!axis.dropped) ++k;
        }
        return full;
    }

    std::string path_;
    std::unique_ptr<ArraySink> sink_;
};

Selection set_in_file(Session& session, const SetOptions& o, const Located& at) {
    FileTarget file(session, at);
    const Selection selection = about_path(o.path, [&] { return Selection::parse(o.selection, file.shape()); });
    try {
        about_path(o.path, [&] { set_any(session, file, selection, o.value, o.raw, o.as); });
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled("interrupted; part of the selection has already been written");
    }
    file.finish();
    session.note(
        fmt::format("{} is an array file, which is changed in place: `tessera undo` cannot take it back", o.path));
    return selection;
}

/// Returns the selection that was set.
template <class Target>
Selection set_in(Session& session, const SetOptions& o, const Undoable& keeping, Target array) {
    const Selection selection = chosen_part(session, o.path, o.selection, array);
    run_edit("part of the selection has already been written", keeping,
             [&] { about_path(o.path, [&] { set_any(session, array, selection, o.value, o.raw, o.as); }); });
    return selection;
}

Selection set_in_array(Session& session, const SetOptions& o) {
    const ArrayPath path = split_array_path(o.path);  // "table.zarr::close" is one field
    Array array = open_to_edit(session, path.member ? path.path.string() : o.path);
    const Undoable keeping = keep_for_undo(session, array, o.no_undo);
    return path.member ? set_in(session, o, keeping, array.field(*path.member))
                       : set_in(session, o, keeping, std::move(array));
}

int set(Session& session, const SetOptions& o) {
    // Only a path that is named like a file is looked at twice.
    const auto at = names_array_file(o.path) ? std::optional(locate(o.path)) : std::nullopt;
    const bool file = at && at->format != nullptr;
    const Selection selection = file ? set_in_file(session, o, *at) : set_in_array(session, o);
    const std::int64_t count = element_count(selection.shape());
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("shape", shape_value(selection.shape()));
    value.set("elements", count);
    report(session, value, fmt::format("set {} of {}", count_text(count, "element"), o.path));
    return exit_done;
}

struct AppendOptions {
    std::string path;
    std::vector<std::string> files;
    std::optional<std::string> axis, cast;
    bool skip_old = false, no_undo = false;
    [[nodiscard]] std::string what() const {
        return files.size() == 1 ? files.front() : fmt::format("{} files", files.size());
    }
};

/// Several files as one array.
std::unique_ptr<ArraySource> joined_files(const std::vector<std::string>& files, int axis) {
    JoinRecipe join{.axis = std::to_string(axis)};
    for (const std::string& file : files) join.parts.push_back({.path = file});
    const auto opened = std::make_shared<OpenedRecipe>(open_recipe({.make = std::move(join)}));
    return shared_source({opened, opened->source.get()});
}

std::optional<Cast> cast_of(const AppendOptions& o) {
    if (!o.cast) return std::nullopt;
    return in_context([] { return "--cast"; }, [&] { return parse_cast(*o.cast); });
}

int append_to_group(Session& session, const AppendOptions& o, const Group& group) {
    if (!o.axis || o.axis->find_first_not_of("-0123456789") == std::string::npos) {
        throw invalid_argument("{} is a group: name the dimension along which its arrays grow, as in --axis time",
                               o.path);
    }
    const AppendGroupOptions options{
        .cast = cast_of(o), .skip_old = o.skip_old, .edit = {.keep_old = !o.no_undo}, .io = session.io()};
    std::vector<Located> files;
    for (const std::string& file : o.files) files.push_back(locate(file));
    const std::vector<AppendedArray> grown = append_group(group, files, *o.axis, options);
    Value arrays = Value::array();
    std::vector<std::string> paths{o.path};
    for (const AppendedArray& one : grown) {
        arrays.push_back(Value{{"path", path_value(one.path)},
                               {"axis", one.axis},
                               {"old_shape", shape_value(one.before)},
                               {"shape", shape_value(one.after)}});
        paths.push_back((std::filesystem::path(o.path) / one.path).string());
    }
    note_stale(session, paths);
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("dimension", *o.axis);
    value.set("arrays", std::move(arrays));
    const AppendedArray& first = grown.front();
    report(session, value,
           fmt::format("appended {} to {}: {} {} → {}, {}", o.what(), o.path, *o.axis, first.before[first.axis],
                       first.after[first.axis], count_text(std::ssize(grown), "array")));
    return exit_done;
}

void append_all(Session& session, Array& array, const std::vector<std::string>& files, int axis,
                const std::optional<Cast>& cast) {
    auto joined = joined_files(files, axis);
    for (const std::string& file : files) joined = apart_source(std::move(joined), file, array.name(), session.io());
    array.append(*fitting_source(std::move(joined), array, axis, cast), axis, session.io());
}

int append(Session& session, const AppendOptions& o) {
    if (const Located at = locate(o.path, session.store()); at.kind == PathKind::group || at.kind == PathKind::folder) {
        if (auto group = group_at(at)) return append_to_group(session, o, *group);
    }
    if (o.skip_old) throw invalid_argument("--skip-old: only of a group, whose coordinates say what is old");
    Array array = open_to_edit(session, o.path);
    const Undoable keeping = keep_for_undo(session, array, o.no_undo);
    const int axis = in_context([] { return "--axis"; }, [&] { return find_dimension(o.axis.value_or("0"), array); });
    const auto cast = cast_of(o);
    const Shape before = array.shape();
    run_edit(fmt::format("{} keeps its shape {}", o.path, before.to_string()), keeping, [&] {
        o.files.size() == 1 ? append_file(session, array, o.files.front(), axis, cast)
                            : append_all(session, array, o.files, axis, cast);
    });
    note_stale(session, {o.path});
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("axis", axis);
    value.set("old_shape", shape_value(before));
    value.set("shape", shape_value(array.shape()));
    report(session, value,
           fmt::format("appended {} to {}: {} → {}", o.what(), o.path, shape_text(before), shape_text(array.shape())));
    return exit_done;
}

struct ResizeOptions {
    std::string path, shape;
    bool no_undo = false;
};

int resize(Session& session, const ResizeOptions& o) {
    Array array = open_to_edit(session, o.path);
    const Undoable keeping = keep_for_undo(session, array, o.no_undo);
    const Shape shape = parse_shape_option("SHAPE", o.shape);
    const Shape before = array.shape();
    run_edit(fmt::format("`tessera info {}` shows its present shape; run the same command again", o.path), keeping,
             [&] { array.resize(shape, session.io()); });
    note_stale(session, {o.path});
    if (const auto note = undefined_growth_note(array.metadata(), before)) session.note(o.path + ": " + *note);
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("old_shape", shape_value(before));
    value.set("shape", shape_value(shape));
    report(session, value, fmt::format("resized {}: {} → {}", o.path, shape_text(before), shape_text(shape)));
    return exit_done;
}

}  // namespace

Run declare_set(CLI::App& app) {
    auto o = std::make_shared<SetOptions>();
    app.add_option("PATH", o->path, "an array, a field of one (table.zarr::close), or a .npy or .ra")
        ->required()
        ->option_text(" ");
    app.add_option("SELECTION", o->selection, selection_forms)->required()->option_text(" ");
    app.add_option("VALUE", o->value, "one value for every element, or an array file; - is standard input")
        ->required()
        ->option_text(" ");
    app.add_option("--as", o->as, "what a pipe holds: csv, or npy (default: its first bytes tell)")
        ->option_text("FORMAT");
    app.add_flag("--raw", o->raw, raw_text);
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return again_when_replaced(o->path, [&] { return set(session, *o); }); };
}

Run declare_append(CLI::App& app) {
    auto o = std::make_shared<AppendOptions>();
    app.add_option("PATH", o->path, "an array, or a group whose arrays grow along a dimension")
        ->required()
        ->option_text(" ");
    app.add_option("FILES…", o->files, "array files or arrays; for a group, groups or files of several arrays")
        ->required()
        ->expected(1, -1)
        ->option_text(" ");
    app.add_option("--axis", o->axis, "the dimension that grows, by name or number (default 0; a group needs a name)")
        ->option_text("DIM");
    app.add_option("--cast", o->cast,
                   "convert elements of another dtype: safe, same_kind, unsafe (as NumPy's astype), round, clip")
        ->option_text("RULE");
    app.add_flag("--skip-old", o->skip_old, "leave out what the group has already, by the values of the dimension");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return again_when_replaced(o->path, [&] { return append(session, *o); }); };
}

Run declare_resize(CLI::App& app) {
    auto o = std::make_shared<ResizeOptions>();
    app.add_option("PATH", o->path, "an array")->required()->option_text(" ");
    app.add_option("SHAPE", o->shape, "its new lengths, such as 2000000,1000")->required()->option_text(" ");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return again_when_replaced(o->path, [&] { return resize(session, *o); }); };
}

}  // namespace tessera::cli
