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

int verify_path(Session& session, const std::string& path) {
    const VerifyReport report = retry_when_replaced({path}, [&] { return verify(path, {.io = session.io()}); });
    session.clear_progress();
    if (session.options().json) {
        print_json(report_value(path, report));
    } else if (!session.options().quiet) {
        print_report(path, report);
    }
    return report.sound() ? exit_done : exit_differences;
}

}  // namespace

Run declare_verify(CLI::App& app) {
    auto path = std::make_shared<std::string>();
    app.add_option("PATH", *path, "an array, a group, a directory or zip of them, or an array file")
        ->required()
        ->option_text(" ");
    return [path](Session& session) { return verify_path(session, *path); };
}

}  // namespace tessera::cli
