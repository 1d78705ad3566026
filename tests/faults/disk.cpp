#include "disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "child.h"

namespace tessera::faults {

namespace fs = std::filesystem;

namespace {

std::string from_hexadecimal(std::string_view text) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
    }
    return bytes;
}

unsigned long inode_of(const fs::path& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) throw std::runtime_error("no " + path.string());
    return status.st_ino;
}

}  // namespace

Disk::Disk(fs::path root) : root_path_(std::move(root)), root_(load(root_path_)) {}

Disk::NodePtr Disk::load(const fs::path& path) {
    NodePtr& node = inodes_[inode_of(path)];
    if (node) return node;  // another link to it
    const NodePtr made = node = std::make_shared<Node>();
    made->directory = fs::is_directory(path);
    if (!made->directory) {
        made->bytes = made->durable_bytes = text_of(path);
        return made;
    }
    for (const auto& entry : fs::directory_iterator(path)) made->names[entry.path().filename()] = load(entry.path());
    made->durable_names = made->names;
    return made;
}

Disk::Name Disk::place(const std::string& path) const {
    const fs::path below = fs::path(path).lexically_normal().lexically_relative(root_path_);
    NodePtr directory = root_;
    for (const fs::path& part : below.parent_path()) {
        directory = directory->names[part];
        if (!directory) throw std::runtime_error("trace: nothing at " + path);
    }
    return {directory, below.filename(), nullptr};
}

Disk::NodePtr Disk::there(const Name& name) const {
    const auto found = name.directory->names.find(name.name);
    if (found == name.directory->names.end()) throw std::runtime_error("trace: nothing at " + name.name);
    return found->second;
}

void Disk::change(Change change) {
    for (const auto& [directory, name, node] : change) {
        if (node) {
            directory->names[name] = node;
        } else {
            directory->names.erase(name);
        }
    }
    pending_.push_back(std::move(change));
}

void Disk::sync(const NodePtr& node) {
    if (!node->directory) {
        node->durable_bytes = node->bytes;
        return;
    }
    node->durable_names = node->names;
    // A rename is durable as a whole with either of its directories.
    const auto durable = [&](const Change& change) {
        if (std::ranges::none_of(change, [&](const Name& n) { return n.directory == node; })) return false;
        for (const auto& [directory, name, to] : change) {
            if (directory == node) continue;
            if (to) {
                directory->durable_names[name] = to;
            } else {
                directory->durable_names.erase(name);
            }
        }
        return true;
    };
    std::erase_if(pending_, durable);
}

bool Disk::play(const std::string& line) {
    std::istringstream in(line);
    std::string what, first, second;
    in >> what >> first >> second;
    if (what == "ack") {
        ++acknowledged_;
    } else if (what == "create" || what == "mkdir") {
        Name name = place(first);
        name.node = inodes_[std::stoul(second)] = std::make_shared<Node>();
        name.node->directory = what == "mkdir";
        change({name});
    } else if (what == "write" || what == "truncate") {
        Node& node = *inodes_.at(std::stoul(first));
        std::string text;
        in >> text;
        const std::string bytes = from_hexadecimal(text);
        const std::size_t at = std::stoul(second);
        if (what == "truncate" || node.bytes.size() < at + bytes.size()) node.bytes.resize(at + bytes.size());
        node.bytes.replace(at, bytes.size(), bytes);
    } else if (what == "rename" || what == "exchange") {
        Name from = place(first);
        Name to = place(second);
        to.node = there(from);
        if (what == "exchange") from.node = there(to);
        change({from, to});
    } else if (what == "link") {
        Name to = place(second);
        to.node = there(place(first));
        change({to});
    } else if (what == "unlink") {
        change({place(first)});
    } else if (what == "sync") {
        sync(inodes_.at(std::stoul(first)));
    } else if (what == "syncfs") {
        for (const auto& [number, node] : inodes_) {
            node->durable_bytes = node->bytes;
            node->durable_names = node->names;
        }
        pending_.clear();
    } else {
        throw std::runtime_error("trace: " + line);
    }
    return what != "ack";
}

Disk::Tree Disk::after_power_failure(Kept kept, std::mt19937& random) const {
    std::map<const Node*, Names> names;  // of the directories that differ from what is durable
    for (const Change& change : pending_) {
        if (kept == Kept::nothing || (kept == Kept::some && random() % 2 == 0)) continue;
        for (const auto& [directory, name, node] : change) {
            auto& entries = names.try_emplace(directory.get(), directory->durable_names).first->second;
            if (node) {
                entries[name] = node;
            } else {
                entries.erase(name);
            }
        }
    }
    Tree tree;
    collect(*root_, "", kept, random, names, tree);
    return tree;
}

void Disk::collect(const Node& node, const std::string& path, Kept kept, std::mt19937& random,
                   const std::map<const Node*, Names>& names, Tree& tree) {
    if (node.directory) {
        tree[path] = std::nullopt;
        const auto changed = names.find(&node);
        for (const auto& [name, entry] : changed == names.end() ? node.durable_names : changed->second) {
            collect(*entry, path + '/' + name, kept, random, names, tree);
        }
        return;
    }
    std::string bytes = kept == Kept::everything ? node.bytes : node.durable_bytes;
    if (kept == Kept::some && node.bytes != node.durable_bytes) {
        switch (random() % 4) {
            case 0:
                break;
            case 1:
                bytes = node.bytes;
                break;
            case 2:
                bytes = node.bytes.substr(0, random() % (node.bytes.size() + 1));
                break;
            default:
                bytes.assign(node.bytes.size(), '\0');
                break;
        }
    }
    tree[path] = bytes;
}

std::size_t Disk::hash(const Tree& tree) {
    std::string all;
    for (const auto& [path, bytes] : tree) {
        all += path + '\0' + (bytes ? std::to_string(bytes->size()) + '\0' + *bytes : "directory");
    }
    return std::hash<std::string>()(all);
}

void Disk::write(const Tree& tree, const fs::path& target) {
    fs::remove_all(target);
    for (const auto& [path, bytes] : tree) {
        if (bytes) {
            std::ofstream(target.string() + path, std::ios::binary) << *bytes;
        } else {
            fs::create_directory(target.string() + path);
        }
    }
}

}  // namespace tessera::faults
