// A path in a URL is first looked up as a node of the root directory. If a part of the path is a file, that is an array
// file or an archive of arrays, and the rest of the path is looked up in it. Only files that a listing would show are
// opened: by extension, and never below an array, because its chunks are files too.
#include "root.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/outside.h>
#include <tessera/own_names.h>
#include <tessera/references_within.h>
#include <tessera/store_kind.h>
#include <tessera/zip_name.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace tessera::serve {

namespace fs = std::filesystem;

std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        const std::size_t slash = std::min(path.find('/'), path.size());
        parts.emplace_back(path.substr(0, slash));
        path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return parts;
}

namespace {

constexpr std::size_t most_stores = 16;
/// How deep listings look for array files in plain folders.
constexpr int deepest_look = 6;

/// Throws not_found for a path that is no key, or that names something never served.
void require_servable(std::string_view path) {
    for (const std::string& part : parts_of(path)) {
        const bool odd = part.empty() || part == "." || part == ".." || part.find('\0') != part.npos;
        if (odd || is_own_name(part)) throw not_found("nothing is here");
    }
}

/// Text formats are left out: their files need not be arrays. So are pictures, which nothing reads.
bool is_array_file_name(const fs::path& name) {
    return std::ranges::any_of(array_file_formats(), [&](const ArrayFileFormat& f) {
        return f.has_extension(name.extension().string()) && f.recognise != nullptr && f.open != nullptr;
    });
}

bool is_store_name(const std::string& name) {
    return is_zip_name(name) || name.ends_with(".refs.json");
}

bool is_shown_file(const std::string& name) {
    return !name.starts_with('.') && (is_store_name(name) || is_array_file_name(name));
}

std::string file_version(const fs::path& path) {
    const std::optional<PathFacts> facts = path_facts(path);
    if (!facts) return {};
    return fmt::format("{:x}-{:x}-{:x}-{:x}", facts->size, facts->modified, facts->id.inode, facts->changed);
}

std::string array_version(const Place& place, const Dialect& dialect) {
    std::string text;
    std::vector<std::string_view> keys{dialect.metadata_key};
    keys.insert(keys.end(), dialect.documents.begin(), dialect.documents.end());
    for (const std::string_view key : keys) {
        const auto stamp = place.store->stamp(place.key(key));
        if (stamp) text += stamp_text(*stamp) + ".";
    }
    return text;
}

std::shared_ptr<ServedNode> open_array(const Place& place, const Dialect& dialect) {
    auto node = std::make_shared<ServedNode>();
    node->kind = ServedKind::array;
    node->format = dialect.name;
    node->name = place.store->name_of(place.prefix);
    node->place = place;
    node->version = array_version(place, dialect);
    node->array = Array::open(place);
    node->values.emplace(*node->array);
    return node;
}

/// Whether all of a path below an array's folder are names of chunks and of their folders.
bool is_chunk_path(std::string_view path) {
    const std::vector<std::string> parts = parts_of(path);
    return std::ranges::all_of(parts, [](const std::string& part) {
        const std::size_t digits = part.starts_with("c.") ? 2 : 0;
        return part == "c" || part == "__zdata__" || part.find_first_of("0123456789") == digits;
    });
}

/// Whether what a file of references leads to would be served by itself.
bool may_lead_to(const std::shared_ptr<KeyValueStore>& folder, const std::string& path, const ByteSource& file) {
    for (std::string_view above = path; !above.empty();) {
        const std::size_t slash = above.rfind('/');
        above = above.substr(0, slash == above.npos ? 0 : slash);
        const auto node = probe_node({*folder, above});
        if (node && node->kind == NodeKind::array) {
            return is_chunk_path(std::string_view(path).substr(above.empty() ? 0 : above.size() + 1));
        }
    }
    return is_array_file_name(path) && array_file_format_of(file) != nullptr;
}

std::shared_ptr<KeyValueStore> references_in(const fs::path& file) {
    auto folder = directory_store(file.parent_path(), {.read_only = true, .within = file.parent_path()});
    return reference_store(file, [folder = std::move(folder)](const std::string& path, const ByteSource& bytes) {
        return may_lead_to(folder, path, bytes);
    });
}

/// The arrays and groups in an array file, or in a group in it.
std::vector<ServedChild> children_in_file(const ServedNode& node) {
    const std::vector<std::string> members = array_members(*node.file_format, *node.file_path);
    const std::string before = node.inner.empty() ? "" : node.inner + "/";
    std::vector<ServedChild> children;
    std::set<std::string_view> groups;
    for (const std::string& member : members) {
        if (!member.starts_with(before)) continue;
        const std::string_view rest = std::string_view(member).substr(before.size());
        const std::string_view name = rest.substr(0, rest.find('/'));
        // What cannot be a path, or lies below an array, as files of NumPy may have it.
        const bool alone = name.empty() || std::ranges::find(members, before + std::string(name)) != members.end();
        if (name == rest || alone) {
            children.push_back({std::string(rest), ServedKind::member, node.format});
        } else if (groups.insert(name).second) {
            children.push_back({std::string(name), ServedKind::files, node.format});
        }
    }
    return children;
}

}  // namespace

