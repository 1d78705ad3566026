// tessera group, mv, rm, consolidate
#include "hierarchy.h"

#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>

#include "options.h"
#include "report.h"
#include "settings.h"
#include "tree.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

/// As a user would type it: relative to the current directory, if below that.
std::string short_path(const fs::path& path) {
    const fs::path relative = path.lexically_relative(fs::current_path());
    const bool plain = !relative.empty() && *relative.begin() != ".." && is_local(relative);
    return plain ? relative.string() : path.string();
}

// ---- group

struct GroupOptions {
    std::string path, format, attributes;
};

/// The format of the group around it, else of nodes already in it, else the default one if it has groups, else v3.
const Dialect& format_of_group(const std::string& path) {
    if (const Dialect* above = format_above(path)) return *above;
    if (const auto place = probe_place(path, {.read_only = true})) {
        for (const Node& node : child_nodes(*place)) {
            if (node.dialect != nullptr && node.dialect->has_groups()) return *node.dialect;
        }
    }
    const Dialect& usual = default_format(checked_setting("format", [](const auto& s) { (void)dialect_named(s); }));
    return usual.has_groups() ? usual : dialect_named("v3");
}

int group(Session& session, const GroupOptions& o) {
    const Dialect& dialect = o.format.empty() ? format_of_group(o.path) : dialect_named(o.format);
    const Value attributes = parse_attributes_option(o.attributes);
    (void)Group::create(o.path, dialect, attributes, session.store());
    note_stale(session, {o.path});
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("format", dialect.name);
    report(session, value, fmt::format("created {}: a group, {}", o.path, dialect.name));
    return exit_done;
}

// ---- mv, rm
//
// Neither calls locate(). It follows links, which are refused here. It also refuses a damaged batch, and such an array
// can still be moved and removed. move_node() and remove_node() look again under the locks.

/// The node that a path names. Throws for a symbolic link, rather than changing its target.
fs::path node_path(const std::string& path) {
    std::error_code error;
    const fs::path plain = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
    if (fs::is_symlink(plain, error)) {
        throw invalid_argument("{} is a symbolic link; name its target instead", path);
    }
    return real_path(plain);
}

/// Throws the store's error for a path in a zip, which cannot be changed.
void require_no_zip(const std::string& path) {
    const auto place = probe_place(path, {});
    if (place && place->store->read_only()) place->store->erase_below(place->prefix);
}

fs::path common_directory(const fs::path& a, const fs::path& b) {
    fs::path common;
    auto in_a = a.begin();
    for (auto in_b = b.begin(); in_a != a.end() && in_b != b.end() && *in_a == *in_b; ++in_a, ++in_b) common /= *in_a;
    return common;
}

struct MoveOptions {
    std::string from, to;
};

void move_in_folders(Session& session, const MoveOptions& o) {
    require_no_zip(o.from);
    require_no_zip(o.to);
    const fs::path from = node_path(o.from);
    const fs::path to = node_path(o.to);
    if (fs::exists(to)) throw already_exists("{}: something is there already", o.to);
    const fs::path root = common_directory(enclosing_place(from).store->name(), enclosing_place(to).store->name());
    move_node(*directory_store(root, session.store()), from.lexically_relative(root).string(),
              to.lexically_relative(root).string());
}

/// Between paths of which at least one is in another kind of store.
void move_elsewhere(Session& session, const MoveOptions& o) {
    const auto from = probe_place(o.from, session.store());
    const auto to = probe_place(o.to, session.store());
    const bool same = from && to && from->store->name() == to->store->name();
    if (!same || from->prefix.empty() || to->prefix.empty()) {
        throw unsupported("{} cannot be moved to {}, only within one store; `tessera copy` copies it", o.from, o.to);
    }
    if (is_anything_at(o.to)) throw already_exists("{}: something is there already", o.to);
    move_node(*from->store, from->prefix, to->prefix);
}

int mv(Session& session, const MoveOptions& o) {
    if (is_local(o.from) && is_local(o.to)) {
        move_in_folders(session, o);
    } else {
        move_elsewhere(session, o);
    }
    note_stale(session, {o.from, o.to});
    Value value = Value::object();
    value.set("from", path_value(o.from));
    value.set("path", path_value(o.to));
    report(session, value, fmt::format("moved {} → {}", o.from, o.to));
    return exit_done;
}

struct RemoveOptions {
    std::string path;
    bool recursive = false, force = false;
};

