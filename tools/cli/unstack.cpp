// tessera unstack
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/unstack.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "advice.h"
#include "command.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

struct UnstackCommand {
    TransferOptions transfer;
    std::string axis = "0";
};

/// What would be made, as text.
std::string plan_text(const Unstacked& plan) {
    const std::string elements = fmt::format("{} {}", shape_text(plan.shape), plan.dtype.to_string());
    if (!plan.array) return fmt::format("{} array files, {}", plan.paths.size(), elements);
    const ChunkLayout layout = chunk_layout(plan.array->metadata);
    return fmt::format("{} arrays, {}, {}, chunks {}, {}", plan.paths.size(), elements, plan.array->dialect->name,
                       shape_text(layout.chunks), codecs_text(layout.codecs));
}

int unstack(Session& session, const UnstackCommand& o) {
    const TransferOptions& t = o.transfer;
    const auto source = about_path(t.source, [&] {
        const Located at = locate(t.source);
        return converted(open_readable_source(at, reading_options(t, at)), t.dtype, t.cast);
    });
    if (source->info().shape.empty()) throw invalid_argument("{}: it has no dimension", t.source);
    const bool to_file = names_array_file(t.destination);
    TransferOptions each = t;
    each.resume = false;  // of all steps, not of one file
    require_fitting_options(each, to_file);
    UnstackOptions options{.axis = in_context([] { return "--axis"; }, [&] { return find_dimension(o.axis, *source); }),
                           .arrays = wishes_of(t, to_file),
                           .file = {.deflate_level = t.deflate ? parse_number("--deflate", *t.deflate, 0, 9) : 0,
                                    .reverse_dims = t.reverse_dims,
                                    .durable = session.options().durability != Durability::none,
                                    .object_strings = t.object_strings},
                           .overwrite = t.overwrite,
                           .resume = t.resume,
                           .dry_run = t.dry_run,
                           .io = session.io(),
                           .store = session.store(),
                           .note = [&](const Note& note) { session.note(advised(note.text, note.advice)); }};
    Unstacked made;
    try {
        made = tessera::unstack(*source, t.destination, options);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(t.resume ? "interrupted; the same command goes on with what is missing"
                                 : "interrupted; the files that were new are removed");
    }
    session.clear_progress();
    Value paths = Value::array();
    for (const std::string& path : made.paths) paths.push_back(path_value(path));
    const std::string done = t.dry_run ? fmt::format("would make {}:", plan_text(made)) : "unstacked";
    const std::string format = made.array && !t.dry_run ? fmt::format(" ({})", made.array->dialect->name) : "";
    report(session,
           Value{{"source", path_value(t.source)},
                 {"axis", options.axis},
                 {"dry_run", t.dry_run},
                 {"paths", std::move(paths)}},
           fmt::format("{} {} → {} to {}{}", done, t.source, made.paths.front(), made.paths.back(), format));
    return exit_done;
}

}  // namespace

Run declare_unstack(CLI::App& app) {
    auto o = std::make_shared<UnstackCommand>();
    TransferOptions& t = o->transfer;
    app.add_option("SRC", t.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", t.destination, "where they go, with {} for the number: 'frames/frame-{}.npy'")
        ->required()
        ->option_text(" ");
    app.add_option("--axis", o->axis, "the dimension that is taken apart, by name or number (default 0; -1: the last)")
        ->option_text("DIM");
    app.add_option("--chunks", t.chunks, "lengths of a chunk")->option_text("SHAPE");
    app.add_option("--codec", t.codec, "codecs in order, such as blosc:zstd:5:shuffle")->option_text("CODECS");
    app.add_option("--format", t.format, format_choices())->option_text("FORMAT");
    app.add_option("--order", t.order, "order of the elements in a chunk, or in an array file")->option_text("C|F");
    app.add_option("--deflate", t.deflate, "compress an .npz: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    declare_object_strings(app, t);
    app.add_flag("--reverse-dims", t.reverse_dims, "reverse the dimensions of a .ra");
    app.add_flag("--overwrite", t.overwrite, "replace files and arrays that are there");
    app.add_flag("--resume", t.resume,
                 "resume: keep existing files whose content matches their step; if interrupted, keep finished files");
    app.add_flag("--dry-run", t.dry_run, "say what would be made, and write nothing");
    return [o](Session& session) { return unstack(session, *o); };
}

}  // namespace tessera::cli