std::string stamp_text(const ValueStamp& stamp) {
    if (stamp.by_content) return fmt::format("{:x}-{:x}c", stamp.size, stamp.id);
    return fmt::format("{:x}-{:x}-{:x}-{:x}", stamp.size, stamp.modified, stamp.id, stamp.changed);
}

Root::Root(const std::string& path, bool follow_links) : follow_links_(follow_links) {
    if (!is_local(path)) {
        set_elsewhere(locate(path, {.read_only = true}));
        return;
    }
    const Located at = locate(path);
    const bool inside = at.place && !at.place->prefix.empty();  // a path in an archive is no root
    if (!at.facts || inside) throw not_found("{}: no such file or directory", path);
    const bool has_members = !at.place && at.format != nullptr && at.format->members != nullptr;
    if (at.file.member && !has_members) {
        throw invalid_argument("{}: \"::\" names a member of a file such as .npz, and {} has none: serve {}", path,
                               at.file.path.string(), at.file.path.string());
    }
    path_ = real_path(at.file.path);
    member_ = at.file.member.value_or("");
    is_directory_ = at.is_directory();
    is_store_ = !is_directory_ && member_.empty() && at.place;
    fs::path shown = fs::path(path).lexically_normal();
    if (shown.filename().empty() || shown.filename() == "." || shown.filename() == "..") shown = path_;
    base_name_ = (member_.empty() ? shown : path_).filename().string();
    if (base_name_.empty()) base_name_ = "root";
    static_cast<void>(open("", ""));  // throws if there is nothing to serve
}

void Root::set_elsewhere(const Located& at) {
    const std::string& url = at.file.path.native();
    path_ = url.substr(0, url.find('?'));  // a query may be a secret
    if (at.kind == PathKind::nothing) throw not_found("{}: no array and no group is here", path_.string());
    if (!at.place || at.file.member) {
        throw unsupported("{}: of what is not on this machine only arrays and groups of chunks are served",
                          path_.string());
    }
    elsewhere_ = at.place;
    const fs::path name = path_.has_filename() ? path_.filename() : path_.parent_path().filename();
    base_name_ = name.empty() ? "root" : name.string();
    static_cast<void>(open("", ""));
}

/// The server is asked at most every two seconds, because every chunk that is served asks here.
std::string Root::version_elsewhere(const ServedNode& node) const {
    constexpr std::chrono::seconds trusted{2};
    constexpr std::size_t most = 1000;
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(mutex_);
        const auto known = looked_.find(node.path);
        if (known != looked_.end() && now - known->second.when < trusted) return known->second.version;
    }
    std::string version = array_version(*node.place, node.array->dialect());
    const std::lock_guard lock(mutex_);
    if (looked_.size() >= most) looked_.clear();
    looked_[node.path] = {now, version};
    return version;
}

std::shared_ptr<KeyValueStore> Root::directory() const {
    const std::lock_guard lock(mutex_);
    // A directory that was exchanged for a new one (copy --overwrite) is opened anew.
    if (directory_ == nullptr || was_replaced(directory_)) {
        const StoreOptions options{.read_only = true, .within = follow_links_ ? fs::path() : path_};
        directory_ = find_place(path_, options).store;
    }
    return directory_;
}

