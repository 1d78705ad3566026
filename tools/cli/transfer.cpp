// tessera import, export, copy, rechunk
#include "transfer.h"

#include <fmt/format.h>

#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/codec.h>
#include <tessera/coordinates_beside.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/packages.h>
#include <tessera/shared_source.h>
#include <tessera/turned.h>
#include <tessera/write_computed.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "advice.h"
#include "job.h"
#include "options.h"
#include "package.h"
#include "settings.h"
#include "streams.h"
#include "transfer_report.h"

namespace tessera::cli {

bool names_array_file(const std::string& path) {
    return named_array_file_format(path) != nullptr;
}

Error about_option(const Error& error, const TransferOptions& o) {
    if (error.code() == ErrorCode::cancelled) return error;
    const Error worded = by_name(error, &Option::typed, o.recipe, o.result);
    const std::string_view text = worded.what();
    std::string path;
    visit_options(o.recipe, [&](const Option& /*option*/, const auto& member) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, Ingredient>) path = member.path;
    });
    if (path.empty() || text.starts_with("--") || text.starts_with(split_array_path(path).path.string())) return worded;
    return worded.within(path);
}

namespace {

/// Runs `body` with errors in the program's words.
template <class Body>
decltype(auto) by_options(const TransferOptions& o, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw by_name(e, &Option::typed, o.recipe, o.result);
    }
}

/// The array that a pipe holds, which is read once.
Ingredient read_input(const TransferOptions& o, int descriptor) {
    const auto bytes = read_stream(descriptor);
    const ArrayFileOptions reading = reading_options(o.recipe, o.as == "csv", bytes->name());
    return {.path = bytes->name(), .array = open_stream(bytes, o.as, reading)};
}

/// The source as the recipe shows it.
std::unique_ptr<ArraySource> seen(Session& session, const TransferOptions& o, std::unique_ptr<ArraySource> source) {
    std::vector<Note> notes;
    if (o.recipe.selection) source = turned_source(std::move(source), *o.recipe.selection);
    source =
        viewed(std::move(source), rounded_for(o.recipe, o.result, o.destination), open_by_path(), session.io(), notes);
    for (const Note& note : notes) session.note(advised(note.text, note.advice));
    return source;
}

}  // namespace

std::unique_ptr<ArraySource> open_given(Session& session, const TransferOptions& o, const Located& at) {
    if (o.as) throw invalid_argument("--as: only for standard input, standard output and pipes, but found {}", at.path);
    return by_options(o, [&] { return seen(session, o, open_readable_source(at, reading_options(o.recipe, at))); });
}

std::unique_ptr<ArraySource> open_given(Session& session, const TransferOptions& o) {
    const auto input = input_stream(o.source);
    if (!input) return open_given(session, o, locate(o.source));
    return by_options(o, [&] { return seen(session, o, shared_source(read_input(o, *input).array)); });
}

ArrayWishes wishes_of(const TransferOptions& o) {
    ArrayWishes wishes = tessera::wishes_of(o.result);
    wishes.preferred_format = checked_setting("format", [](const auto& s) { (void)dialect_named(s); });
    return wishes;
}

namespace {

/// The codec that the settings name for arrays that are made anew; nullopt for what is an array already.
std::optional<std::string> codec_of_settings(const TransferOptions& o) {
    std::string codec = checked_setting("codec", [](const auto& s) { (void)parse_codecs(s); });
    if (codec.empty()) return {};
    if (o.made) {
        const ArraySource* like = o.made->from.like;
        return like == nullptr || as_array(before_cast(*like)) != nullptr ? std::nullopt : std::optional(codec);
    }
    if (o.set) return o.set->like != nullptr ? std::nullopt : std::optional(codec);
    if (!o.open) {
        const PathKind kind = locate(o.source).kind;
        if (kind != PathKind::array_file && kind != PathKind::part) return {};
    }
    return codec;
}

/// Notes about the nodes of a source and a destination. The same note about several is printed once, with their names,
/// when the transfer ends; for --json each by itself.
class NodeNotes {
public:
    NodeNotes(Session& session, const std::string& source, const std::string& destination)
        : session_(session), wholes_{destination + "/", source + "/", source + "::"} {}
    NodeNotes(const NodeNotes&) = delete;
    NodeNotes& operator=(const NodeNotes&) = delete;
    ~NodeNotes() {
        try {
            for (const Same& note : notes_) {
                if (!note.when_done || std::uncaught_exceptions() == 0) print(note);
            }
        } catch (const std::exception&) {
            // no memory for a note
        }
    }

