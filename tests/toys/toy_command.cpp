// tessera greet: a command as one would add it, this file and a row in tools/cli/commands.cpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "report.h"

namespace tessera::cli {

Run declare_greet(CLI::App& app) {
    const auto name = std::make_shared<std::string>();
    app.add_option("NAME", *name, "who")->required();
    return [name](Session& session) {
        if (session.options().json) {
            Value report = Value::object();
            report.set("hello", *name);
            print_json(report);
        } else {
            print(fmt::format("hello {}\n", *name));
        }
        return exit_done;
    };
}

}  // namespace tessera::cli
