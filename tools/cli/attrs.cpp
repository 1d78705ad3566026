// tessera attrs
#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "command.h"
#include "hierarchy.h"
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

/// Of the array or group at a path.
Attributes attributes_at(const std::string& path, const StoreOptions& options) {
    Place place = find_place(path, options);
    if (probe_dialect(*place.store, place.prefix) != nullptr) {
        return Array::open(std::move(place.store), place.prefix).attributes();
    }
    if (probe_group_dialect(*place.store, place.prefix) == nullptr && child_nodes(*place.store, place.prefix).empty()) {
        throw not_found(absence_message(*place.store, place.prefix, "array or group"));
    }
    return Group::open(std::move(place.store), place.prefix).attributes();
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
        const Value all = attributes_at(o.path, {.read_only = true}).all();
        if (session.options().json) {
            print(all.dump() + "\n");
        } else {
            print_json(all);
        }
    } else if (o.action == "get") {
        require(true, false);
        const std::optional<Value> value = attributes_at(o.path, {.read_only = true}).get(o.key);
        if (!value) throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        print(value->dump() + "\n");
    } else if (o.action == "set") {
        require(true, true);
        const Value value = parse_attribute(o.json);
        attributes_at(o.path, session.store()).set(o.key, value);
        note_stale(session, {o.path});
    } else if (o.action == "rm") {
        require(true, false);
        if (!attributes_at(o.path, session.store()).erase(o.key)) {
            throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        }
        note_stale(session, {o.path});
    } else {
        throw invalid_argument(fmt::format("attrs: expected get, set or rm after the path, found '{}'", o.action));
    }
    return exit_done;
}

}  // namespace

Run declare_attrs(CLI::App& app) {
    auto o = std::make_shared<AttrsOptions>();
    app.add_option("PATH", o->path, "an array or a group")->required()->option_text(" ");
    app.add_option("ACTION", o->action, "get, set or rm")->option_text(" ");
    app.add_option("KEY", o->key, "the attribute's name")->option_text(" ");
    app.add_option("JSON", o->json, "its new value")->option_text(" ");
    return [o](Session& session) { return attrs(session, *o); };
}

}  // namespace tessera::cli
