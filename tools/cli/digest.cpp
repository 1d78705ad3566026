// tessera digest
#include <fmt/format.h>

#include <tessera/file_sums.h>
#include <tessera/locate.h>
#include <tessera/measure.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "options.h"
#include "paths.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct DigestOptions {
    std::vector<std::string> paths;
    bool dandi = false;
    bool each = false;
};

/// The lines of a folder's files, as `sha256sum` prints them from where the path is given.
int print_sums(Session& session, const std::string& path) {
    const std::string folder = path.substr(0, path.find_last_not_of('/') + 1);
    at_place(path, {.read_only = true}, [&](const Place& place) {
        file_sums(
            place, folder,
            [](ByteSpan bytes) {
                print({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            },
            session.io());
    });
    session.clear_progress();
    return exit_done;
}

NodeDigest digest_of(Session& session, const std::string& path, bool dandi) {
    if (!dandi) {
        return at_located(
            path, [&](const Located& at) { return about_path(path, [&] { return digest(at, session.io()); }); });
    }
    return at_place(path, {.read_only = true},
                    [&](const Place& place) { return NodeDigest{.digest = dandi_checksum(place, session.io())}; });
}

int digest_one(Session& session, const std::string& path, const DigestOptions& o) {
    if (o.each) return print_sums(session, path);
    const NodeDigest found = digest_of(session, path, o.dandi);
    session.clear_progress();
    if (!session.options().json) {
        print(printable(fmt::format("{}  {}", found.digest, path)) + "\n");
        return exit_done;
    }
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("digest", found.digest);
    Value arrays = Value::array();
    for (const auto& [name, sum] : found.arrays) {
        Value array = Value::object();
        array.set("path", path_value(name));
        array.set("digest", sum);
        arrays.push_back(std::move(array));
    }
    value.set("arrays", found.group ? std::move(arrays) : Value());
    print_json(o.paths.size() == 1 ? Value(Value::Array{std::move(value)}) : std::move(value));
    return exit_done;
}

}  // namespace

Run declare_digest(CLI::App& app) {
    auto o = std::make_shared<DigestOptions>();
    app.add_option("PATH", o->paths, "arrays, groups, array files or members of one")->required()->option_text(" ");
    auto* dandi = app.add_flag("--dandi", o->dandi, "DANDI's checksum of the files of an array or a group");
    app.add_flag("--each", o->each, "a line for each file, as sha256sum prints it")->excludes(dandi);
    return [o](Session& session) {
        if (o->each && session.options().json) {
            throw invalid_argument("--each prints lines for `sha256sum -c`, not --json");
        }
        return for_each_path(session, o->paths, [&](const std::string& path) { return digest_one(session, path, *o); });
    };
}

}  // namespace tessera::cli
