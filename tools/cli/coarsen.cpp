// tessera coarsen, pyramid
#include <tessera/apart.h>
#include <tessera/reduce.h>

#include <memory>
#include <string>
#include <utility>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/node_facts.h>
#include <tessera/pyramid.h>
#include <tessera/secrets.h>
#include <tessera/write_computed.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "job.h"
#include "options.h"
#include "recipe.h"
#include "report.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace {

struct PyramidCommand {
    TransferOptions out;
    std::shared_ptr<PyramidRecipe> made = std::make_shared<PyramidRecipe>();
    std::function<void()> read;
    bool upgrade = false;
};

OmeVersion ome_option(const std::string& text) {
    return in_context([] { return "--ome"; }, [&] { return ome_version_named(text); });
}

/// `pyramid PATH --upgrade`: newer metadata, the same chunks.
int upgrade(Session& session, const PyramidCommand& o) {
    const std::string& path = o.out.source;
    if (!o.out.destination.empty()) {
        throw invalid_argument("--upgrade changes the metadata of one group, {}, and makes no {}", path,
                               o.out.destination);
    }
    const OmeVersion to = ome_option(o.made->ome.value_or("0.5"));
    const std::vector<std::string> changed = about_path(path, [&] { return upgrade_ome(path, to, session.store()); });
    if (session.options().json) {
        print_json(Value{{"path", path_value(path)}, {"ome", ome_version_text(to)}, {"groups", changed.size()}});
    } else if (!session.options().quiet) {
        print(fmt::format("{}: {} group{} upgraded to OME-Zarr {}\n", printable(path), changed.size(),
                          changed.size() == 1 ? "" : "s", ome_version_text(to)));
    }
    return exit_done;
}

int pyramid(Session& session, const PyramidCommand& o) {
    o.read();
    if (o.upgrade) return upgrade(session, o);
    const std::string& path = o.out.destination;
    if (path.empty()) throw invalid_argument("no DST was given, where the group is made");
    o.made->source.path = o.out.source;
    if (!o.made->geo && o.made->crs) throw invalid_argument("--crs: only with --geo");
    if (!o.made->geo && !o.made->transform.empty()) throw invalid_argument("--transform: only with --geo");
    const Recipe recipe{.make = *o.made};
    const std::shared_ptr<const ArraySource> array =
        about_path(o.out.source, [&] { return open_source(o.out.source); });
    if (!names_array_file(path)) require_no_other_file(path);
    require_apart({o.out.source}, path);
    PyramidOptions options = about_recipe(recipe, [&] { return pyramid_options(*o.made); });
    options.arrays = wishes_of(o.out, false);
    options.overwrite = o.out.overwrite;
    options.dry_run = o.out.dry_run;
    options.io = session.io();
    options.store = session.store();
    if (!o.out.fills.empty()) options.arrays.fill = json_or_text(o.out.fills.back());
    if (session.planning) {
        TransferOptions out = o.out;
        out.recipe = recipe;
        return plan_transfer(session, out);
    }
    const CopiedHierarchy made = about_recipe(recipe, [&] { return make_pyramid(array, o.out.source, path, options); });
    session.clear_progress();
    if (o.out.dry_run) {
        report_plan(session, o.out, made);
    } else {
        report_copied(session, o.out, made, "made");
    }
    return exit_done;
}

}  // namespace

Run declare_coarsen(CLI::App& app) {
    auto out = std::make_shared<TransferOptions>();
    auto made = std::make_shared<CoarsenRecipe>();
    declare_places(app, *out);
    const auto read = declare_recipe(app, made);
    declare_result_options(app, *out);
    return [out, made, read](Session& session) {
        read();
        made->source.path = out->source;
        return make_recipe(session, *out, {.make = *made}, "coarsened");
    };
}

Run declare_pyramid(CLI::App& app) {
    auto o = std::make_shared<PyramidCommand>();
    app.add_option("SRC", o->out.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->out.destination, "a directory, or a .zip or .ozx by its extension")->option_text(" ");
    o->read = declare_recipe(app, o->made);
    app.add_option("--chunks", o->out.chunks, "lengths of a chunk")->option_text("SHAPE");
    app.add_option("--codec", o->out.codec, "codecs in order, such as blosc:zstd:5:shuffle")->option_text("CODECS");
    app.add_option("--fill", o->out.fills, "fill value, JSON or text")->allow_extra_args(false)->option_text("VALUE");
    app.add_option("--format", o->out.format, "v2 (OME-NGFF 0.4) or v3 (0.5, the default)")->option_text("FORMAT");
    app.add_flag("--upgrade", o->upgrade,
                 "no DST: SRC, a group of v3, gets metadata of a newer version (default 0.5); no chunk is touched");
    app.add_flag("--overwrite", o->out.overwrite, "replace the levels that are there");
    app.add_flag("--dry-run", o->out.dry_run, "say what would be made; make nothing");
    return [o](Session& session) { return pyramid(session, *o); };
}

}  // namespace tessera::cli
