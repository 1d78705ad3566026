#include <tessera/snapshot.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/destination_lock.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/place.h>
#include <tessera/seal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <ctime>
#include <span>

#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "node_files.h"
#include "replace_directory.h"
#include "set_aside.h"
#include "snapshot_record.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view suffix = ".snapshots";
constexpr std::string_view record_key = snapshot_record_key;
constexpr std::string_view files_key = snapshot_files_key;
constexpr std::uint64_t record_limit = std::uint64_t{1} << 20;  // a dozen members

// ---- places

/// Where the snapshots of an array or group are.
struct Where {
    fs::path path;     ///< of the array or group, without links
    std::string node;  ///< below the root; empty: the root itself
    fs::path folder;   ///< of the root's snapshots
};

bool is_snapshot(const KeyValueStore& store, std::string_view prefix) {
    return store.contains(join_key(prefix, record_key));
}

Where where_of(const fs::path& path) {
    if (const auto place = probe_place(path); place && place->store->read_only()) {
        throw invalid_argument(
            fmt::format("{}: in a zip, which is never changed and needs no snapshots", path.string()));
    }
    Where where{.path = real_path(path), .node = {}, .folder = {}};
    const Place outermost = enclosing_place(where.path, {.read_only = true});
    fs::path root = where.path;
    if (is_group_at(outermost.store->name())) {
        root = outermost.store->name();
        where.node = outermost.prefix;
    }
    if (is_snapshot(*directory_store(root, {.read_only = true}), "")) {
        throw invalid_argument(fmt::format("{}: a snapshot itself; name what it was made of", path.string()));
    }
    where.folder = root;
    where.folder += suffix;
    return where;
}

void require_name(std::string_view name) {
    if (name.starts_with('.') || name.find('/') != std::string_view::npos) {
        throw invalid_argument(
            fmt::format("\"{}\" is no name for a snapshot: it must not begin with '.', nor hold '/'", name));
    }
    require_key(name);
}

/// Locks the folder of snapshots, to be changed: it is Tessera's own, and a link in its place is not followed.
DestinationLock lock_folder(const fs::path& path, const StoreOptions& options) {
    std::error_code ignored;
    if (!options.follow_links && fs::is_symlink(path, ignored)) {
        throw invalid_argument(
            fmt::format("{} is a symbolic link: nothing is written or deleted through it; --follow-links allows it",
                        path.string()));
    }
    return DestinationLock(path, options);
}

/// The folder of snapshots, in which there must be one of that name.
std::shared_ptr<KeyValueStore> folder_with(const Where& where, std::string_view name, const StoreOptions& options) {
    require_name(name);
    auto folder = directory_store(where.folder, options);
    if (is_snapshot(*folder, name)) return folder;
    std::vector<std::string> names;
    for (const SnapshotInfo& info : list_snapshots(where.path)) names.push_back(info.name);
    throw not_found(fmt::format("{}: no snapshot \"{}\" here; there {}", where.folder.string(), name,
                                names.empty() ? "is none" : fmt::format("is {}", fmt::join(names, ", "))));
}

// ---- what is recorded

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
                       date.tm_hour, date.tm_min, date.tm_sec);
}

Value record_of(const SnapshotInfo& info) {
    Value record = Value::object();
    record.set("about", "a snapshot by tessera; a plain Zarr store");
    record.set("version", 1);
    record.set("node", info.node);
    record.set("made", info.made);
    record.set("arrays", info.arrays);
    record.set("files", info.files);
    record.set("bytes", info.bytes);
    record.set("reflinked", info.reflinked);
    record.set("linked", info.linked);
    record.set("copied", info.copied);
    return record;
}

/// What interrupted attempts left in a folder of snapshots, whose lock is held.
void remove_interrupted(KeyValueStore& folder) {
    for (const std::string& name : folder.list("").prefixes) {
        if (is_own_name(name) && name != ".tessera") folder.erase_below(name);
    }
}

/// One file, as snapshot-files.txt has it.
struct FileRecord {
    std::string path;
    std::uint64_t size = 0;
    std::int64_t modified = 0;
};

