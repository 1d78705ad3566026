// tessera tree
#include "tree.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/convert.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/zip_name.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "advice.h"
#include "command.h"
#include "report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

TreeNode array_node(std::string name, const ReadableStore& store, const tessera::Node& array) {
    Leaf leaf{.format = std::string(array.dialect->name)};
    try {
        const ArrayMetadata metadata = load_metadata(*array.dialect, {store, array.path});
        const ChunkLayout layout = chunk_layout(metadata);
        leaf.dtype = metadata.dtype;
        leaf.shape = metadata.shape;
        leaf.chunks = layout.chunks;
        leaf.shards = layout.shards;
    } catch (const Error& e) {
        leaf.error = message_of(e);
    }
    return {.name = std::move(name), .leaf = std::move(leaf)};
}

GroupFacts group_facts(const std::shared_ptr<KeyValueStore>& store, const tessera::Node& node) {
    GroupFacts facts{.format = std::string(node.dialect->name)};
    try {
        const Group group = Group::open({store, node.path});
        facts.attributes = group.attributes().all().as_object().size();
        facts.consolidated = group.consolidated_state();
    } catch (const Error& e) {
        facts.error = message_of(e);
    }
    return facts;
}

TreeNode file_array_node(std::string name, const ArrayFileFormat& format, const ArrayPath& path) {
    Leaf leaf{.format = std::string(format.name)};
    try {
        const auto source = format.open(path, {});
        leaf.dtype = source->info().dtype;
        leaf.shape = source->info().shape;
    } catch (const Error& e) {
        leaf.error = message_of(e);
    }
    return {.name = std::move(name), .leaf = std::move(leaf)};
}

TreeNode file_node(std::string name, const ArrayFileFormat& format, const ArrayPath& path) {
    std::vector<ArrayFileMember> members;
    try {
        members = array_file_members(format, path);
    } catch (const Error& e) {
        return {.name = std::move(name), .leaf = Leaf{.format = std::string(format.name), .error = message_of(e)}};
    }
    if (members.empty()) return file_array_node(std::move(name), format, path);
    TreeNode node{.name = std::move(name), .is_file = true};
    for (ArrayFileMember& member : members) {
        Leaf leaf{.format = std::string(format.name)};
        if (member.error) {
            leaf.error = message_of(*member.error);
        } else {
            leaf.dtype = member.info.dtype;
            leaf.shape = member.info.shape;
        }
        node.children.push_back({.name = std::move(member.name), .leaf = std::move(leaf)});
    }
    return node;
}

/// Except text formats, whose files need not be arrays.
bool has_array_file_extension(const fs::path& path) {
    return std::ranges::any_of(array_file_formats(), [&](const auto& f) {
        return f.has_extension(path.extension().string()) && f.recognise != nullptr;
    });
}

TreeNode store_node(std::string name, const Place& place, const fs::path& directory);

/// A file in a folder; nullopt if it is not an array file.
std::optional<TreeNode> found_file(const std::string& name, const fs::path& file) {
    std::error_code ignored;
    // Other JSON files are no references, and would be read for nothing.
    const bool is_store = is_zip_name(file) || name.ends_with(".refs.json");
    const bool named = is_store || has_array_file_extension(file);
    if (name.starts_with('.') || !named || !fs::is_regular_file(file, ignored)) return std::nullopt;
    try {
        if (is_store) {
            const auto place = probe_place(file, {.read_only = true});
            if (!place) return std::nullopt;
            TreeNode node = store_node(name, place->store, {});
            if (!node.leaf && !node.group && node.children.empty()) return std::nullopt;
            node.is_file = true;
            return node;
        }
        const ArrayPath path{.path = file, .opened = open_file(file)};
        const ArrayFileFormat* format = array_file_format_of(*path.opened);
        return format == nullptr ? std::nullopt : std::optional(file_node(name, *format, path));
    } catch (const Error& e) {
        return TreeNode{.name = name,
                        .leaf = Leaf{.format = file.extension().string().substr(1), .error = message_of(e)}};
    }
}

/// Collects the folders of a walk by path, and then builds one tree.
class Scan {
public:
    /// `directory`: where to look for array files too; empty in a zip.
    Scan(const Place& place, const fs::path& directory)
        : store_(place.store), directory_(directory), walk_(place, [this](const std::string& link) {
              return probe_node({*store_, link}).has_value();
          }) {}

