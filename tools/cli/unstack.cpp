// tessera unstack
#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
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
    if (plan.dtype.size() == 0) return fmt::format("{} data sets", plan.paths.size());
    const std::string elements = fmt::format("{} {}", shape_text(plan.shape), plan.dtype.to_string());
    if (!plan.array) return fmt::format("{} array files, {}", plan.paths.size(), elements);
    const ChunkLayout layout = chunk_layout(plan.array->metadata);
    return fmt::format("{} arrays, {}, {}, chunks {}, {}", plan.paths.size(), elements, plan.array->dialect->name,
                       shape_text(layout.chunks), codecs_text(layout.codecs));
}

int unstack(Session& session, UnstackCommand o) {
    TransferOptions& t = o.transfer;
    const ResultOptions& r = t.result;
    const Located at = about_path(t.source, [&] { return locate(t.source); });
    std::get<CopyRecipe>(t.recipe.make).source.path = t.source;
    const bool several = DataSet::of(at).has_value();
    const auto source =
        several ? nullptr
                : about_path(t.source, [&] { return open_readable_source(at, reading_options(t.recipe, at)); });
    if (source && source->info().shape.empty()) throw invalid_argument("{}: it has no dimension", t.source);
    UnstackOptions options = about_recipe(t, [&] { return unstack_options(r, t.recipe, t.destination); });
    if (source) options.axis = in_context([] { return "--axis"; }, [&] { return find_dimension(o.axis, *source); });
    options.arrays.preferred_format = wishes_of(t).preferred_format;
    options.file.durable = session.options().durability != Durability::none;
    options.io = session.io();
    options.store = session.store();
    options.note = [&](const Note& note) { session.note(advised(note.text, note.advice)); };
    Unstacked made;
    try {
        made = source ? tessera::unstack(*source, t.destination, options)
                      : about_recipe(t, [&] { return unstack_set(t.recipe, r, t.destination, o.axis, options); });
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(r.resume ? "interrupted; the same command goes on with what is missing"
                                 : "interrupted; the files that were new are removed");
    }
    session.clear_progress();
    Value paths = Value::array();
    for (const std::string& path : made.paths) paths.push_back(path_value(path));
    const std::string done = r.dry_run ? fmt::format("would make {}:", plan_text(made)) : "unstacked";
    const std::string format = made.array && !r.dry_run ? fmt::format(" ({})", made.array->dialect->name) : "";
    report(session,
           Value{{"source", path_value(t.source)},
                 {"axis", source ? Value(options.axis) : Value(o.axis)},
                 {"dry_run", r.dry_run},
                 {"paths", std::move(paths)}},
           fmt::format("{} {} → {} to {}{}", done, t.source, made.paths.front(), made.paths.back(), format));
    return exit_done;
}

}  // namespace

Run declare_unstack(CLI::App& app) {
    auto o = std::make_shared<UnstackCommand>();
    TransferOptions& t = o->transfer;
    declare_places(app, t, "an array, a group, an array file or a member of one",
                   "where they go, with {} for the number: 'frames/frame-{}.npy'");
    app.add_option(
           "--axis", o->axis,
           "the dimension that is taken apart, by name or number (default 0; -1: the last); of several arrays by name")
        ->option_text("DIM");
    declare_transfer(app, t,
                     only_named({"only", "except", "chunks", "codec", "format", "order", "deflate", "object_strings",
                                 "reverse_dims", "overwrite", "resume", "dry_run"}));
    app.get_option("--overwrite")->description("replace files and arrays that are there");
    app.get_option("--resume")
        ->description(
            "resume: keep existing files whose content matches their step; if interrupted, keep finished files");
    return [o](Session& session) { return unstack(session, *o); };
}

}  // namespace tessera::cli
