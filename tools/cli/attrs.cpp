// tessera attrs
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command.h"
#include "edit.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "retry.h"

namespace tessera::cli {

namespace {

struct AttrsOptions {
    std::string path, action, key, json;
    bool no_undo = false;
};

Value parse_attribute(const std::string& text) {
    try {
        return Value::parse(text);
    } catch (const Error& e) {
        throw invalid_argument(fmt::format(
            "the value {} is not JSON ({}); text needs quotes inside the shell's: '\"text\"'", text, e.what()));
    }
}

Group group_of(Place place) {
    if (probe_group_dialect(*place.store, place.prefix) == nullptr && child_nodes(*place.store, place.prefix).empty()) {
        throw not_found(absence_message(*place.store, place.prefix, "array or group"));
    }
    return Group::open(std::move(place.store), place.prefix);
}

/// The attributes of the array or group at a path.
Attributes attributes_at(const std::string& path, const StoreOptions& options) {
    Place place = find_place(path, options);
    if (probe_dialect(*place.store, place.prefix) != nullptr) {
        return Array::open(std::move(place.store), place.prefix).attributes();
    }
    return group_of(std::move(place)).attributes();
}

/// Attributes to be changed. What is replaced is kept while this lives.
struct AttributeChange {
    Attributes attributes;
    Undoable keeping;
};

AttributeChange attributes_to_change(const Session& session, const AttrsOptions& o) {
    Place place = find_place(o.path, session.store());
    if (probe_dialect(*place.store, place.prefix) == nullptr) {
        const Group group = group_of(std::move(place));
        return {group.attributes(), keep_for_undo(session, group, o.no_undo)};
    }
    const Array array = Array::open(std::move(place.store), place.prefix);
    return {array.attributes(), keep_for_undo(session, array, o.no_undo)};
}

void set_names(const Session& session, const AttrsOptions& o, Array& array,
               const std::vector<std::optional<std::string>>& names) {
    const Undoable keeping = keep_for_undo(session, array, o.no_undo);
    array.set_dimension_names(names);
}

/// The array at a path, if `key` names a member of its metadata rather than an attribute. In v3, dimension names are
/// such a member, and programs look for them there.
std::optional<Array> array_of_names(const std::string& path, const std::string& key, const StoreOptions& options) {
    if (key != "dimension_names") return {};
    Place place = find_place(path, options);
    const Dialect* dialect = probe_dialect(*place.store, place.prefix);
    if (dialect == nullptr || !dialect->dimension_names) return {};
    return Array::open(std::move(place.store), place.prefix);
}

std::vector<std::optional<std::string>> names_from(const Value& json) {
    const auto is_name = [](const Value& v) { return v.is_string() || v.is_null(); };
    if (!json.is_array() || !std::ranges::all_of(json.as_array(), is_name)) {
        throw invalid_argument(
            fmt::format("dimension_names: expected a list of names such as '[\"y\", \"x\"]', found {}", json.dump()));
    }
    std::vector<std::optional<std::string>> names;
    for (const Value& v : json.as_array()) names.push_back(v.is_null() ? std::nullopt : std::optional(v.as_string()));
    return names;
}

/// Reports the result of `set` and `rm` to programs only: a user knows it.
void report_change(const Session& session, const AttrsOptions& o) {
    if (!session.options().json) return;
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("action", o.action);
    value.set("key", path_value(o.key));
    if (o.action == "mv") value.set("new_key", path_value(o.json));
    print_json(value);
}

/// The attributes of whatever a path names: an array, a group, an array file.
Value attributes_of(const std::string& path) {
    if (probe_place(path, {.read_only = true})) return attributes_at(path, {.read_only = true}).all();
    return about_path(path, [&] { return open_source(path)->attribute_values(); });
}

/// Copies all attributes except those that are specific to FROM.
void copy_attributes(Session& session, const AttrsOptions& o) {
    Value values = attributes_of(o.key);
    for (const std::string_view own : {dimensions_attribute, null_fill_attribute}) {
        if (values.erase(own)) {
            session.note(fmt::format("{}: {} is not copied, because it describes that array only{}", o.key, own,
                                     own == dimensions_attribute ? "; `tessera dims` names dimensions" : ""));
        }
    }
    attributes_to_change(session, o).attributes.merge(values);
}

/// Runs the action if it is mv or copy; returns whether it was.
bool move_or_copy(Session& session, const AttrsOptions& o) {
    if (o.action == "mv") {
        if (o.key.empty() || o.json.empty()) throw invalid_argument("attrs PATH mv OLD NEW: two names are needed");
        attributes_to_change(session, o).attributes.rename(o.key, o.json);
    } else if (o.action == "copy") {
        if (o.key.empty() || !o.json.empty()) throw invalid_argument("attrs PATH copy FROM: one path is needed");
        copy_attributes(session, o);
    } else {
        return false;
    }
    note_stale(session, {o.path});
    report_change(session, o);
    return true;
}

int attrs(Session& session, const AttrsOptions& o) {
    if (move_or_copy(session, o)) return exit_done;
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
        // Without --json in Python's spelling, with bare NaN.
        session.options().json ? print_json(all) : print(unsteering(all.dump({.indent = 2})) + "\n");
    } else if (o.action == "get") {
        require(true, false);
        std::optional<Value> value = attributes_at(o.path, {.read_only = true}).get(o.key);
        const auto named = value ? std::nullopt : array_of_names(o.path, o.key, {.read_only = true});
        if (named && !named->metadata().dimension_names.empty()) {
            value = dimension_names_json(named->metadata().dimension_names);
        }
        if (!value) throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        session.options().json ? print_json(*value) : print(unsteering(value->dump()) + "\n");
    } else if (o.action == "set") {
        require(true, true);
        const Value value = parse_attribute(o.json);
        if (auto named = array_of_names(o.path, o.key, session.store())) {
            set_names(session, o, *named, names_from(value));
            session.note(fmt::format(
                "{}: dimension_names is a member of v3's metadata, not an attribute; it was set there", o.path));
        } else {
            attributes_to_change(session, o).attributes.set(o.key, value);
        }
        note_stale(session, {o.path});
        report_change(session, o);
    } else if (o.action == "rm") {
        require(true, false);
        auto named = array_of_names(o.path, o.key, session.store());
        if (attributes_to_change(session, o).attributes.erase(o.key)) {
            // an attribute of that name, perhaps from another program
        } else if (named && !named->metadata().dimension_names.empty()) {
            set_names(session, o, *named, {});
        } else {
            throw not_found(fmt::format("{}: no attribute '{}'", o.path, o.key));
        }
        note_stale(session, {o.path});
        report_change(session, o);
    } else {
        throw invalid_argument(
            fmt::format("attrs: expected get, set, rm, mv or copy after the path, found '{}'", o.action));
    }
    return exit_done;
}

}  // namespace

Run declare_attrs(CLI::App& app) {
    auto o = std::make_shared<AttrsOptions>();
    app.add_option("PATH", o->path, "an array or a group")->required()->option_text(" ");
    app.add_option("ACTION", o->action, "get, set, rm, mv or copy")->option_text(" ");
    app.add_option("KEY", o->key, "the attribute's name; for copy what has the attributes")->option_text(" ");
    app.add_option("JSON", o->json, "its new value; for mv its new name")->option_text(" ");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return retry_when_replaced({o->path}, [&] { return attrs(session, *o); }); };
}

}  // namespace tessera::cli