    /// `when_done`: not where the transfer fails.
    void add(const std::string& text, bool when_done = false) {
        const auto whole = std::ranges::find_if(wholes_, [&](const auto& name) { return text.starts_with(name); });
        const std::size_t end = whole != wholes_.end() ? text.find(": ", whole->size()) : std::string::npos;
        // What stands before the colon is the node alone.
        const bool alone = session_.options().json || end == std::string::npos || text.find(' ', whole->size()) <= end;
        if (alone && !when_done) return session_.note(text);
        if (alone) {
            notes_.push_back({"", text, {""}, when_done});
            return;
        }
        const std::string what = text.substr(end);
        auto same = std::ranges::find_if(notes_, [&](const Same& note) { return note.of(*whole, what); });
        if (same == notes_.end()) same = notes_.insert(same, {*whole, what, {}, when_done});
        same->nodes.push_back(text.substr(whole->size(), end - whole->size()));
    }

private:
    /// One note about several nodes.
    struct Same {
        std::string whole, what;
        std::vector<std::string> nodes;
        bool when_done = false;
        [[nodiscard]] bool of(const std::string& a, const std::string& b) const { return whole == a && what == b; }
    };

    void print(const Same& note) {
        constexpr std::size_t few = 3;
        const auto& nodes = note.nodes;
        if (nodes.size() == 1) return session_.note(note.whole + nodes.front() + note.what);
        std::string names;
        for (std::size_t i = 0; i < std::min(few, nodes.size()); ++i) names += (i == 0 ? "" : ", ") + nodes[i];
        if (nodes.size() > few) names += fmt::format(" and {} more", nodes.size() - few);
        const std::string_view whole = std::string_view(note.whole).substr(0, note.whole.find_last_not_of("/:") + 1);
        session_.note(fmt::format("{}{} ({} arrays: {})", whole, note.what, nodes.size(), names));
    }

    Session& session_;
    std::array<std::string, 3> wholes_;
    std::vector<Same> notes_;  ///< in the order in which they came first
};

}  // namespace

HierarchyOptions hierarchy_options(Session& session, const TransferOptions& o) {
    const auto notes = std::make_shared<NodeNotes>(session, o.source, o.destination);
    const auto say = [notes](const Note& note) { notes->add(advised(note.text, note.advice), true); };
    HierarchyOptions options = tessera::hierarchy_options(o.recipe, o.result, o.destination, session.io(), say);
    options.arrays.preferred_format = wishes_of(o).preferred_format;
    options.store = session.store();
    options.note = [notes](const Note& note) { notes->add(advised(note.text, note.advice)); };
    options.list_hint = fmt::format(" (`tessera tree {}` lists them)", o.source);
    if (o.open) options.open = o.open;
    if (o.set) make_set(options, *o.set, o.destination, options.note);
    options.made_from = o.state;
    if (names_array_file(o.destination)) return options;
    if (!options.arrays.codec) options.arrays.codec = codec_of_settings(o);
    if (o.made) {
        complete_wishes(options.arrays, o.destination, o.made->source->info().shape.rank(), o.made->from);
    }
    return options;
}

