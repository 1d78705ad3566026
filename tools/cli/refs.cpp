// tessera refs
#include <fmt/format.h>

#include <tessera/byte_io.h>
#include <tessera/locate.h>
#include <tessera/references.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct RefsOptions {
    std::string path;
    std::string out;
    bool skip_bad = false;
};

int write_references(Session& session, const RefsOptions& options) {
    std::vector<std::string> skipped;
    const Value found = again_when_replaced(options.path, [&] {
        skipped.clear();
        const auto skip = [&](const Error& e) { skipped.emplace_back(e.what()); };
        return about_path(options.path,
                          [&] { return options.skip_bad ? references(options.path, skip) : references(options.path); });
    });
    for (const std::string& array : skipped) session.note("left out: " + array);
    // Not print_json(), which escapes terminal control characters: these are file names.
    const std::string text = fmt::format("{}\n", found.dump({.indent = 1}));
    if (options.out.empty()) {
        print(text);
        return exit_done;
    }
    const auto sink = create_file(options.out, session.options().durability != Durability::none);
    sink->append(std::as_bytes(std::span(text)));
    sink->finish();
    if (session.options().json) {
        Value facts = Value::object();
        facts.set("path", path_value(options.path));
        facts.set("out", path_value(options.out));
        facts.set("references", static_cast<std::int64_t>(found.at("refs").as_object().size()));
        print_json(facts);
    }
    return exit_done;
}

}  // namespace

Run declare_refs(CLI::App& app) {
    auto options = std::make_shared<RefsOptions>();
    app.add_option("PATH", options->path,
                   "an array or a group in a directory, a .npy, .npz, .ra, .nc, .h5, .tif or "
                   ".safetensors; URLs too")
        ->required()
        ->option_text(" ");
    app.add_option("--out", options->out, "the file to write, in the place of one that is there; else standard output")
        ->option_text("FILE");
    app.add_flag("--skip-bad", options->skip_bad,
                 "leave arrays out that such references cannot say, with a note for each; else they are an error");
    return [options](Session& session) { return write_references(session, *options); };
}

}  // namespace tessera::cli
