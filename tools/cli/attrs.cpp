// tessera attrs
#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command.h"
#include "edit.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct AttrsOptions {
    std::string path, action, key, json;
    bool no_undo = false;
    bool json_value = false;
};

/// JSON, or else text: a unit such as m needs no quotes inside the shell's.
Value parse_attribute(Session& session, const AttrsOptions& o) {
    try {
        return Value::parse(o.json);
    } catch (const Error& e) {
        if (o.json_value) throw invalid_argument("--json-value: the value {} is not JSON ({})", o.json, e.what());
    }
    // A list or an object with a slip in it, or a number or constant in another spelling.
    constexpr std::string_view openings = "[{\"'+-.0123456789";
    const bool doubtful = !o.json.empty() && openings.find(o.json.front()) != std::string_view::npos;
    if (doubtful || o.json == "True" || o.json == "False" || o.json == "None") {
        session.note(fmt::format("{} is no JSON, and is set as text; --json-value refuses that", o.json));
    }
    return Value(o.json);
}

Group group_of(const Located& at) {
    if (std::optional<Group> group = group_at(at)) return *std::move(group);
    if (at.place && !at.file.member) {
        throw absence(*at.place, "array or group");
    }
    (void)find_place(at.path);  // throws, naming what is there
    throw not_found("{}: no array or group is here", at.path);
}

Attributes attributes_of(const Located& at) {
    return at.kind == PathKind::array ? at.array().attributes() : group_of(at).attributes();
}

/// Attributes to be changed. What is replaced is kept while this lives.
struct AttributeChange {
    Attributes attributes;
    Undoable keeping;
};

AttributeChange attributes_to_change(const Session& session, const AttrsOptions& o, const Located& at) {
    if (at.kind != PathKind::array) {
        const Group group = group_of(at);
        return {group.attributes(), keep_for_undo(session, group, o.no_undo)};
    }
    const Array array = at.array();
    return {array.attributes(), keep_for_undo(session, array, o.no_undo)};
}

/// The array, if `key` names a member of its metadata rather than an attribute. In v3, dimension names are such a
/// member, and programs look for them there.
std::optional<Array> array_of_names(const Located& at, const std::string& key) {
    if (key != "dimension_names" || at.kind != PathKind::array || !at.dialect->dimension_names) return {};
    return at.array();
}

void set_names(const Session& session, const AttrsOptions& o, Array& array,
               const std::vector<std::optional<std::string>>& names) {
    const Undoable keeping = keep_for_undo(session, array, o.no_undo);
    array.set_dimension_names(names);
}