Place Root::store_in(const fs::path& file) const {
    const std::string version = file_version(file);
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(stores_, file, &OpenStore::path);
    if (found != stores_.end()) {
        OpenStore known = *found;
        stores_.erase(found);
        if (known.version == version) {
            stores_.insert(stores_.begin(), known);
            return known.store;
        }
    }
    const bool careful = file.extension() == ".json" && !outside_allowed();
    auto place = careful ? Place{references_in(file), ""} : probe_place(file, {.read_only = true});
    if (!place) throw not_found("{}: holds no arrays", file.string());
    stores_.insert(stores_.begin(), {file, version, place->store});
    if (stores_.size() > most_stores) stores_.pop_back();
    return *std::move(place);
}

std::shared_ptr<ServedNode> Root::open(std::string_view below, std::string at) const {
    require_servable(below);
    std::shared_ptr<ServedNode> node;
    if (elsewhere_) {
        node = open_folder({elsewhere_->store, elsewhere_->key(below)});
    } else if (is_directory_) {
        node = open_in_directory(below);
    } else if (is_store_) {
        node = open_folder({store_in(path_).store, std::string(below)});
    } else if (member_.empty()) {
        node = open_member({path_}, below);
    } else {
        if (!below.empty()) throw not_found("nothing is here");
        node = open_member({path_}, member_);
    }
    if (node == nullptr) throw not_found("{}: no array and no group is here", below);
    node->path = std::move(at);
    return node;
}

std::shared_ptr<ServedNode> Root::open_in_directory(std::string_view below) const {
    const auto store = directory();
    std::string key;
    const std::vector<std::string> parts = parts_of(below);
    for (std::size_t n = 0; n < parts.size(); ++n) {
        const auto node = probe_node({*store, key});
        if (node && node->kind == NodeKind::array) return nullptr;
        key = join_key(key, parts[n]);
        if (is_shown_file(parts[n]) && store->contains(key)) {
            const std::size_t rest = std::min(key.size() + 1, below.size());
            return open_at_file(key, below.substr(rest));
        }
    }
    return open_folder({store, key});
}

/// An array, a group, or a plain folder; null if there is none.
std::shared_ptr<ServedNode> Root::open_folder(const Place& place) const {
    const auto found = probe_node(place);
    if (found && found->kind == NodeKind::array) return open_array(place, *found->dialect);
    // Below an array there are only chunks.
    for (std::size_t slash = place.prefix.rfind('/'); slash != std::string::npos && slash > 0;
         slash = place.prefix.rfind('/', slash - 1)) {
        const auto above = probe_node({*place.store, place.prefix.substr(0, slash)});
        if (above && above->kind == NodeKind::array) return nullptr;
    }
    if (const auto root = probe_node(*place.store); !place.prefix.empty() && root && root->kind == NodeKind::array) {
        return nullptr;
    }
    if (!found) {
        const Listing listing = place.store->list(place.prefix);
        const bool hidden = place.prefix.substr(place.prefix.rfind('/') + 1).starts_with('.');
        if (hidden || (!place.prefix.empty() && listing.keys.empty() && listing.prefixes.empty())) return nullptr;
    }
    auto node = std::make_shared<ServedNode>();
    node->kind = ServedKind::group;
    if (found) node->format = found->dialect->name;
    node->name = place.store->name_of(place.prefix);
    node->place = place;
    return node;
}

std::shared_ptr<ServedNode> Root::open_at_file(const std::string& key, std::string_view rest) const {
    const fs::path file = path_ / key;
    if (is_store_name(key)) return open_folder({store_in(file).store, std::string(rest)});
    // Not by locate(), which follows links out of the root.
    std::shared_ptr<const ByteSource> bytes = directory()->open(key);
    if (bytes == nullptr) return nullptr;
    return open_member({.path = file, .opened = std::move(bytes)}, rest);
}