int rm(Session& session, const RemoveOptions& o) {
    const bool local = is_local(o.path);
    if (local && fs::is_regular_file(o.path)) {
        throw invalid_argument("{} is a file, not an array or group; use the system's rm", o.path);
    }
    require_no_zip(o.path);
    const fs::path node = local ? node_path(o.path) : fs::path(o.path);
    if (const Occupant there = occupant(node); there == Occupant::unfinished || there == Occupant::removed) {
        remove_unfinished(node, session.store());
    } else if (!local) {
        const Place place = find_place(node, session.store());
        remove_node(place, {.recursive = o.recursive, .force = o.force});
    } else {
        if (!fs::exists(node)) throw not_found("{}: no such file or directory", o.path);
        remove_node({*directory_store(node.parent_path(), session.store()), node.filename().string()},
                    {.recursive = o.recursive, .force = o.force});
    }
    note_stale(session, {node.string()});
    Value value = Value::object();
    value.set("path", path_value(o.path));
    report(session, value, fmt::format("removed {}", o.path));
    return exit_done;
}

// ---- consolidate

int consolidate(Session& session, const std::string& path, bool check) {
    Group group = Group::open(path, check ? StoreOptions{.read_only = true} : session.store());
    if (!check) group.consolidate();
    const ConsolidatedState state = group.consolidated_state();
    const auto nodes = static_cast<std::int64_t>(group.nodes().size());
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("consolidated", state_name(state));
    value.set("nodes", nodes);
    Value stale = Value::array();
    for (const std::string& node : state.stale) stale.push_back(path_value(node.empty() ? "." : node));
    value.set("stale", stale);
    std::string line = fmt::format("consolidated {}: {}", path, count_text(nodes, "node"));
    if (check && state.fresh()) line = fmt::format("{}: the consolidated metadata match the nodes", path);
    if (check && !state.present) line = fmt::format("{}: no consolidated metadata", path);
    if (!state.stale.empty()) {
        line = fmt::format("{}: stale consolidated metadata of {}:", path, count_text(std::ssize(state.stale), "node"));
        for (const Value& node : stale.as_array()) line += " " + node.as_string();
    }
    report(session, value, line);
    return state.stale.empty() ? exit_done : exit_differences;
}

}  // namespace

void report(Session& session, const Value& value, const std::string& line) {
    session.clear_progress();
    if (session.options().json) {
        print_json(value);
    } else if (!session.options().quiet) {
        print(printable(line) + "\n");
    }
}

void note_stale(Session& session, const std::vector<std::string>& paths) {
    std::set<std::string> stale;  // as displayed, because a path may have several spellings
    for (const std::string& path : paths) {
        try {
            for (const fs::path& group : stale_above(path)) stale.insert(short_path(group));
        } catch (const Error& e) {
            // The command itself has succeeded, so this must not become an error.
            session.note(
                fmt::format("cannot tell whether consolidated metadata above {} are stale: {}", path, e.what()));
        }
    }
    for (const std::string& shown : stale) {
        session.note(fmt::format("the consolidated metadata of {} are stale now; `tessera consolidate {}` renews them",
                                 shown, shown));
    }
}

Run declare_group(CLI::App& app) {
    auto o = std::make_shared<GroupOptions>();
    app.add_option("PATH", o->path, "where the group is made: a directory")->required()->option_text(" ");
    app.add_option("--format", o->format, "v2 or v3 (default: that of the group above, else of what is in it, else v3)")
        ->option_text("FORMAT");
    app.add_option("--attrs", o->attributes, "attributes, a JSON object")->option_text("JSON");
    return [o](Session& session) { return group(session, *o); };
}

Run declare_mv(CLI::App& app) {
    auto o = std::make_shared<MoveOptions>();
    app.add_option("SRC", o->from, "an array or a group")->required()->option_text(" ");
    app.add_option("DST", o->to, "its new path")->required()->option_text(" ");
    return [o](Session& session) { return mv(session, *o); };
}

Run declare_rm(CLI::App& app) {
    auto o = std::make_shared<RemoveOptions>();
    app.add_option("PATH", o->path, "an array, a group or an unfinished copy")->required()->option_text(" ");
    app.add_flag("--recursive", o->recursive, "remove a group with everything below it");
    app.add_flag("--force", o->force, "also an array whose metadata are broken or gone");
    return [o](Session& session) { return rm(session, *o); };
}

Run declare_consolidate(CLI::App& app) {
    auto path = std::make_shared<std::string>();
    auto check = std::make_shared<bool>(false);
    app.add_option("PATH", *path, "a group")->required()->option_text(" ");
    app.add_flag("--check", *check, "write nothing, compare the copy with the nodes");
    return [path, check](Session& session) { return consolidate(session, *path, *check); };
}

}  // namespace tessera::cli
