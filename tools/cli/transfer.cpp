// tessera import, export, copy, rechunk
#include "transfer.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "bundle.h"
#include "options.h"
#include "report.h"
#include "tree.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

/// What was made, for the report.
struct Made {
    std::string path;
    DType dtype;
    Shape shape;
    std::optional<Shape> chunk_shape;  ///< none for an array file
    std::int64_t chunks = 0;
    std::uint64_t bytes = 0;  ///< stored

    [[nodiscard]] std::uint64_t logical() const { return static_cast<std::uint64_t>(byte_count(shape, dtype.size())); }
};

Made made_of(const std::string& path, const Array& array) {
    const StoredSize stored = array.stored_size();
    return {path, array.dtype(), array.shape(), array.chunks(), stored.chunks, stored.bytes};
}

Value made_value(const Made& made) {
    Value value = Value::object();
    value.set("path", path_value(made.path));
    value.set("dtype", made.dtype.descr());
    value.set("shape", shape_value(made.shape));
    if (made.chunk_shape) {
        value.set("chunks", shape_value(*made.chunk_shape));
        value.set("chunks_stored", made.chunks);
    }
    value.set("logical_bytes", made.logical());
    value.set("stored_bytes", made.bytes);
    value.set("ratio", ratio(made.logical(), made.bytes));
    return value;
}

std::string made_text(const Made& made, std::string_view done) {
    const std::string chunks =
        made.chunk_shape ? fmt::format("{} of {}, ", count_text(made.chunks, "chunk"), shape_text(*made.chunk_shape))
                         : "";
    return fmt::format("{} {} {}, {} → {} ({}{}, ratio {})", done, shape_text(made.shape), made.dtype.to_string(),
                       bytes_text(made.logical()), made.path, chunks, bytes_text(made.bytes),
                       ratio_text(made.logical(), made.bytes));
}

CopyOptions copy_options(Session& session, const std::optional<Selection>& selection) {
    return {.io = session.io(), .selection = selection};
}

/// Chunk lengths of the dimensions that a selection keeps, cut to what is left of them.
Shape selected_chunks(const Shape& chunks, const Selection& selection) {
    Shape kept;
    for (int d = 0; d < chunks.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        if (!axis.dropped) kept.push_back(axis.count == 0 ? chunks[d] : std::min(chunks[d], axis.count));
    }
    return kept;
}

/// What is copied, exactly enough to know the same copy again: which file or array, as it is now, and how it is read.
std::string made_from(const ArraySource& from, const TransferOptions& o, const std::optional<Selection>& selection) {
    const ArrayInfo info = from.info();
    const fs::path path = fs::absolute(split_array_path(from.name()).path);
    // A file changes as a whole; of an array the folders change with every chunk that is replaced in them.
    std::string state;
    std::error_code ignored;
    std::vector<fs::path> parts{path};
    if (fs::is_directory(path, ignored)) {
        for (const auto& entry : fs::directory_iterator(path, ignored)) parts.push_back(entry.path());
        std::ranges::sort(parts);
    }
    for (const fs::path& part : parts) {
        const auto changed = fs::last_write_time(part, ignored).time_since_epoch().count();
        state += fmt::format(" {}", changed);
        if (fs::is_regular_file(part, ignored)) state += fmt::format("/{}", fs::file_size(part, ignored));
    }
    return printable(fmt::format("{} in {}, {} {}{}{}, changed{}", from.name(), path.string(), info.dtype.to_string(),
                                 info.shape.to_string(), selection ? fmt::format(" [{}]", selection->to_string()) : "",
                                 o.reverse_dims ? " reversed" : "", state));
}

