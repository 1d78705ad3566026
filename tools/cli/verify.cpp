// tessera verify
#include <tessera/locate.h>
#include <tessera/report_values.h>
#include <tessera/verify.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "advice.h"
#include "command.h"
#include "findings.h"
#include "paths.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct VerifyCall {
    std::vector<std::string> paths;
    bool verbose = false;
    bool complete = false, ome = false, geo = false;
};

int verify_path(Session& session, const VerifyCall& o, const std::string& path) {
    const VerifyReport report = again_when_replaced(
        path, [&] { return verify(path, {.io = session.io(), .complete = o.complete, .ome = o.ome, .geo = o.geo}); });
    session.clear_progress();
    if (session.options().json) {
        print_json(verified_value(path, report, advised));
    } else if (!session.options().quiet) {
        print_report(path, report, o.verbose, o.complete);
    }
    return report.sound() ? exit_done : exit_differences;
}

}  // namespace

Run declare_verify(CLI::App& app) {
    auto o = std::make_shared<VerifyCall>();
    app.add_option("PATH", o->paths, "arrays, groups, directories or zips of them, or array files")
        ->required()
        ->option_text(" ");
    app.add_flag("--verbose", o->verbose,
                 "a line for each finding, also where many are alike, and for each request over the network");
    app.add_flag("--complete", o->complete, "each chunk that is not stored counts as damage");
    app.add_flag("--ome", o->ome, "check the metadata of OME-Zarr (0.4, 0.5, 0.6rc0) instead; no chunk is read")
        ->excludes("--complete");
    app.add_flag("--geo", o->geo, "the same for the metadata of GeoZarr (multiscales, spatial, proj; v0.1)")
        ->excludes("--complete");
    return [o](Session& session) {
        return for_each_path(session, o->paths, [&](const auto& path) { return verify_path(session, *o, path); });
    };
}

}  // namespace tessera::cli