std::vector<std::optional<std::string>> names_from(const Value& json) {
    const auto is_name = [](const Value& v) { return v.is_string() || v.is_null(); };
    if (!json.is_array() || !std::ranges::all_of(json.as_array(), is_name)) {
        throw invalid_argument("dimension_names: expected a list of names such as '[\"y\", \"x\"]', found {}",
                               json.dump());
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

/// Calls make(located), which changes the attributes at the path, and reports that.
template <class Make>
void change(Session& session, const AttrsOptions& o, const Make& make) {
    at_located(o.path, make, session.store());
    note_stale(session, {o.path});
    report_change(session, o);
}

/// The attributes of an array, a group or an array file; those of a file of several arrays are its own.
Value attribute_values(const Located& at) {
    const bool file = at.kind == PathKind::array_file || (at.file.member && at.kind != PathKind::array);
    if (!file) return attributes_of(at).all();
    return about_path(at.path, [&] {
        if (at.file.member || at.format->groups == nullptr) return open_source(at)->attribute_values();
        for (const ArrayFileGroup& group : at.format->groups(at.file)) {
            if (group.name.empty()) return group.attributes;
        }
        return Value::object();
    });
}

/// Copies all attributes except those that are specific to FROM.
void copy_attributes(Session& session, const AttrsOptions& o) {
    Value values = at_located(o.key, attribute_values);
    for (const std::string_view own : {dimensions_attribute, null_fill_attribute}) {
        if (values.erase(own)) {
            session.note(fmt::format("{}: {} is not copied, because it describes that array only{}", o.key, own,
                                     own == dimensions_attribute ? "; `tessera dims` names dimensions" : ""));
        }
    }
    change(session, o, [&](const Located& at) { attributes_to_change(session, o, at).attributes.merge(values); });
}

/// Runs the action if it is mv or copy; returns whether it was.
bool move_or_copy(Session& session, const AttrsOptions& o) {
    if (o.action == "mv") {
        if (o.key.empty() || o.json.empty()) throw invalid_argument("attrs PATH mv OLD NEW: two names are needed");
        change(session, o,
               [&](const Located& at) { attributes_to_change(session, o, at).attributes.rename(o.key, o.json); });
    } else if (o.action == "copy") {
        if (o.key.empty() || !o.json.empty()) throw invalid_argument("attrs PATH copy FROM: one path is needed");
        copy_attributes(session, o);
    } else {
        return false;
    }
    return true;
}

Value attribute_at(const AttrsOptions& o, const Located& at) {
    const Value all = attribute_values(at);
    if (const Value* const value = all.find(o.key)) return *value;
    const auto named = array_of_names(at, o.key);
    if (!named || named->metadata().dimension_names.empty()) {
        throw not_found("{}: no attribute '{}'", o.path, o.key);
    }
    return dimension_names_json(named->metadata().dimension_names);
}

void set_attribute(Session& session, const AttrsOptions& o, const Value& value, const Located& at) {
    if (auto named = array_of_names(at, o.key)) {
        set_names(session, o, *named, names_from(value));
        session.note(fmt::format("{}: dimension_names is a member of v3's metadata, not an attribute; it was set there",
                                 o.path));
    } else {
        attributes_to_change(session, o, at).attributes.set(o.key, value);
    }
}

void remove_attribute(const Session& session, const AttrsOptions& o, const Located& at) {
    // First an attribute of that name, which another program may have written.
    if (attributes_to_change(session, o, at).attributes.erase(o.key)) return;
    auto named = array_of_names(at, o.key);
    if (!named || named->metadata().dimension_names.empty()) {
        throw not_found("{}: no attribute '{}'", o.path, o.key);
    }
    set_names(session, o, *named, {});
}

int attrs(Session& session, const AttrsOptions& o) {
    if (move_or_copy(session, o)) return exit_done;
    const auto require = [&](bool key, bool json) {
        if (o.key.empty() == key || o.json.empty() == json) {
            throw invalid_argument("attrs PATH {0}{1}{2}: found {3}", o.action, key ? " KEY" : "", json ? " VALUE" : "",
                                   o.key.empty()    ? "nothing after " + o.action
                                   : o.json.empty() ? "no VALUE"
                                                    : "'" + o.json + "' as well");
        }
    };
    if (o.action.empty()) {
        const Value all = at_located(o.path, attribute_values);
        // Without --json in Python's spelling, with bare NaN.
        session.options().json ? print_json(all) : print(unsteering(all.dump({.indent = 2})) + "\n");
    } else if (o.action == "get") {
        require(true, false);
        const Value value = at_located(o.path, [&](const Located& at) { return attribute_at(o, at); });
        session.options().json ? print_json(value) : print(unsteering(value.dump()) + "\n");
    } else if (o.action == "set") {
        require(true, true);
        const Value value = parse_attribute(session, o);
        change(session, o, [&](const Located& at) { set_attribute(session, o, value, at); });
    } else if (o.action == "rm") {
        require(true, false);
        change(session, o, [&](const Located& at) { remove_attribute(session, o, at); });
    } else {
        throw invalid_argument("attrs: expected get, set, rm, mv or copy after the path, found '{}'", o.action);
    }
    return exit_done;
}

}  // namespace

Run declare_attrs(CLI::App& app) {
    auto o = std::make_shared<AttrsOptions>();
    app.add_option("PATH", o->path, "an array or a group; to read, also an array file")->required()->option_text(" ");
    app.add_option("ACTION", o->action, "get, set, rm, mv or copy")->option_text(" ");
    app.add_option("KEY", o->key, "the attribute's name; for copy the array, group or file to copy from")
        ->option_text(" ");
    app.add_option("VALUE", o->json, "its new value: JSON, and text that is no JSON as text; for mv its new name")
        ->option_text(" ");
    app.add_flag("--json-value", o->json_value, "set: refuse a value that is no JSON, rather than take it as text");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return attrs(session, *o); };
}

}  // namespace tessera::cli
