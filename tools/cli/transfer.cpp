// tessera import, export, copy, rechunk
#include "transfer.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/codec.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/rounding.h>
#include <tessera/where.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "advice.h"
#include "job.h"
#include "options.h"
#include "points.h"
#include "settings.h"
#include "streams.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace {

std::optional<Rounding> rounding_of(const TransferOptions& o) {
    const auto option = [&] {
        return o.max_error.empty()   ? "--keep-bits"
               : o.keep_bits.empty() ? "--max-error"
                                     : "--keep-bits and --max-error";
    };
    return in_context(option, [&] { return Rounding::parse(o.keep_bits, o.max_error); });
}

}  // namespace

void require_fitting_options(const TransferOptions& o, bool to_file) {
    const auto refuse = [&](const std::optional<std::string>& given, const char* option) {
        if (!given) return;
        throw invalid_argument(
            to_file ? fmt::format("{}: only for arrays, but {} is an array file", option, o.destination)
                    : fmt::format("{}: only for array files, but {} becomes an array", option, o.destination));
    };
    if (o.cast && !o.dtype) throw invalid_argument("--cast: only with --dtype");
    if (o.link && o.dtype) throw invalid_argument("--link: chunks cannot be linked when the dtype changes");
    const bool rounds = rounding_of(o).has_value();
    if (o.link && rounds) throw invalid_argument("--link: chunks cannot be linked when numbers are rounded");
    if (o.decode_cf && o.encode_cf) throw invalid_argument("--decode-cf and --encode-cf: choose one");
    if (to_file) {
        refuse(o.chunks, "--chunks");
        refuse(o.codec, "--codec");
        refuse(o.fills.empty() ? std::nullopt : std::optional(o.fills.front()), "--fill");
        refuse(o.dimensions, "--dims");
        refuse(o.format, "--format");
        refuse(o.shards, "--shard");
        refuse(o.separator, "--separator");
        refuse(o.structures, "--structures");
        if (o.link) throw invalid_argument("--link: only chunk files can be linked, and an array file has none");
        if (o.resume) throw invalid_argument("--resume: only for arrays; a file is written afresh");
        if (o.deflate && !named_array_file_format(o.destination)->deflates) {
            throw invalid_argument("--deflate: only for .npz, .h5, .nc4 and .tif, but found {}", o.destination);
        }
    } else {
        refuse(o.deflate, "--deflate");
    }
}

void declare_where(CLI::App& app, TransferOptions& o) {
    app.add_option("--where", o.where,
                   "of a table only rows for which this holds, as in `tessera calc`: 'close > 100',\n"
                   "\"station == 'Graz'\"; SELECTION is then a part of these")
        ->option_text("CONDITION");
}

void declare_object_strings(CLI::App& app, TransferOptions& o) {
    app.add_flag("--object-strings", o.object_strings,
                 "strings of variable length as Python objects in .npy and .npz, not padded to the longest");
}

void declare_reading_options(CLI::App& app, TransferOptions& o) {
    app.add_option("--dtype", o.dtype,
                   "convert the elements: f4, '<i2', S8; of a .csv what it holds: \"[('a', '<i4'), ...]\"")
        ->option_text("DTYPE");
    app.add_option("--cast", o.cast,
                   "what may become of values: safe, same_kind (default), unsafe (as NumPy's astype), round, clip")
        ->option_text("RULE");
    app.add_option("--as", o.as, "what a pipe holds: csv, or npy (default: its first bytes tell)")
        ->option_text("FORMAT");
    app.add_option("--header", o.header, "whether a .csv begins with a line of names: yes or no (default: found out)")
        ->option_text("yes|no");
    app.add_option("--missing", o.missing,
                   "what stands where a .csv has no number, but nothing or NA: -9999, nan (default: NaN among floats;\n"
                   "integers must not be missing)")
        ->option_text("VALUE");
}

