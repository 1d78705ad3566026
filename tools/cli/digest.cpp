// tessera digest
#include <fmt/format.h>

#include <tessera/digest.h>
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

int digest_one(Session& session, const std::string& path, bool alone) {
    const NodeDigest found =
        at_located(path, [&](const Located& at) { return about_path(path, [&] { return digest(at, session.io()); }); });
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
    print_json(alone ? Value(Value::Array{std::move(value)}) : std::move(value));
    return exit_done;
}

}  // namespace

Run declare_digest(CLI::App& app) {
    auto paths = std::make_shared<std::vector<std::string>>();
    app.add_option("PATH", *paths, "arrays, groups, array files or members of one")->required()->option_text(" ");
    return [paths](Session& session) {
        return for_each_path(session, *paths,
                             [&](const std::string& path) { return digest_one(session, path, paths->size() == 1); });
    };
}

}  // namespace tessera::cli