std::string line_of(const FileRecord& file) {
    std::string line = fmt::format("{} {} ", file.size, file.modified);
    for (const char c : file.path) {
        if (c == '\\' || c == '\n') line += '\\';
        line += c == '\n' ? 'n' : c;
    }
    return line + '\n';
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length >= text.size() || text[length] != ' ') return false;
    text.remove_prefix(length + 1);
    return true;
}

std::optional<FileRecord> parse_line(std::string_view line) {
    FileRecord file;
    if (!take_number(line, file.size) || !take_number(line, file.modified)) return std::nullopt;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool escaped = line[i] == '\\';
        if (escaped && ++i == line.size()) return std::nullopt;
        file.path += escaped && line[i] == 'n' ? '\n' : line[i];
    }
    return file;
}

// ---- sharing files

/// Gives the files of nodes to another store, without copying their bytes where that can be done.
class FileSharer {
public:
    FileSharer(const KeyValueStore& from, KeyValueStore& to, const IoOptions& io) : from_(from), to_(to), io_(io) {}

    /// Calls each(file as it is now in `to`) in order.
    template <class Each>
    void share(const std::vector<Node>& nodes, const Each& each) {
        for (const Node& node : nodes) {
            if (node.kind == NodeKind::array) ++info_.arrays;
            share_node(node, each);
        }
        info_.reflinked = reflinked_;
        info_.linked = linked_;
        info_.copied = info_.files - reflinked_ - linked_;
    }
    void share(const std::vector<Node>& nodes) {
        share(nodes, [](const FileRecord&) {});
    }
    [[nodiscard]] const SnapshotInfo& info() const { return info_; }

private:
    template <class Each>
    void share_node(const Node& node, const Each& each) {
        const NodeFiles files(from_, node);
        const Listing listing = from_.list(node.path);
        std::vector<std::string> documents;
        std::vector<std::string> chunks;
        for (const std::string& name : listing.keys) {
            if (!files.owns(name) || is_own_name(name)) continue;
            (is_document(node, name) ? documents : chunks).push_back(name);
        }
        if (from_.contains(join_key(node.path, seal_key))) documents.emplace_back(seal_key);
        share_files(node.path, documents, false, each);
        share_files(node.path, chunks, true, each);
        if (node.kind == NodeKind::group) return;
        std::vector<std::string> folders;
        for (const std::string& name : listing.prefixes) {
            if (files.owns(name) && !is_own_name(name)) folders.push_back(join_key(node.path, name));
        }
        while (!folders.empty()) {
            const std::string folder = std::move(folders.back());
            folders.pop_back();
            const Listing below = from_.list(folder);
            share_files(folder, below.keys, true, each);
            for (const std::string& name : below.prefixes) {
                if (!from_.leads_back(join_key(folder, name))) folders.push_back(join_key(folder, name));
            }
        }
    }

    /// `chunks`: only ever replaced by Tessera, so that links to them are as good as copies.
    template <class Each>
    void share_files(const std::string& folder, const std::vector<std::string>& names, bool chunks, const Each& each) {
        std::vector<FileRecord> files(names.size());
        parallel_for(std::ssize(names), io_, [&](std::int64_t n) {
            const std::string& name = names[static_cast<std::size_t>(n)];
            if (is_lock_name(name)) return;
            const std::string key = join_key(folder, name);
            if (!(chunks && share_file(key)) && !copy_file(key)) return;
            const ValueStamp stamp = to_.stamp(key).value_or(ValueStamp{});
            files[static_cast<std::size_t>(n)] = {key, stamp.size, stamp.modified};
        });
        for (const FileRecord& file : files) {
            if (file.path.empty()) continue;
            ++info_.files;
            info_.bytes += file.size;
            each(file);
        }
    }

    bool share_file(const std::string& key) {
        if (can_clone_) {
            if (to_.clone(key, from_, key)) {
                ++reflinked_;
                return true;
            }
            can_clone_ = false;  // nor will the next: that is the file system's to say
        }
        if (!to_.link(key, from_, key)) return false;
        ++linked_;
        return true;
    }

    /// False when it is gone: other programs take no locks.
    bool copy_file(const std::string& key) {
        const auto source = from_.open(key);
        if (source == nullptr) return false;
        copy_bytes(*source, to_, key);
        return true;
    }

