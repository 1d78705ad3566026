// tessera attrs
#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "command.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct AttrsOptions {
    std::string path, action, key, json;
};

Value parse_attribute(const std::string& text) {
    try {
        return Value::parse(text);
    } catch (const Error& e) {
        throw invalid_argument(fmt::format(
            "the value {} is not JSON ({}); text needs quotes inside the shell's: '\"text\"'", text, e.what()));
    }
}

int attrs(Session& session, const AttrsOptions& o) {
    const auto require = [&](bool key, bool json) {
        if (o.key.empty() == key || o.json.empty() == json) {
            throw invalid_argument(fmt::format("attrs PATH {0}{1}{2}: found {3}", o.action, key ? " KEY" : "",
                                               json ? " JSON" : "",
                                               o.key.empty()    ? "nothing after " + o.action
                                               : o.json.empty() ? "no JSON"
                                                                : "'" + o.json + "' as well"));
        }
    };
    if (o.action.empty()) {
        const Value all = Array::open(o.path, true).attributes().all();
        if (session.options().json) {
            print(all.dump() + "\n");
        } else {
            print_json(all);
        }
    } else if (o.action == "get") {
        require(true, false);
        const std::optional<Value> value = Array::open(o.path, true).attributes().get(o.key);
        if (!value) throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        print(value->dump() + "\n");
    } else if (o.action == "set") {
        require(true, true);
        const Value value = parse_attribute(o.json);
        Array::open(o.path).attributes().set(o.key, value);
    } else if (o.action == "rm") {
        require(true, false);
        if (!Array::open(o.path).attributes().erase(o.key)) {
            throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        }
    } else {
        throw invalid_argument(fmt::format("attrs: expected get, set or rm after the path, found '{}'", o.action));
    }
    return exit_done;
}

}  // namespace

Run declare_attrs(CLI::App& app) {
    auto o = std::make_shared<AttrsOptions>();
    app.add_option("PATH", o->path, "an array")->required()->option_text(" ");
    app.add_option("ACTION", o->action, "get, set or rm")->option_text(" ");
    app.add_option("KEY", o->key, "the attribute's name")->option_text(" ");
    app.add_option("JSON", o->json, "its new value")->option_text(" ");
    return [o](Session& session) { return attrs(session, *o); };
}

}  // namespace tessera::cli