/// An array file, or the array or group in it that `member` names.
std::shared_ptr<ServedNode> Root::open_member(ArrayPath file, std::string_view member) const {
    auto node = std::make_shared<ServedNode>();
    node->name = file.path.string();
    node->version = file_version(file.path);
    if (file.opened == nullptr) file.opened = open_file(file.path);
    const ArrayFileFormat* const format = array_file_format_of(*file.opened);
    if (format == nullptr) throw corrupt("{}: not what its name says", node->name);
    node->format = format->name;
    node->file_format = format;
    const std::vector<std::string> members = array_members(*format, file);
    const bool array = std::ranges::find(members, member) != members.end();
    if (!member.empty()) node->name += fmt::format("::{}", member);
    if (!member.empty() && !array) {
        const std::string below = std::string(member) + "/";
        if (std::ranges::none_of(members, [&](const auto& one) { return one.starts_with(below); })) return nullptr;
        node->inner = member;
    } else if (!member.empty()) {
        file.member = std::string(member);
    }
    const bool several = !node->inner.empty() || (member.empty() && format->holds_several() && members.size() != 1);
    node->kind = several ? ServedKind::files : member.empty() ? ServedKind::file : ServedKind::member;
    if (!several) node->file = open_array_file(file);
    file.opened = nullptr;  // the source has what it needs
    node->file_path = std::move(file);
    return node;
}

bool Root::holds_something(const PlaceView& place, int depth) const {
    const Listing listing = place.store.list(place.prefix);
    if (std::ranges::any_of(listing.keys, is_shown_file)) return true;
    if (depth == deepest_look) return false;
    return std::ranges::any_of(listing.prefixes, [&](const std::string& name) {
        const bool link = std::ranges::find(listing.links, name) != listing.links.end();
        return !link && !name.starts_with('.') && holds_something({place.store, place.key(name)}, depth + 1);
    });
}

void Root::add_folders_and_files(const Place& place, std::vector<ServedChild>& children) const {
    const ReadableStore& store = *place.store;
    const Listing listing = store.list(place.prefix);
    std::set<std::string, std::less<>> passed(listing.links.begin(), listing.links.end());
    for (const ServedChild& node : children) passed.insert(node.name);
    for (const std::string& name : listing.prefixes) {
        if (passed.contains(name) || name.starts_with('.') || name.ends_with(".snapshots")) continue;
        if (holds_something({store, place.key(name)}, 0)) children.push_back({name, ServedKind::group, ""});
    }
    for (const std::string& name : listing.keys) {
        if (!is_shown_file(name)) continue;
        try {
            const auto file = open_at_file(place.key(name), "");
            if (file == nullptr) continue;
            if (file->kind == ServedKind::group && child_nodes(*file->place->store).empty() && file->format.empty()) {
                continue;  // some other zip
            }
            children.push_back({name, file->kind, file->format});
        } catch (const Error&) {
            children.push_back({name, ServedKind::file, ""});  // opening it reports what is wrong
        }
    }
}

std::vector<ServedChild> Root::children(const ServedNode& node) const {
    std::vector<ServedChild> children;
    if (node.kind == ServedKind::files) return children_in_file(node);
    if (node.kind != ServedKind::group) return children;
    const ReadableStore& store = *node.place->store;
    for (const Node& child : child_nodes({store, node.place->prefix})) {
        const std::string_view name = std::string_view(child.path).substr(child.path.rfind('/') + 1);
        const ServedKind kind = child.kind == NodeKind::array ? ServedKind::array : ServedKind::group;
        children.push_back({std::string(name), kind, std::string(child.dialect == nullptr ? "" : child.dialect->name)});
    }
    if (is_directory_ && node.place->store == directory()) add_folders_and_files(*node.place, children);
    std::ranges::sort(children, {}, &ServedChild::name);
    return children;
}

std::string Root::version_of(const ServedNode& node) const {
    if (node.file_path) return file_version(node.file_path->path);
    if (!node.array) return {};
    if (elsewhere_) return version_elsewhere(node);
    if (is_directory_ && was_replaced(*node.place)) return {};
    return array_version(*node.place, node.array->dialect());
}

}  // namespace tessera::serve
