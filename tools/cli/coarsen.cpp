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
#include "hierarchy.h"
#include "job.h"
#include "options.h"
#include "report.h"
#include "transfer.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace {

struct PyramidCommand {
    TransferOptions out;
    bool upgrade = false;

    [[nodiscard]] PyramidRecipe& made() { return std::get<PyramidRecipe>(out.recipe.make); }
};

OmeVersion ome_option(const std::string& text) {
    return in_context([] { return "--ome"; }, [&] { return ome_version_named(text); });
}

/// `pyramid PATH --upgrade`: newer metadata, the same chunks.
int upgrade(Session& session, PyramidCommand& o) {
    const std::string& path = o.out.source;
    if (!o.out.destination.empty()) {
        throw invalid_argument("--upgrade changes the metadata of one group, {}, and makes no {}", path,
                               o.out.destination);
    }
    const OmeVersion to = ome_option(o.made().ome.value_or("0.5"));
    const std::vector<std::string> changed = about_path(path, [&] { return upgrade_ome(path, to, session.store()); });
    report(session, Value{{"path", path_value(path)}, {"ome", ome_version_text(to)}, {"groups", changed.size()}},
           fmt::format("{}: {} upgraded to OME-Zarr {}", path, count_text(std::ssize(changed), "group"),
                       ome_version_text(to)));
    return exit_done;
}

int pyramid(Session& session, PyramidCommand& o) {
    if (o.upgrade) return upgrade(session, o);
    PyramidRecipe& recipe = o.made();
    const std::string& path = o.out.destination;
    if (path.empty()) throw invalid_argument("no DST was given, where the group is made");
    recipe.source.path = o.out.source;
    if (!recipe.geo && recipe.crs) throw invalid_argument("--crs: only with --geo");
    if (!recipe.geo && !recipe.transform.empty()) throw invalid_argument("--transform: only with --geo");
    const std::shared_ptr<const ArraySource> array =
        about_path(o.out.source, [&] { return open_source(o.out.source); });
    if (!names_array_file(path)) require_no_other_file(path);
    require_apart({o.out.source}, path);
    PyramidOptions options = about_recipe(o.out, [&] { return pyramid_options(recipe); });
    options.arrays = wishes_of(o.out);
    options.overwrite = o.out.result.overwrite;
    options.dry_run = o.out.result.dry_run;
    options.io = session.io();
    options.store = session.store();
    if (!o.out.result.fills.empty()) options.arrays.fill = o.out.result.fills.back();
    if (session.planning) return about_recipe(o.out, [&] { return plan_transfer(session, o.out); });
    const CopiedHierarchy made = about_recipe(o.out, [&] { return make_pyramid(array, o.out.source, path, options); });
    session.clear_progress();
    if (options.dry_run) {
        report_plan(session, o.out, made);
    } else {
        report_copied(session, o.out, made, "made");
    }
    return exit_done;
}

}  // namespace

Run declare_coarsen(CLI::App& app) {
    const auto o = declare_recipe<CoarsenRecipe>(app);
    return [o](Session& session) {
        std::get<CoarsenRecipe>(o->recipe.make).source.path = o->source;
        return make_recipe(session, *o, "coarsened");
    };
}

Run declare_pyramid(CLI::App& app) {
    auto o = std::make_shared<PyramidCommand>();
    o->out.recipe.make = PyramidRecipe();
    declare_places(app, o->out, "an array, an array file or a member of one",
                   "a directory, or a .zip or .ozx by its extension");
    app.get_option("DST")->required(false);
    declare_options(app, o->made());
    declare_options(app, o->out.result, only_named({"chunks", "codec", "fill", "format", "overwrite", "dry_run"}));
    app.get_option("--format")->description("v2 (OME-NGFF 0.4) or v3 (0.5, the default)");
    app.add_flag("--upgrade", o->upgrade,
                 "no DST: SRC, a group of v3, gets metadata of a newer version (default 0.5); no chunk is touched");
    return [o](Session& session) { return pyramid(session, *o); };
}

}  // namespace tessera::cli
