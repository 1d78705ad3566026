// tessera tree
#include "tree.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command.h"
#include "report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

Node array_node(std::string name, const KeyValueStore& store, const Dialect& dialect) {
    Leaf leaf{.format = std::string(dialect.name)};
    try {
        const ArrayMetadata metadata = dialect.load(store, "");
        leaf.dtype = metadata.dtype;
        leaf.shape = metadata.shape;
        leaf.chunks = metadata.chunks;
    } catch (const Error& e) {
        leaf.error = e.what();
    }
    return {std::move(name), std::move(leaf), {}, false};
}

Node file_array_node(std::string name, const ArrayFileFormat& format, const ArrayPath& path) {
    Leaf leaf{.format = std::string(format.name)};
    try {
        const auto source = format.open(path, {});
        leaf.dtype = source->info().dtype;
        leaf.shape = source->info().shape;
    } catch (const Error& e) {
        leaf.error = e.what();
    }
    return {std::move(name), std::move(leaf), {}, false};
}

Node file_node(std::string name, const ArrayFileFormat& format, const fs::path& path) {
    std::vector<std::string> members;
    try {
        members = format.members(path);
    } catch (const Error& e) {
        return {std::move(name), Leaf{.format = std::string(format.name), .error = e.what()}, {}, false};
    }
    if (members.empty()) return file_array_node(std::move(name), format, {path, {}});
    Node node{std::move(name), {}, {}, true};
    for (const std::string& member : members) {
        node.children.push_back(file_array_node(member, format, {path, member}));
    }
    return node;
}

bool has_array_file_extension(const fs::path& path) {
    return std::ranges::any_of(array_file_formats(), [&](const auto& f) { return path.extension() == f.extension; });
}

/// `above` holds the directories on the way down, so that a link back to one of them ends there.
Node directory_node(std::string name, const fs::path& path, std::vector<fs::path>& above) {
    const auto store = directory_store(path, true);
    if (const Dialect* dialect = probe_dialect(*store, "")) return array_node(std::move(name), *store, *dialect);
    Node node{std::move(name), {}, {}, false};
    const fs::path real = fs::canonical(path);
    if (std::ranges::find(above, real) != above.end()) return node;
    above.push_back(real);
    const Listing listing = store->list("");
    for (const std::string& child : listing.prefixes) {
        if (child.starts_with('.')) continue;
        Node below = directory_node(child, path / child, above);
        if (below.leaf || !below.children.empty()) node.children.push_back(std::move(below));
    }
    for (const std::string& child : listing.keys) {
        const fs::path file = path / child;
        if (child.starts_with('.') || !has_array_file_extension(file)) continue;
        if (const ArrayFileFormat* format = find_array_file_format(file)) {
            node.children.push_back(file_node(child, *format, file));
        }
    }
    above.pop_back();
    return node;
}

std::string leaf_text(const Leaf& leaf) {
    if (!leaf.error.empty()) return fmt::format("{}: {}", leaf.format, leaf.error);
    std::string text = fmt::format("{}  {}  {}", leaf.format, shape_text(leaf.shape), leaf.dtype.to_string());
    if (leaf.chunks) text += "  chunks " + shape_text(*leaf.chunks);
    return text;
}

void print_below(const Node& node, const std::string& indent) {
    std::size_t width = 0;
    for (const Node& child : node.children) {
        if (child.leaf) width = std::max(width, child.name.size());
    }
    for (const Node& child : node.children) {
        const bool last = &child == &node.children.back();
        print(indent + (last ? "└── " : "├── "));
        if (child.leaf) {
            print(printable(fmt::format("{:<{}}  {}", child.name, width, leaf_text(*child.leaf))) + "\n");
        } else {
            print(printable(child.name) + (child.is_file ? "\n" : "/\n"));
            print_below(child, indent + (last ? "    " : "│   "));
        }
    }
}

Value node_value(const Node& node) {
    Value value = Value::object();
    value.set("name", path_value(node.name));
    if (!node.leaf) {
        value.set("kind", node.is_file ? "file" : "directory");
        Value children = Value::array();
        for (const Node& child : node.children) children.push_back(node_value(child));
        value.set("children", std::move(children));
        return value;
    }
    value.set("kind", "array");
    value.set("format", node.leaf->format);
    if (!node.leaf->error.empty()) {
        value.set("error", node.leaf->error);
        return value;
    }
    value.set("dtype", node.leaf->dtype.descr());
    value.set("shape", shape_value(node.leaf->shape));
    if (node.leaf->chunks) value.set("chunks", shape_value(*node.leaf->chunks));
    return value;
}

int tree(Session& session, const std::string& path) {
    const Node root = scan(path);
    if (session.options().json) {
        print_json(node_value(root));
    } else if (root.leaf) {
        print(printable(fmt::format("{}  {}", root.name, leaf_text(*root.leaf))) + "\n");
    } else {
        print(printable(root.name) + "\n");
        print_below(root, "");
        if (root.children.empty()) print("(no arrays)\n");
    }
    return any_unreadable(root) ? exit_differences : exit_done;
}

}  // namespace

Node scan(const fs::path& path) {
    if (fs::is_directory(path)) {
        std::vector<fs::path> above;
        return directory_node(path.string(), path, above);
    }
    if (!fs::exists(path)) throw not_found(fmt::format("{}: no such file or directory", path.string()));
    const ArrayFileFormat* format = find_array_file_format(path);
    if (format == nullptr) {
        throw invalid_argument(fmt::format("{}: neither a directory nor an array file", path.string()));
    }
    return file_node(path.string(), *format, path);
}

std::int64_t count_arrays(const Node& node) {
    std::int64_t n = node.leaf ? 1 : 0;
    for (const Node& child : node.children) n += count_arrays(child);
    return n;
}

bool any_unreadable(const Node& node) {
    return (node.leaf && !node.leaf->error.empty()) || std::ranges::any_of(node.children, any_unreadable);
}

Run declare_tree(CLI::App& app) {
    auto path = std::make_shared<std::string>(".");
    app.add_option("PATH", *path, "a directory or an array file (default: the current directory)")->option_text(" ");
    return [path](Session& session) { return tree(session, *path); };
}

}  // namespace tessera::cli