/// The destination of a copied array: all of its metadata but what the options change.
NewArray copy_of_array(const Array& from, const TransferOptions& o, const std::optional<Selection>& selection,
                       const std::string& path) {
    const Dialect& dialect = o.format ? dialect_named(*o.format) : from.dialect();
    ArrayMetadata metadata = from.metadata();
    if (&dialect != &from.dialect()) {
        metadata.keys = dialect.default_keys();
        metadata.unknown = Value::object();
    }
    if (selection) {
        metadata.shape = selection->shape();
        metadata.chunks = selected_chunks(metadata.chunks, *selection);
        metadata.dimension_names.clear();
    }
    if (o.chunks) metadata.chunks = parse_shape_option("--chunks", *o.chunks);
    if (o.codec)
        metadata.codecs = complete_codecs(metadata.dtype, metadata.shape.rank(), Order::C, parse_codecs(*o.codec));
    if (o.fill) {
        const Value fill = json_or_text(*o.fill);
        metadata.fill = {.bytes = std::nullopt, .spelling = fill, .error = {}};
        if (!fill.is_null()) {
            metadata.fill.bytes = in_context([] { return "--fill"; },
                                             [&] { return element_from_value(metadata.dtype, fill, Assign::exact); });
        }
    }
    return {path,
            dialect,
            std::move(metadata),
            {.overwrite = o.overwrite, .resume = o.resume},
            made_from(from, o, selection)};
}

NewArray new_array(const ArraySource& from, const TransferOptions& o, const std::optional<Selection>& selection,
                   const std::string& path) {
    if (const auto* array = dynamic_cast<const Array*>(&from)) return copy_of_array(*array, o, selection, path);
    ArrayOptions options;
    options.shape = selection ? selection->shape() : from.info().shape;
    options.dtype = from.info().dtype;
    if (o.chunks) options.chunks = parse_shape_option("--chunks", *o.chunks);
    if (o.codec) options.codec = *o.codec;
    if (o.fill) options.fill_value = json_or_text(*o.fill);
    if (o.format) options.format = *o.format;
    ArrayMetadata metadata = in_context([&] { return from.name(); }, [&] { return make_metadata(options); });
    return {path,
            dialect_named(options.format),
            std::move(metadata),
            {.overwrite = o.overwrite, .resume = o.resume},
            made_from(from, o, selection)};
}

/// The attributes as the source has them: an empty set and none at all are different things in some formats.
std::optional<Value> stored_attributes(const ArraySource& source, const std::string& path) {
    if (dynamic_cast<const Array*>(&source) == nullptr) {
        Value values = source.attribute_values();
        return values.as_object().empty() ? std::nullopt : std::optional(std::move(values));
    }
    const auto store = directory_store(path, true);
    const Dialect* dialect = probe_dialect(*store, "");
    return dialect == nullptr ? std::nullopt : dialect->load_attributes(*store, "");
}

std::unique_ptr<ArraySource> open_transferred(const TransferOptions& o, const std::string& path) {
    auto source = open_source(path, {.reverse_dims = o.reverse_dims});
    const ArrayInfo info = source->info();
    if (info.dtype.kind() == Kind::object) {
        // What the file's reader found says more than that there are objects; reading nothing makes it say so.
        const Region nothing(Index::filled(info.shape.rank(), 0), Shape::filled(info.shape.rank(), 0));
        source->read_into(nothing, NDArray(info.dtype, nothing.extent), {});
    }
    return source;
}

NewArray fill_new_array(Session& session, const TransferOptions& o, const std::string& from, const std::string& to) {
    const std::unique_ptr<ArraySource> source = open_transferred(o, from);
    std::optional<Selection> selection;
    if (o.selection) selection = Selection::parse(*o.selection, source->info().shape);
    NewArray destination = new_array(*source, o, selection, to);
    if (const auto attributes = stored_attributes(*source, from)) {
        destination.array().attributes().replace(*attributes);
    }
    CopyOptions options = copy_options(session, selection);
    if (destination.resumed()) {
        options.done = [&](const Region& region) { return destination.array().is_stored(region); };
    }
    try {
        copy_array(*source, destination.array(), options);
    } catch (const Error& e) {
        if (!o.resume) throw;
        const std::string kept = destination.keep().string();
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(
            fmt::format("interrupted; what is written stays in {}: the same command goes on with it", kept));
    }
    return destination;
}