namespace {

/// `text`: the source is a .csv.
ArrayFileOptions options_for(const TransferOptions& o, bool text, std::string_view name) {
    ArrayFileOptions options{.reverse_dims = o.reverse_dims};
    if (!o.header && !o.dtype && !o.missing) return options;
    if (!text && o.missing) throw invalid_argument("--missing: only for .csv, but found {}", name);
    options.missing = o.missing;
    if (!text && o.header) throw invalid_argument("--header: only for .csv, but found {}", name);
    if (text && o.dtype) options.dtype = in_context([] { return "--dtype"; }, [&] { return DType::parse(*o.dtype); });
    if (o.header && *o.header != "yes" && *o.header != "no") {
        throw invalid_argument("--header: expected yes or no, found '{}'", *o.header);
    }
    if (o.header) options.header = *o.header == "yes";
    return options;
}

}  // namespace

ArrayFileOptions reading_options(const TransferOptions& o, const Located& at) {
    const ArrayFileFormat* format = at.kind == PathKind::nothing ? named_array_file_format(at.path) : at.format;
    if (o.as) throw invalid_argument("--as: only for standard input, standard output and pipes, but found {}", at.path);
    return options_for(o, format != nullptr && format->recognise == nullptr, at.path);
}

std::unique_ptr<ArraySource> open_given(const TransferOptions& o, const Located& at) {
    return converted(open_source(at, reading_options(o, at)), o.dtype, o.cast);
}

std::unique_ptr<ArraySource> open_given(const TransferOptions& o) {
    const auto input = input_stream(o.source);
    if (!input) return open_given(o, locate(o.source));
    const auto bytes = read_stream(*input);
    return converted(open_stream(bytes, o.as, options_for(o, o.as == "csv", bytes->name())), o.dtype, o.cast);
}

bool names_array_file(const std::string& path) {
    return named_array_file_format(path) != nullptr;
}

ArrayWishes wishes_of(const TransferOptions& o, bool to_file) {
    ArrayWishes wishes{.codec = o.codec,
                       .format = o.format,
                       .preferred_format = checked_setting("format", [](const auto& s) { (void)dialect_named(s); }),
                       .separator = o.separator,
                       .structures = o.structures};
    const auto parse = [&] {
        if (o.chunks) parse_lengths_option("--chunks", *o.chunks).give(wishes.chunks, wishes.edges);
        if (o.shards == "none") {
            wishes.shards = Shape();
        } else if (o.shards) {
            parse_lengths_option("--shard", *o.shards).give(wishes.shards, wishes.shard_edges);
        }
        if (o.order) wishes.order = parse_order("--order", *o.order);
        if (o.dimensions) wishes.dimension_names = parse_names(*o.dimensions);
    };
    if (to_file) {
        parse();
    } else {
        in_context([&] { return o.destination; }, parse);
    }
    return wishes;
}