namespace {

int transfer_to_stream(Session& session, const TransferOptions& o, int descriptor) {
    if (o.result.deflate > 0) throw invalid_argument("--deflate: only for .npz and .h5, but found {}", o.destination);
    if (o.result.dry_run) throw invalid_argument("--dry-run: a pipe is written at once");
    TransferOptions from = o;
    if (o.open || !input_stream(o.source)) from.as = std::nullopt;  // it is what is written
    View* const view = from.recipe.view();
    const bool text = o.as == "csv" && !o.recipe.dtype;
    if (view != nullptr && view->elements == Elements::by_file) view->elements = Elements::bare_codes;
    if (text && view != nullptr && view->elements != Elements::codes) view->elements = Elements::text;
    const auto source = o.open ? o.open() : open_given(session, from);
    return write_stream(session, o, *source, descriptor);
}

/// The same transfer, of several arrays that are made.
TransferOptions with_set(Session& session, TransferOptions o, DividedRecipe divided) {
    for (const Note& note : divided.notes) session.note(advised(note.text, note.advice));
    o.set = std::make_shared<const DividedRecipe>(std::move(divided));
    if (o.state.empty()) o.state = o.source;
    return o;
}

int transfer_from_stream(Session& session, TransferOptions o, int descriptor, std::string_view done) {
    if (o.result.resume) throw invalid_argument("--resume: a pipe cannot be read again");
    (void)session.io();  // from now on Ctrl-C ends the wait for it
    const Ingredient input = read_input(o, descriptor);
    o.source = o.state = input.path;
    std::get<CopyRecipe>(o.recipe.make).source = input;
    if (auto arrays = divided_for(rounded_for(o.recipe, o.result, o.destination), o.destination)) {
        return transfer(session, with_set(session, std::move(o), *std::move(arrays)), done);
    }
    o.open = [array = input.array] { return shared_source(array); };
    return transfer(session, std::move(o), done);
}

int transfer_here(Session& session, const TransferOptions& o, std::string_view done) {
    require_fitting(o.recipe, o.result, o.destination);
    if (const auto output = output_stream(o.destination)) return transfer_to_stream(session, o, *output);
    const auto input = o.open || o.set ? std::nullopt : input_stream(o.source);
    if (input) return transfer_from_stream(session, o, *input, done);
    if (o.as && !o.open && !o.set) {
        throw invalid_argument("--as: only for standard input, standard output and pipes, but found {}", o.source);
    }
    if (!names_array_file(o.destination)) require_no_other_file(o.destination);
    if (session.planning) return plan_transfer(session, o);
    if (!o.open && !o.set) {
        if (auto divided = divided_for(rounded_for(o.recipe, o.result, o.destination), o.destination)) {
            return transfer_here(session, with_set(session, o, *std::move(divided)), done);
        }
    }
    const CopiedHierarchy copied = copy_hierarchy(o.source, o.destination, hierarchy_options(session, o));
    session.clear_progress();
    if (o.result.dry_run) report_plan(session, o, copied);
    note_lacking(session, o, copied);
    if (!o.result.dry_run) report_copied(session, o, copied, done);
    return copied.left_out.empty() && copied.passed.empty() ? exit_done : exit_differences;
}

}  // namespace

int transfer(Session& session, TransferOptions o, std::string_view done) {
    auto* const copy = std::get_if<CopyRecipe>(&o.recipe.make);
    if (copy != nullptr && !copy->source.array) copy->source.path = o.source;
    return by_options(o, [&] { return transfer_here(session, o, done); });
}

int make_recipe(Session& session, TransferOptions o, std::string_view done) {
    require_apart(paths_of(o.recipe), o.destination);
    o.recipe = rounded_for(std::move(o.recipe), o.result, o.destination);
    if (auto divided = about_recipe(o, [&] { return divided_for(o.recipe, o.destination); })) {
        return transfer(session, with_set(session, std::move(o), *std::move(divided)), done);
    }
    const OpenIngredient open = [given = open_by_path(o.recipe)](const std::string& path) {
        return about_path(path, [&] { return given(path); });
    };
    OpenedRecipe opened = about_recipe(o, [&] { return open_recipe(o.recipe, open, session.io()); });
    const std::string place = o.as ? "-." + *o.as : o.destination;
    if (becomes_text(o.recipe, place)) show_as_text(opened);
    note_marks(opened, place);
    const CoordinatesBeside beside(opened, o.recipe, o.destination, session.io());
    if (o.state.empty()) o.state = opened.source->name();
    o.made = std::make_shared<const OpenedRecipe>(std::move(opened));
    o.open = [made = o.made, to = o.destination] {
        // The names of dimensions are an attribute in array files.
        const auto attributes =
            names_array_file(to) ? std::optional(attributes_in_file(*made->source, made->from)) : std::nullopt;
        return shared_source({made, made->source.get()}, attributes);
    };
    const auto made = o.made;
    const bool writes = !o.result.dry_run;
    const int code = transfer(session, std::move(o), done);
    if (writes) beside.write({.io = session.io(), .store = session.store()});
    for (const Note& note : made->notes) session.note(advised(note.text, note.advice));
    return code;
}