Made copy_to_array(Session& session, const TransferOptions& o) {
    return made_of(o.destination, fill_new_array(session, o, o.source, o.destination).commit());
}

void require_free_file(const TransferOptions& o) {
    const fs::path path = split_array_path(o.destination).path;
    if (fs::is_directory(path)) {
        throw invalid_argument(fmt::format("{} is a directory; choose another name for the file", path.string()));
    }
    if (fs::exists(path) && !o.overwrite) {
        throw already_exists(fmt::format("{} exists; --overwrite replaces it", path.string()));
    }
}

Made copy_to_file(Session& session, const TransferOptions& o) {
    const ArrayPath path = split_array_path(o.destination);
    const std::unique_ptr<ArraySource> stored = open_transferred(o, o.source);
    ArrayFileOptions options{
        .order = stored->info().order, .reverse_dims = o.reverse_dims, .object_strings = o.object_strings};
    const auto converted = convert_for_array_file(path, *stored, options, session.io());
    const ArraySource* source = converted ? converted.get() : stored.get();
    std::optional<Selection> selection;
    if (o.selection) selection = Selection::parse(*o.selection, source->info().shape);
    if (o.order) options.order = parse_order("--order", *o.order);
    if (o.deflate) options.deflate_level = parse_number("--deflate", *o.deflate, 0, 9);

    const Shape shape = selection ? selection->shape() : source->info().shape;
    const auto sink = create_array_file(path, source->info().dtype, shape, options);
    copy_array(*source, *sink, copy_options(session, selection));
    return {o.destination, sink->info().dtype, shape, {}, 0, fs::file_size(path.path)};
}

/// The members of a file of several arrays that a path names as a whole; empty for everything else.
std::vector<std::string> several_members(const std::string& name) {
    const ArrayPath path = split_array_path(name);
    if (path.member || !fs::is_regular_file(path.path)) return {};
    const ArrayFileFormat* format = find_array_file_format(path.path);
    if (format == nullptr) return {};
    std::vector<std::string> members = format->members(path.path);
    return members.size() > 1 ? members : std::vector<std::string>{};
}

/// A member's name becomes a path below the destination, and must stay there.
void require_plain_name(const std::string& file, const std::string& member) {
    const fs::path path(member);
    const bool plain = !member.empty() && path.is_relative() && std::ranges::none_of(path, [](const fs::path& part) {
        return part.empty() || part == "." || part == ".." || part.string().starts_with(".tessera");
    });
    if (!plain) {
        throw invalid_argument(fmt::format(
            "{}: the member '{}' cannot be the name of an array; import it alone: {}::{}", file, member, file, member));
    }
}

/// One array for each member, below the destination. All are published at the end, so that an interruption leaves none.
std::vector<Made> import_members(Session& session, const TransferOptions& o, const std::vector<std::string>& members) {
    if (o.selection) {
        throw invalid_argument(fmt::format("--sel: {} holds {} arrays; name one of them: {}::{}", o.source,
                                           members.size(), o.source, members.front()));
    }
    if (occupant(o.destination) == Occupant::array) {
        throw already_exists(fmt::format("{} is an array, and {} holds {} arrays, which need a directory",
                                         o.destination, o.source, members.size()));
    }
    for (const std::string& member : members) require_plain_name(o.source, member);
    const bool existed = fs::exists(o.destination);
    fs::create_directories(o.destination);
    std::vector<NewArray> finished;
    try {
        for (const std::string& member : members) {
            finished.push_back(
                fill_new_array(session, o, o.source + "::" + member, (fs::path(o.destination) / member).string()));
        }
        std::vector<Made> made;
        for (std::size_t i = 0; i < members.size(); ++i) {
            made.push_back(made_of((fs::path(o.destination) / members[i]).string(), finished[i].commit()));
        }
        return made;
    } catch (...) {
        if (o.resume) std::ranges::for_each(finished, [](NewArray& array) { (void)array.keep(); });
        finished.clear();
        // The folders that were made for the members go, where nothing is left in them.
        std::error_code ignored;
        for (const std::string& member : members) {
            for (fs::path folder = fs::path(member).parent_path(); !folder.empty(); folder = folder.parent_path()) {
                fs::remove(fs::path(o.destination) / folder, ignored);
            }
        }
        if (!existed) fs::remove(o.destination, ignored);
        throw;
    }
}

