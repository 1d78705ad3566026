// tessera digest
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/digest.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

int digest_each(Session& session, const std::vector<std::string>& paths) {
    Value list = Value::array();
    for (const std::string& path : paths) {
        const std::string sum = at_located(path, [&](const Located& at) {
            return about_path(path, [&] { return digest(*open_source(at), session.io()); });
        });
        session.clear_progress();
        if (session.options().json) {
            Value value = Value::object();
            value.set("path", path_value(path));
            value.set("digest", sum);
            list.push_back(std::move(value));
        } else {
            print(printable(fmt::format("{}  {}", sum, path)) + "\n");
        }
    }
    if (session.options().json) print_json(list);
    return exit_done;
}

}  // namespace

Run declare_digest(CLI::App& app) {
    auto paths = std::make_shared<std::vector<std::string>>();
    app.add_option("PATH", *paths, "arrays, array files or members of one")->required()->option_text(" ");
    return [paths](Session& session) { return digest_each(session, *paths); };
}

}  // namespace tessera::cli