    TreeNode run(std::string name) {
        while (walk_.next()) look();
        add_passed();
        // Longer paths first, so the content of a folder comes before the folder.
        while (found_.size() > 1) {
            auto last = std::prev(found_.end());
            TreeNode node = settled(last->first, std::move(last->second));
            const std::string above = above_of(last->first);
            found_.erase(last);
            if (is_shown(node)) found_[above].children.push_back(std::move(node));
        }
        TreeNode root = settled("", std::move(found_[""]));
        root.name = std::move(name);
        return root;
    }

private:
    static std::string above_of(const std::string& path) {
        const std::size_t slash = path.rfind('/');
        return slash == std::string::npos ? "" : path.substr(0, slash);
    }
    static bool is_shown(const TreeNode& node) {
        return node.leaf || node.group || node.passed || !node.children.empty();
    }

    void look() {
        const std::string& path = walk_.path();
        const auto node = probe_node({*store_, walk_.prefix()});
        if (!path.empty() && !node && walk_.name().starts_with('.')) return;
        const std::string name(walk_.name());
        if (node && node->kind == NodeKind::array) {
            found_[path] = array_node(name, *store_, *node);
            return;
        }
        TreeNode& here = found_[path];
        here.name = name;
        if (node) here.group = group_facts(store_, *node);
        const Listing& listing = walk_.listing();
        for (const std::string& child : listing.prefixes) {
            if (!is_own_name(child)) walk_.enter(child);
        }
        if (directory_.empty()) return;
        for (const std::string& child : listing.keys) {
            if (auto file = found_file(child, directory_ / path / child)) files_[path].push_back(*std::move(file));
        }
    }

    /// Shows a second path to a folder if that folder is shown.
    void add_passed() {
        std::set<std::string> shown;
        for (const auto& [path, node] : found_) {
            if (!is_shown(node) && !files_.contains(path)) continue;
            for (std::string above = path; shown.insert(above).second;) above = above_of(above);
        }
        for (const PassedFolder& passed : walk_.passed()) {
            const std::string name = passed.path.substr(passed.path.rfind('/') + 1);
            if (name.starts_with('.')) continue;
            if (passed.why == PassedFolder::Why::second_way && !shown.contains(passed.target)) continue;
            TreeNode& node = found_[passed.path];
            node.name = name;
            node.passed = passed;
        }
    }

    /// Completes a folder with all its children: sorts them, and appends files.
    TreeNode settled(const std::string& path, TreeNode node) {
        std::ranges::sort(node.children, {}, &TreeNode::name);
        for (TreeNode& file : files_[path]) node.children.push_back(std::move(file));
        return node;
    }

    std::shared_ptr<KeyValueStore> store_;
    fs::path directory_;
    FolderWalk walk_;
    std::map<std::string, TreeNode> found_;
    std::map<std::string, std::vector<TreeNode>> files_;  ///< in each folder
};

/// The tree at and below a prefix. `directory`: where to look for array files too; empty in a zip.
TreeNode store_node(std::string name, const Place& place, const fs::path& directory) {
    const auto known = probe_node(place);
    if (known && known->kind == NodeKind::array) return array_node(std::move(name), *place.store, *known);
    return Scan(place, directory).run(std::move(name));
}

std::string leaf_text(const Leaf& leaf) {
    if (!leaf.error.empty()) return fmt::format("{}: {}", leaf.format, leaf.error);
    std::string text = fmt::format("{}  {}  {}", leaf.format, shape_text(leaf.shape), leaf.dtype.to_string());
    if (leaf.chunks) text += "  chunks " + shape_text(*leaf.chunks);
    if (!leaf.shards.empty()) text += " in shards of " + shape_text(leaf.shards);
    return text;
}

/// The line for a node with children: its name and facts.
std::string branch_text(const TreeNode& node) {
    if (node.passed) return fmt::format("{}  {}", node.name, passed_text(*node.passed));
    std::string text = node.name + (node.is_file ? "" : "/");
    if (!node.group) return text;
    if (!node.group->error.empty()) return fmt::format("{}  {} group: {}", text, node.group->format, node.group->error);
    text += fmt::format("  {} group", node.group->format);
    if (node.group->attributes > 0) {
        text += ", " + count_text(static_cast<std::int64_t>(node.group->attributes), "attribute");
    }
    if (node.group->consolidated.present) {
        text += node.group->consolidated.fresh() ? ", consolidated" : ", consolidated metadata stale";
    }
    return text;
}

void print_below(const TreeNode& node, const std::string& indent) {
    std::size_t width = 0;
    for (const TreeNode& child : node.children) {
        if (child.leaf) width = std::max(width, child.name.size());
    }
    for (const TreeNode& child : node.children) {
        const bool last = &child == &node.children.back();
        print(indent + (last ? "└── " : "├── "));
        if (child.leaf) {
            print(printable(fmt::format("{:<{}}  {}", child.name, width, leaf_text(*child.leaf))) + "\n");
        } else {
            print(printable(branch_text(child)) + "\n");
            print_below(child, indent + (last ? "    " : "│   "));
        }
    }
}