/// Refuses options of the other kind of destination, rather than ignoring them.
void require_fitting_options(const TransferOptions& o, bool to_file) {
    const auto refuse = [&](const std::optional<std::string>& given, const char* option) {
        if (!given) return;
        throw invalid_argument(
            to_file ? fmt::format("{}: only for arrays, but {} is an array file", option, o.destination)
                    : fmt::format("{}: only for array files, but {} becomes an array", option, o.destination));
    };
    if (to_file) {
        refuse(o.chunks, "--chunks");
        refuse(o.codec, "--codec");
        refuse(o.fill, "--fill");
        refuse(o.format, "--format");
        if (o.resume) throw invalid_argument("--resume: only for arrays; a file is written afresh");
        if (o.deflate && split_array_path(o.destination).path.extension() != ".npz") {
            throw invalid_argument(fmt::format("--deflate: only for .npz, but found {}", o.destination));
        }
    } else {
        if (o.order && parse_order("--order", *o.order) == Order::F) {
            throw unsupported(fmt::format("--order F: the format {} stores the elements of a chunk in C order only",
                                          o.format.value_or("zmeta")));
        }
        refuse(o.deflate, "--deflate");
    }
}

/// A directory that holds arrays but is none.
void require_one_array(const std::string& path) {
    if (!fs::is_directory(path) || occupant(path) == Occupant::array || occupant(path) == Occupant::unfinished) return;
    if (const std::int64_t n = count_arrays(scan(path)); n > 0) {
        throw unsupported(
            fmt::format("{} is a directory that holds {}; several at once cannot be copied yet: name one of "
                        "them (`tessera tree {}` lists them)",
                        path, count_text(n, "array"), path));
    }
}

void report_bundle(Session& session, const TransferOptions& o, const std::vector<std::string>& names,
                   std::string_view done) {
    const std::uint64_t bytes = fs::file_size(o.destination);
    if (session.options().json) {
        Value value = Value::object();
        value.set("path", path_value(o.destination));
        Value members = Value::array();
        for (const std::string& name : names) members.push_back(path_value(name));
        value.set("members", std::move(members));
        value.set("stored_bytes", bytes);
        print_json(value);
    } else if (!session.options().quiet) {
        print(
            printable(fmt::format("{} {} → {} ({})", done, count_text(static_cast<std::int64_t>(names.size()), "array"),
                                  o.destination, bytes_text(bytes))) +
            "\n");
    }
}

}  // namespace

bool names_array_file(const std::string& path) {
    const fs::path extension = split_array_path(path).path.extension();
    return std::ranges::any_of(array_file_formats(), [&](const auto& f) { return extension == f.extension; });
}

