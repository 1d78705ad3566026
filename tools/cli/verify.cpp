// tessera verify
#include <tessera/verify.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "findings.h"
#include "report.h"
#include "retry.h"

namespace tessera::cli {

namespace {

struct VerifyCall {
    std::string path;
    bool verbose = false;
};

int verify_path(Session& session, const VerifyCall& o) {
    const std::string& path = o.path;
    const VerifyReport report = retry_when_replaced({path}, [&] { return verify(path, {.io = session.io()}); });
    session.clear_progress();
    if (session.options().json) {
        print_json(report_value(path, report));
    } else if (!session.options().quiet) {
        print_report(path, report, o.verbose);
    }
    return report.sound() ? exit_done : exit_differences;
}

}  // namespace

Run declare_verify(CLI::App& app) {
    auto o = std::make_shared<VerifyCall>();
    app.add_option("PATH", o->path, "an array, a group, a directory or zip of them, or an array file")
        ->required()
        ->option_text(" ");
    app.add_flag("--verbose", o->verbose, "a line for each finding, also where many are alike");
    return [o](Session& session) { return verify_path(session, *o); };
}

}  // namespace tessera::cli