    const KeyValueStore& from_;
    KeyValueStore& to_;
    const IoOptions& io_;
    SnapshotInfo info_;
    std::atomic<bool> can_clone_ = true;
    std::atomic<std::int64_t> reflinked_ = 0;
    std::atomic<std::int64_t> linked_ = 0;
};

/// Fills the empty store `built` with a snapshot of all that `from` has.
SnapshotInfo build_snapshot(KeyValueStore& from, KeyValueStore& built, const Where& where, const IoOptions& io) {
    const auto files = built.create(files_key);
    FileSharer sharer(from, built, io);
    std::string made;
    {
        const LockedNodes locked = lock_settled_nodes(from);
        if (locked.nodes.empty()) throw not_found(absence_message(from, "", "array or group"));
        made = utc_now();
        sharer.share(locked.nodes, [&](const FileRecord& file) {
            const std::string line = line_of(file);
            files->append(std::as_bytes(std::span(line)));
        });
    }
    files->finish();
    SnapshotInfo info = sharer.info();
    info.node = where.node;
    info.made = made;
    const std::string record = record_of(info).dump(python_json_style) + "\n";
    built.put(record_key, std::as_bytes(std::span(record)));
    built.sync();
    return info;
}

/// Puts the complete directory `built` at `path`.
void put_in_place(const fs::path& built, const fs::path& path, const StoreOptions& options) {
    if (!fs::exists(status_of(path))) {
        const auto above = directory_store(path.parent_path(), options);
        above->move(built.filename().string(), path.filename().string());
        above->sync();
        return;
    }
    const auto old = directory_store(path, options);
    LockedNodes locked = lock_nodes(*old);
    if (locked.nodes.empty()) {
        throw already_exists(
            fmt::format("{}: something that is no array or group is there; move it away first", path.string()));
    }
    in_context([] { return "what is there now would be lost"; }, [&] { require_nothing_foreign(*old, locked.nodes); });
    replace_directory(built, *old, std::move(locked), options);
}

/// Of paths below a snapshot, those that are in the part of it that is at `prefix`.
std::vector<std::string> within(const std::string& prefix, std::vector<std::string> paths) {
    std::erase_if(paths, [&](const std::string& path) { return !prefix.empty() && !path.starts_with(prefix + '/'); });
    return paths;
}

/// Of `where`, its path below what a snapshot was made of.
std::string part_of(const Where& where, const SnapshotInfo& info) {
    if (info.node.empty() || where.node == info.node) return where.node == info.node ? "" : where.node;
    if (where.node.starts_with(info.node + '/')) return where.node.substr(info.node.size() + 1);
    throw invalid_argument(fmt::format("{}: a snapshot of {}, in which {} is not", info.path.string(), info.node,
                                       where.node.empty() ? where.path.string() : where.node));
}

}  // namespace

SnapshotInfo load_record(const KeyValueStore& folder, const std::string& name) {
    const std::string key = join_key(name, record_key);
    Buffer text;
    if (!folder.get(key, text, record_limit)) throw not_found(fmt::format("{}: no snapshot", name));
    try {
        const Value record = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
        if (record.at("version").as_int64() != 1) throw unsupported("made by a newer Tessera");
        return {.name = name,
                .path = fs::path(folder.name()) / name,
                .node = record.at("node").as_string(),
                .made = record.at("made").as_string(),
                .arrays = record.at("arrays").as_int64(),
                .files = record.at("files").as_int64(),
                .bytes = record.at("bytes").as_uint64(),
                .reflinked = record.at("reflinked").as_int64(),
                .linked = record.at("linked").as_int64(),
                .copied = record.at("copied").as_int64()};
    } catch (const Error& e) {
        if (e.code() == ErrorCode::unsupported) throw e.within(join_key(folder.name(), key));
        throw corrupt(fmt::format("{}: not the record of a snapshot: {}", join_key(folder.name(), key), e.what()));
    }
}