int transfer(Session& session, const TransferOptions& o, std::string_view done) {
    const bool to_file = names_array_file(o.destination);
    require_fitting_options(o, to_file);
    const std::vector<std::string> bundle = to_file ? arrays_below(o.source) : std::vector<std::string>{};
    if (bundle.empty()) require_one_array(o.source);
    if (to_file) require_free_file(o);
    const std::vector<std::string> members = to_file ? std::vector<std::string>{} : several_members(o.source);

    const bool existed = fs::exists(split_array_path(o.destination).path);
    std::vector<Made> made;
    try {
        if (!bundle.empty()) {
            write_bundle(session, o, bundle);
        } else if (!members.empty()) {
            made = import_members(session, o, members);
        } else {
            made.push_back(to_file ? copy_to_file(session, o) : copy_to_array(session, o));
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled || o.resume) throw;
        throw cancelled(existed ? fmt::format("interrupted; {} is as it was before", o.destination)
                                : fmt::format("interrupted; nothing is left at {}", o.destination));
    }
    session.clear_progress();

    if (!bundle.empty()) {
        report_bundle(session, o, bundle, done);
    } else if (session.options().json) {
        if (members.empty()) {
            print_json(made_value(made.front()));
        } else {
            Value list = Value::array();
            for (const Made& one : made) list.push_back(made_value(one));
            print_json(list);
        }
    } else if (!session.options().quiet) {
        for (const Made& one : made) print(printable(made_text(one, done)) + "\n");
    }
    return exit_done;
}

namespace {

void declare_selection(CLI::App& app, TransferOptions& o) {
    app.add_option("--sel", o.selection, "copy only this part: '10:20, ::2, 5, ...'")->option_text("SELECTION");
    app.add_flag("--overwrite", o.overwrite, "replace what lies at the destination, once the new one is complete");
}

void declare_array_options(CLI::App& app, TransferOptions& o, bool chunks_required) {
    app.add_option("--chunks", o.chunks, "lengths of a chunk")
        ->required(chunks_required)
        ->option_text(chunks_required ? "SHAPE (required)" : "SHAPE");
    app.add_flag("--resume", o.resume, "go on with an unfinished copy, and leave one when interrupted");
    app.add_option("--codec", o.codec, "blosc:COMPRESSOR:LEVEL:SHUFFLE")->option_text("CODEC");
    app.add_option("--fill", o.fill, "fill value: JSON or text")->option_text("VALUE");
    app.add_option("--format", o.format, "zmeta")->option_text("FORMAT");
}

void declare_file_options(CLI::App& app, TransferOptions& o) {
    app.add_option("--order", o.order, "order of the elements in an array file")->option_text("C|F");
    app.add_option("--deflate", o.deflate, "compress an .npz: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    app.add_flag("--object-strings", o.object_strings,
                 "strings of variable length as Python objects in .npy and .npz, not padded to the longest");
}

void declare_reverse_dims(CLI::App& app, TransferOptions& o) {
    app.add_flag("--reverse-dims", o.reverse_dims, "reverse the dimensions of a .ra, as row-major readers show it");
}

}  // namespace

Run declare_import(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("FILE", o->source, "an array file, or a member: file.npz::name")->required()->option_text(" ");
    app.add_option("PATH", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, false);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (names_array_file(o->destination)) {
            throw invalid_argument(
                fmt::format("import makes an array directory, but {} is named as an array file; "
                            "use `tessera copy`, or another name",
                            o->destination));
        }
        return transfer(session, *o, "imported");
    };
}

Run declare_export(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("PATH", o->source, "an array")->required()->option_text(" ");
    app.add_option("FILE", o->destination, "the file to write: .npy, .npz, file.npz::name, .ra or .mldf")
        ->required()
        ->option_text(" ");
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (!names_array_file(o->destination)) {
            std::string extensions;
            for (const auto& format : array_file_formats()) {
                extensions += fmt::format("{}{}", extensions.empty() ? "" : ", ", format.extension);
            }
            throw invalid_argument(
                fmt::format("export writes an array file, and the extension says which kind: expected "
                            "one of {}, found {}",
                            extensions, o->destination));
        }
        return transfer(session, *o, "exported");
    };
}

Run declare_copy(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->destination, "an array directory, or an array file by its extension")
        ->required()
        ->option_text(" ");
    declare_array_options(app, *o, false);
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) { return transfer(session, *o, "copied"); };
}

Run declare_rechunk(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, true);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) { return transfer(session, *o, "rechunked"); };
}

}  // namespace tessera::cli