namespace {

/// Whether a path names one array, for which --fill takes any text as a value.
bool is_one_array(const std::string& path) {
    try {
        (void)open_source(path);
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// Parses --fill: VALUE for all arrays, or NAME=VALUE for one of several.
void set_fills(const TransferOptions& o, HierarchyOptions& options) {
    const auto named = [](const std::string& given) { return given.find('=') != std::string::npos; };
    const bool one = std::ranges::any_of(o.fills, named) && (o.open || is_one_array(o.source));
    for (const std::string& given : o.fills) {
        if (!one && named(given)) {
            const std::size_t equals = given.find('=');
            options.fills.emplace_back(given.substr(0, equals), json_or_text(given.substr(equals + 1)));
        } else if (!options.arrays.fill) {
            options.arrays.fill = json_or_text(given);
        }
    }
}

}  // namespace

std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source, const std::optional<std::string>& dtype,
                                       const std::optional<std::string>& cast) {
    if (!dtype) return source;
    const DType wanted = in_context([] { return "--dtype"; }, [&] { return DType::parse(*dtype); });
    const Cast rule = cast ? in_context([] { return "--cast"; }, [&] { return parse_cast(*cast); }) : Cast::same_kind;
    if (source->info().dtype == wanted) return source;
    return std::make_unique<CastSource>(std::move(source), wanted, rule);
}

namespace {

/// The source as --decode-cf or --encode-cf has it. `said` holds the notes that were given.
std::unique_ptr<ArraySource> by_cf(Session& session, const TransferOptions& o, std::unique_ptr<ArraySource> source,
                                   std::set<std::string>& said) {
    std::string why;
    if (o.decode_cf) source = decode_cf(std::move(source), &why);
    if (o.encode_cf) source = encode_cf(std::move(source));
    if (!why.empty() && said.insert(why).second) session.note(why);
    return source;
}

/// The source with the numbers of --keep-bits or --max-error.
std::unique_ptr<ArraySource> by_rounding(Session& session, const TransferOptions& o,
                                         std::unique_ptr<ArraySource> source, std::set<std::string>& said) {
    auto rounding = rounding_of(o);
    if (!rounding) return source;
    HierarchyOptions options{.arrays = {.format = o.format}};
    set_fills(o, options);
    rounding->copied_to(o.destination, options);
    std::string why;
    source = rounded(std::move(source), *rounding, &why, session.io());
    if (!why.empty() && said.insert(why).second) session.note(why);
    return source;
}

/// The codec that the settings name for arrays that are made anew; nullopt for what is an array already.
std::optional<std::string> codec_of_settings(const TransferOptions& o) {
    std::string codec = checked_setting("codec", [](const auto& s) { (void)parse_codecs(s); });
    if (codec.empty()) return {};
    if (o.made) {
        const ArraySource* like = o.made->from.like;
        return like == nullptr || as_array(before_cast(*like)) != nullptr ? std::nullopt : std::optional(codec);
    }
    if (!o.open) {
        const PathKind kind = locate(o.source).kind;
        if (kind != PathKind::array_file && kind != PathKind::part) return {};
    }
    return codec;
}

/// Notes about the nodes of one destination. The same note about several is printed once, with their names, when the
/// transfer ends; for --json each by itself.
class NodeNotes {
public:
    NodeNotes(Session& session, std::string destination)
        : session_(session), destination_(std::move(destination) + "/") {}
    NodeNotes(const NodeNotes&) = delete;
    NodeNotes& operator=(const NodeNotes&) = delete;
    ~NodeNotes() {
        try {
            print();
        } catch (const std::exception&) {
            // no memory for a note
        }
    }

    void add(const std::string& text) {
        const std::size_t end = text.starts_with(destination_) ? text.find(": ") : std::string::npos;
        if (session_.options().json || end == std::string::npos) return session_.note(text);
        const std::string node = text.substr(destination_.size(), end - destination_.size());
        const std::string what = text.substr(end);
        const auto same = std::ranges::find(notes_, what, &std::pair<std::string, std::vector<std::string>>::first);
        auto& nodes =
            same == notes_.end() ? notes_.emplace_back(what, std::vector<std::string>()).second : same->second;
        nodes.push_back(node);
    }

private:
    void print() {
        constexpr std::size_t few = 3;
        for (const auto& [what, nodes] : notes_) {
            if (nodes.size() == 1) {
                session_.note(destination_ + nodes.front() + what);
                continue;
            }
            std::string names;
            for (std::size_t i = 0; i < std::min(few, nodes.size()); ++i) names += (i == 0 ? "" : ", ") + nodes[i];
            if (nodes.size() > few) names += fmt::format(" and {} more", nodes.size() - few);
            session_.note(fmt::format("{}{} ({} arrays: {})",
                                      std::string_view(destination_).substr(0, destination_.size() - 1), what,
                                      nodes.size(), names));
        }
    }