SnapshotInfo create_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options,
                             const IoOptions& io) {
    require_name(name);
    const Where where = where_of(path);
    at_place(where.path, {.read_only = true}, [](const Place& from) {
        if (probe_node(*from.store, "") || !child_nodes(*from.store, "").empty()) return;
        throw not_found(absence_message(*from.store, "", "array or group"));
    });
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = directory_store(where.folder, options);
    const fs::path place = where.folder / name;
    if (fs::exists(status_of(place))) throw already_exists(fmt::format("{}: is there already", place.string()));
    remove_interrupted(*folder);
    const std::string hidden = hidden_name(place, "new");
    BuiltDirectory directory(where.folder / hidden, options.durability);
    const auto built = directory_store(directory.path(), options);
    built->sync_later();
    SnapshotInfo info = at_place(where.path, options, [&](const Place& from) {
        built->erase_below("");  // of what was replaced meanwhile
        return build_snapshot(*from.store, *built, where, io);
    });
    info.name = name;
    info.path = place;
    one_at_a_time.require_held();
    folder->move(hidden, name);
    directory.release();
    folder->sync();
    return info;
}

std::vector<SnapshotInfo> list_snapshots(const fs::path& path) {
    const auto folder = directory_store(where_of(path).folder, {.read_only = true});
    std::vector<SnapshotInfo> snapshots;
    for (const std::string& name : folder->list("").prefixes) {
        if (!name.starts_with('.') && is_snapshot(*folder, name)) snapshots.push_back(load_record(*folder, name));
    }
    return snapshots;
}

void restore_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options, const IoOptions& io) {
    const Where where = where_of(path);
    const DestinationLock building(where.path, options);
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = folder_with(where, name, options);
    remove_interrupted(*folder);
    const SnapshotInfo info = load_record(*folder, std::string(name));
    const std::string part = part_of(where, info);
    const auto changed = within(part, changed_since_snapshot(*folder, name).value());
    if (!changed.empty()) {
        throw corrupt(
            fmt::format("{}: {} of its files are not as they were when it was made, the first being {}; `tessera copy` "
                        "takes it as it is",
                        info.path.string(), changed.size(), changed.front()));
    }
    const auto from = directory_store(info.path / part, {.read_only = true});
    const std::vector<Node> nodes = all_nodes(*from);
    if (nodes.empty()) throw not_found(absence_message(*from, "", "array or group"));
    fs::path built = where.path;
    built.replace_filename(hidden_name(where.path, "new"));
    rescue_set_aside(built, where.path, options);
    BuiltDirectory directory(built, options.durability);
    const auto to = directory_store(built, options);
    to->sync_later();
    FileSharer(*from, *to, io).share(nodes);
    to->sync();
    building.require_held();
    put_in_place(built, where.path, options);
    directory.release();
}

void remove_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options) {
    const Where where = where_of(path);
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = folder_with(where, name, options);
    remove_interrupted(*folder);
    const std::string hidden = hidden_name(name, "old");
    folder->move(name, hidden);
    folder->sync();  // else a power failure could bring the name back, with a part of what it led to
    folder->erase_below(hidden);
    folder->sync();
}

std::optional<std::vector<std::string>> changed_since_snapshot(const KeyValueStore& store, std::string_view prefix) {
    if (!is_snapshot(store, prefix)) return std::nullopt;
    const std::string key = join_key(prefix, files_key);
    const auto text = store.open(key);
    if (text == nullptr) throw corrupt(fmt::format("{} is missing", join_key(store.name(), key)));
    std::vector<std::string> changed;
    const auto compare = [&](std::string_view line, std::size_t number) {
        const auto file = parse_line(line);
        if (!file) return false;
        const auto now = in_context([&] { return fmt::format("line {}", number); },
                                    [&] { return store.stamp(join_key(prefix, file->path)); });
        // A store without times (a zip) still has sizes.
        const bool same = now && now->size == file->size && (now->modified == file->modified || now->modified == 0);
        if (!same) changed.push_back(file->path);
        return true;
    };
    in_context([&] { return join_key(store.name(), key); },
               [&] { for_each_line(*text, "\"SIZE MTIME PATH\"", compare); });
    return changed;
}

bool is_snapshot_folder(const KeyValueStore& store, std::string_view prefix) {
    if (!prefix.ends_with(suffix)) return false;
    return std::ranges::any_of(store.list(prefix).prefixes,
                               [&](const std::string& name) { return is_snapshot(store, join_key(prefix, name)); });
}

}  // namespace tessera