Value passed_value(const TreeNode& node) {
    const bool link = node.passed->why != PassedFolder::Why::too_deep;
    Value value = Value::object();
    value.set("name", path_value(node.name));
    value.set("kind", link ? "link" : "directory");
    if (link) {
        value.set("target", path_value(node.passed->target.empty() ? "." : node.passed->target));
        value.set("shown", node.passed->why == PassedFolder::Why::second_way);
    } else {
        value.set("error", passed_text(*node.passed));
        value.set("children", Value::array());
    }
    return value;
}

Value node_value(const TreeNode& node) {
    if (node.passed) return passed_value(node);
    Value value = Value::object();
    value.set("name", path_value(node.name));
    if (!node.leaf) {
        value.set("kind", node.group ? "group" : node.is_file ? "file" : "directory");
        if (node.group) {
            value.set("format", node.group->format);
            value.set("attributes", node.group->attributes);
            value.set("consolidated", state_name(node.group->consolidated));
            if (!node.group->error.empty()) value.set("error", node.group->error);
        }
        Value children = Value::array();
        for (const TreeNode& child : node.children) children.push_back(node_value(child));
        value.set("children", std::move(children));
        return value;
    }
    value.set("kind", "array");
    value.set("format", node.leaf->format);
    if (!node.leaf->error.empty()) {
        value.set("error", node.leaf->error);
        return value;
    }
    value.set("dtype", node.leaf->dtype.to_string());
    value.set("shape", shape_value(node.leaf->shape));
    if (node.leaf->chunks) value.set("chunks", shape_value(*node.leaf->chunks));
    if (!node.leaf->shards.empty()) value.set("shards", shape_value(node.leaf->shards));
    return value;
}

int tree(Session& session, const Located& at) {
    const TreeNode root = scan(at);
    const bool lists = root.leaf || !at.place || at.place->store->lists();
    if (session.options().json) {
        Value value = node_value(root);
        if (!lists) value.set("listed", false);
        print_json(value);
    } else if (root.leaf) {
        print(printable(fmt::format("{}  {}", root.name, leaf_text(*root.leaf))) + "\n");
    } else {
        print(printable(root.group ? branch_text(root) : root.name) + "\n");
        print_below(root, "");
        if (root.children.empty()) print("(no arrays)\n");
        if (!lists) print("(the server lists nothing: these are what metadata at the top name)\n");
    }
    return any_unreadable(root) ? exit_differences : exit_done;
}

}  // namespace

TreeNode scan(const Located& at) {
    if (at.place && !at.file.member) {
        const fs::path directory = at.is_directory() ? at.file.path : fs::path();
        TreeNode node = store_node(at.path, *at.place, directory);
        const bool local = is_local(at.file.path);
        node.is_file = local && !at.is_directory();
        if (!node.leaf) require_present(*at.place);
        if (!(at.place->prefix.empty() && local) && !node.leaf && !node.group && node.children.empty()) {
            throw absence(*at.place, "array or group");
        }
        return node;
    }
    if (at.kind == PathKind::nothing || at.file.member) {
        throw not_found("{}: no such file or directory", at.path);
    }
    if (at.format != nullptr) return file_node(at.path, *at.format, at.file);
    (void)at.file.bytes();  // throws for what is no regular file
    throw no_array_file(at.file.path);
}

std::int64_t count_arrays(const TreeNode& node) {
    std::int64_t n = node.leaf ? 1 : 0;
    for (const TreeNode& child : node.children) n += count_arrays(child);
    return n;
}

std::string passed_text(const PassedFolder& passed) {
    const std::string target = passed.target.empty() ? "." : passed.target;
    switch (passed.why) {
        case PassedFolder::Why::second_way:
            return fmt::format("→ {}  another path to the same folder", target);
        case PassedFolder::Why::elsewhere:
            return fmt::format("→ {}  a link that is not followed: no array and no group with metadata", target);
        case PassedFolder::Why::nowhere:
            return fmt::format("→ {}  a link that leads nowhere", target);
        case PassedFolder::Why::too_deep:
            break;
    }
    return fmt::format("deeper than {} folders: not looked at", deepest_folder);
}

bool any_unreadable(const TreeNode& node) {
    return (node.passed && node.passed->why == PassedFolder::Why::too_deep) ||
           (node.leaf && !node.leaf->error.empty()) || (node.group && !node.group->error.empty()) ||
           std::ranges::any_of(node.children, any_unreadable);
}

Run declare_tree(CLI::App& app) {
    auto path = std::make_shared<std::string>(".");
    app.add_option("PATH", *path, "a directory, a zip or an array file (default: the current directory)")
        ->option_text(" ");
    return [path](Session& session) { return at_located(*path, [&](const Located& at) { return tree(session, at); }); };
}

}  // namespace tessera::cli