void declare_places(CLI::App& app, TransferOptions& o, const char* source, const char* destination) {
    app.add_option("SRC", o.source, source)->required()->option_text(" ");
    app.add_option("DST", o.destination, destination)->required()->option_text(" ");
}

namespace {

/// What of a view is typed in another way than in Python.
void declare_view(CLI::App& app, TransferOptions& o, const Choose& choose) {
    if (choose({"as"})) {
        app.add_option("--as", o.as, "what a pipe holds: csv, or npy (default: its first bytes tell)")
            ->option_text("FORMAT");
    }
    if (!choose({"cf"})) return;
    const auto flag = [&](const char* name, const char* word, const char* help) {
        app.add_flag_function(
            name,
            [&cf = o.recipe.view()->cf, word](std::int64_t) {
                if (cf && *cf != word) throw invalid_argument("--decode-cf and --encode-cf: choose one");
                cf = word;
            },
            help);
    };
    flag("--decode-cf", "decode",
         "apply scale_factor, add_offset, _FillValue and units of time, as the CF conventions say; the attribute\n"
         "cf_encoding keeps how it was");
    flag("--encode-cf", "encode", "the reverse, by cf_encoding; datetimes without it become numbers");
}

}  // namespace

void declare_transfer(CLI::App& app, TransferOptions& o, const Choose& choose) {
    const bool copies = o.recipe.view() != nullptr;
    if (copies) declare_options(app, o.result, choose);
    declare_options(app, o.recipe, choose);
    if (copies) declare_view(app, o, choose);
    if (!copies) declare_options(app, o.result, choose);
}

Run declare_import(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("FILE", o->source, "an array file, or a member: file.npz::name; - is standard input")
        ->required()
        ->option_text(" ");
    app.add_option("PATH", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_transfer(app, *o, without(only_files | only_chunks));
    return [o](Session& session) {
        if (output_stream(o->destination)) {
            throw invalid_argument(
                "import makes an array directory, and {} is standard output or a pipe: `tessera export SRC -` writes "
                "an array file there; a directory of that name is ./{}",
                o->destination, o->destination);
        }
        if (names_array_file(o->destination)) {
            throw invalid_argument(
                "import makes an array directory, but {} is named as an array file; "
                "use `tessera copy`, or another name",
                o->destination);
        }
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
    declare_transfer(app, *o, without(only_arrays | only_chunks));
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
    declare_places(app, *o, "an array, a group, an array file or a member of one",
                   "a directory, or a .zip, .ozx or array file by its extension");
    declare_transfer(app, *o, without(0));
    const auto packages = declare_package(app);
    return [o, packages](Session& session) {
        o->source = whole_of_packages(o->source);
        if (packages->size.empty()) return transfer(session, *o, "copied");
        return make_packages_of(session, *packages, o->source, o->destination);
    };
}

Run declare_rechunk(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    declare_places(app, *o, "an array, an array file or a member of one", "where the array is made: a directory");
    declare_transfer(app, *o, without(only_files | only_chunks));
    app.get_option("--chunks")->required()->option_text("SHAPE (required)");
    return [o](Session& session) { return transfer(session, *o, "rechunked"); };
}

}  // namespace tessera::cli