    Session& session_;
    std::string destination_;
    std::vector<std::pair<std::string, std::vector<std::string>>> notes_;  ///< in the order in which they came first
};

}  // namespace

HierarchyOptions hierarchy_options(Session& session, const TransferOptions& o, bool to_file) {
    const auto notes = std::make_shared<NodeNotes>(session, o.destination);
    ArrayWishes wishes = wishes_of(o, to_file);
    if (!to_file && !wishes.codec) wishes.codec = codec_of_settings(o);
    HierarchyOptions options{.arrays = std::move(wishes),
                             .selection = o.selection,
                             .overwrite = o.overwrite,
                             .resume = o.resume,
                             .link = o.link,
                             .verify = o.verify,
                             .dry_run = o.dry_run,
                             .drop_attributes = o.drop_attributes,
                             .skip_unreadable = o.skip_bad,
                             .object_strings = o.object_strings,
                             .reverse_dims = o.reverse_dims,
                             .io = session.io(),
                             .store = session.store(),
                             .note = [notes](const Note& note) { notes->add(advised(note.text, note.advice)); },
                             .list_hint = fmt::format(" (`tessera tree {}` lists them)", o.source)};
    if (o.deflate) options.deflate_level = parse_number("--deflate", *o.deflate, 0, 9);
    if (o.where || o.points || o.dtype || o.decode_cf || o.encode_cf || rounding_of(o)) {
        const auto said = std::make_shared<std::set<std::string>>();  // arrays are opened more than once
        options.view = [&session, said, o, io = session.io()](std::unique_ptr<ArraySource> opened) {
            if (o.where) opened = where_source(std::move(opened), *o.where, io);
            if (o.points) opened = elements_at(std::move(opened), open_source(*o.points));
            opened = converted(by_cf(session, o, std::move(opened), *said), o.dtype, o.cast);
            return by_rounding(session, o, std::move(opened), *said);
        };
    }
    if ((o.decode_cf || o.encode_cf || rounding_of(o)) && !o.open) {
        const Located at = locate(o.source);
        if (at.dialect != nullptr && !options.arrays.like_format)
            options.arrays.like_format = std::string(at.dialect->name);
    }
    options.open = o.open;
    options.made_from = o.state;
    if (!o.open && (o.header || o.dtype || o.missing)) {
        const ArrayFileOptions reading = reading_options(o, locate(o.source));
        options.dtype = reading.dtype;
        options.header = reading.header;
        if (o.missing) {
            if (o.resume)
                throw invalid_argument("--resume: not with --missing; such a file is read from its beginning");
            options.open = [path = o.source, reading] { return open_source(locate(path), reading); };
        }
    }
    set_fills(o, options);
    if (o.made && !to_file) {
        complete_wishes(options.arrays, o.destination, o.made->source->info().shape.rank(), o.made->from);
    }
    return options;
}

namespace {

int transfer_to_stream(Session& session, const TransferOptions& o, int descriptor) {
    if (o.deflate) throw invalid_argument("--deflate: only for .npz and .h5, but found {}", o.destination);
    if (o.dry_run) throw invalid_argument("--dry-run: a pipe is written at once");
    require_fitting_options(o, true);
    TransferOptions from = o;
    if (o.open || !input_stream(o.source)) from.as = std::nullopt;  // it is what is written
    std::unique_ptr<ArraySource> source = o.open ? o.open() : open_given(from);
    if (o.where) source = where_source(std::move(source), *o.where, session.io());
    if (o.points) source = elements_at(std::move(source), open_source(*o.points));
    std::set<std::string> said;
    source = by_cf(session, o, std::move(source), said);
    source = by_rounding(session, o, std::move(source), said);
    return write_stream(session, o, *source, descriptor);
}

/// With the array that a pipe holds, which is read once.
int transfer_from_stream(Session& session, TransferOptions o, int descriptor, std::string_view done) {
    if (o.resume) throw invalid_argument("--resume: a pipe cannot be read again");
    (void)session.io();  // from now on Ctrl-C ends the wait for it
    const auto bytes = read_stream(descriptor);
    const ArrayFileOptions reading = options_for(o, o.as == "csv", bytes->name());
    o.source = bytes->name();
    o.state = bytes->name();
    o.open = [bytes, as = o.as, reading] { return open_stream(bytes, as, reading); };
    return transfer(session, o, done);
}

}  // namespace

int transfer(Session& session, const TransferOptions& o, std::string_view done) {
    if (const auto output = output_stream(o.destination)) return transfer_to_stream(session, o, *output);
    const auto input = o.open ? std::nullopt : input_stream(o.source);
    if (input) return transfer_from_stream(session, o, *input, done);
    if (o.as && !o.open) {
        throw invalid_argument("--as: only for standard input, standard output and pipes, but found {}", o.source);
    }
    const bool to_file = names_array_file(o.destination);
    require_fitting_options(o, to_file);
    if (!to_file) require_no_other_file(o.destination);
    if (session.planning) return plan_transfer(session, o);
    const CopiedHierarchy copied = copy_hierarchy(o.source, o.destination, hierarchy_options(session, o, to_file));
    session.clear_progress();
    if (o.dry_run) report_plan(session, o, copied);
    note_lacking(session, o, copied);
    if (!o.dry_run) report_copied(session, o, copied, done);
    return copied.left_out.empty() && copied.passed.empty() ? exit_done : exit_differences;
}

namespace {

void declare_selection(CLI::App& app, TransferOptions& o) {
    app.add_option("--sel", o.selection, fmt::format("copy only this part: {}", selection_forms))
        ->option_text("SELECTION");
    declare_where(app, o);
    app.add_flag("--overwrite", o.overwrite, "replace what lies at the destination, once the new one is complete");
    app.add_flag("--drop-attributes", o.drop_attributes,
                 "for a group: leave out its attributes if the new format has no place for them");
    app.add_flag("--skip-bad", o.skip_bad, "for a group: replace the destination even if some arrays cannot be read");
}

void declare_layout(CLI::App& app, TransferOptions& o, bool chunks_required) {
    app.add_option("--chunks", o.chunks,
                   fmt::format("lengths of a chunk, or '[10,10,5]*4,32' where they differ along a dimension ({})",
                               formats_with(&Dialect::edges)))
        ->required(chunks_required)
        ->option_text(chunks_required ? "SHAPE (required)" : "SHAPE");
    app.add_option("--codec", o.codec, "codecs in order, such as blosc:zstd:5:shuffle, delta,zstd:3 or none")
        ->option_text("CODECS");
    app.add_option("--shard,--shards", o.shards,
                   fmt::format("lengths of a shard, a multiple of chunks ({}); none removes sharding",
                               formats_with(&Dialect::shards)))
        ->option_text("SHAPE");
    app.add_option("--fill", o.fills, "fill value, JSON or text; NAME=VALUE of one array of a group (repeatable)")
        ->allow_extra_args(false)
        ->option_text("VALUE");
    app.add_option("--format", o.format,
                   fmt::format("{} (default: that of the group around the destination, else the source's, "
                               "for array files zmeta or what the settings name; v3 "
                               "for what these cannot express)",
                               format_choices()))
        ->option_text("FORMAT");
    app.add_option("--dims", o.dimensions, "names of the dimensions: time,y,x")->option_text("NAMES");
    app.add_option("--separator", o.separator,
                   fmt::format("between the indices of chunk keys: . or / ({})", formats_with(&Dialect::separators)))
        ->option_text(".|/");
    app.add_option("--structures", o.structures,
                   "v3: the name of structures: struct, or structured for zarr-python before 3.3")
        ->option_text("NAME");
    app.add_option("--order", o.order, "order of the elements in a chunk, or in an array file")->option_text("C|F");
    app.add_flag("--dry-run", o.dry_run, "say what would be made, and whether chunk files stay valid; make nothing");
}

void declare_array_options(CLI::App& app, TransferOptions& o, bool chunks_required) {
    declare_layout(app, o, chunks_required);
    app.add_flag("--resume", o.resume, "go on with an unfinished copy, and leave one when interrupted");
}

}  // namespace

void declare_places(CLI::App& app, TransferOptions& o) {
    app.add_option("SRC", o.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o.destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
}

void declare_result_options(CLI::App& app, TransferOptions& o) {
    declare_layout(app, o, false);
    app.add_option("--deflate", o.deflate, "compress an .npz or .h5: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    app.add_flag("--overwrite", o.overwrite, "replace what lies at the destination, once the new one is complete");
}

namespace {

void declare_file_options(CLI::App& app, TransferOptions& o) {
    app.add_option("--deflate", o.deflate, "compress an .npz or .h5: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    declare_object_strings(app, o);
}

void declare_reverse_dims(CLI::App& app, TransferOptions& o) {
    declare_reading_options(app, o);
    app.add_flag(
        "--decode-cf", o.decode_cf,
        "apply scale_factor, add_offset, _FillValue and units of time, as the CF conventions say; the attribute\n"
        "cf_encoding keeps how it was");
    app.add_flag("--encode-cf", o.encode_cf, "the reverse, by cf_encoding; datetimes without it become numbers");
    app.add_option(
           "--keep-bits", o.keep_bits,
           "round floats to so many bits of their fraction, so that they take less room; auto: as many as hold\n"
           "99 % of the information. The attribute rounded keeps the bound")
        ->option_text("N|auto");
    app.add_option("--max-error", o.max_error, "round numbers by at most so much; likewise")->option_text("E");
    app.add_flag("--reverse-dims", o.reverse_dims, "reverse the dimensions of a .ra, as row-major readers show it");
}

}  // namespace

void declare_transfer_options(CLI::App& app, TransferOptions& o) {
    declare_array_options(app, o, false);
    declare_file_options(app, o);
    declare_reverse_dims(app, o);
    declare_selection(app, o);
}

Run declare_import(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("FILE", o->source, "an array file, or a member: file.npz::name; - is standard input")
        ->required()
        ->option_text(" ");
    app.add_option("PATH", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, false);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (output_stream(o->destination)) {
            throw invalid_argument(
                "import makes an array directory, and {} is standard output or a pipe: `tessera export SRC -` writes "
                "an "
                "array file there; a directory of that name is ./{}",
                o->destination, o->destination);
        }
        if (names_array_file(o->destination)) {
            throw invalid_argument(
                "import makes an array directory, but {} is named as an array file; "
                "use `tessera copy`, or another name",
                o->destination);
        }
        require_distinct_dims(o->dimensions);
        return transfer(session, *o, "imported");
    };
}

Run declare_export(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("PATH", o->source, "an array")->required()->option_text(" ");
    app.add_option("FILE", o->destination,
                   "the file to write, by its extension (.npy, .npz, .nc, .h5, .tif …), or file.npz::name; - "
                   "is\nstandard output")
        ->required()
        ->option_text(" ");
    app.add_option("--order", o->order, "order of the elements in an array file")->option_text("C|F");
    app.add_flag("--dry-run", o->dry_run, "say what would be written; write nothing");
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (!output_stream(o->destination) && !names_array_file(o->destination)) {
            std::string extensions;
            for (const auto& format : array_file_formats()) {
                extensions += fmt::format("{}{}", extensions.empty() ? "" : ", ", format.extension);
            }
            throw invalid_argument(
                "export writes an array file, and the extension says which kind: expected "
                "one of {}, found {}",
                extensions, o->destination);
        }
        return transfer(session, *o, "exported");
    };
}

Run declare_copy(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, a group, an array file or a member of one")
        ->required()
        ->option_text(" ");
    app.add_option("DST", o->destination, "a directory, or a .zip, .ozx or array file by its extension")
        ->required()
        ->option_text(" ");
    declare_array_options(app, *o, false);
    app.add_flag("--link", o->link,
                 "hard links in place of copies of chunk files that stay valid: two names of one file, so that a\n"
                 "program that writes into chunk files changes both arrays (Tessera replaces them)");
    app.add_flag("--verify", o->verify,
                 "decode chunk files that stay valid before they are copied or linked, so that no damage is copied");
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        require_distinct_dims(o->dimensions);
        return transfer(session, *o, "copied");
    };
}

Run declare_rechunk(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, true);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        require_distinct_dims(o->dimensions);
        return transfer(session, *o, "rechunked");
    };
}

}  // namespace tessera::cli
