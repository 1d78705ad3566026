#include <tessera/action.h>
#include <tessera/snapshot.h>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/destination_lock.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/fixity_log.h>
#include <tessera/folder_walk.h>
#include <tessera/own_names.h>
#include <tessera/place.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <set>
#include <span>

#include "copy_bytes.h"
#include "directory_store.h"
#include "keys.h"
#include "move_aside.h"
#include "node_files.h"
#include "replace_directory.h"
#include "seal_changes.h"
#include "seal_mark.h"
#include "snapshot_record.h"
#include "stored_chunks.h"
#include "sums.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view files_key = snapshot_files_key;
constexpr std::string_view mended_key = ".tessera/mended";

// ---- places

/// The location of the snapshots of an array or group.
struct Where {
    fs::path path;     ///< of the array or group, without links
    std::string node;  ///< below the root; empty: the root itself
    fs::path folder;   ///< of the root's snapshots
};

Where where_of(const fs::path& path) {
    require_local(path, "a snapshot");
    if (const auto place = probe_place(path); place && place->store->read_only()) {
        throw invalid_argument("{}: in a zip or references, which are never changed and need no snapshots",
                               path.string());
    }
    Where where{.path = real_path(path), .node = {}, .folder = {}};
    const Place outermost = enclosing_place(where.path, {.read_only = true});
    fs::path root = where.path;
    if (is_group_at(outermost.store->name())) {
        root = outermost.store->name();
        where.node = outermost.prefix;
    }
    if (is_snapshot(*directory_store(root, {.read_only = true}))) {
        throw invalid_argument("{}: a snapshot itself; name what it was made of", path.string());
    }
    where.folder = root;
    where.folder += snapshots_suffix;
    return where;
}

void require_name(std::string_view name) {
    if (name.starts_with('.') || name.find('/') != std::string_view::npos) {
        throw invalid_argument("\"{}\" is no name for a snapshot: it must not begin with '.', nor hold '/'", name);
    }
    require_key(name);
}

/// Locks the folder of snapshots for changes. It is Tessera's own, so a link in its place is not followed.
DestinationLock lock_folder(const fs::path& path, const StoreOptions& options) {
    std::error_code ignored;
    if (!options.follow_links && fs::is_symlink(path, ignored)) {
        throw invalid_argument("{} is a symbolic link: nothing is written or deleted through it", path.string())
            .advising(Action::follow_links, "allows it");
    }
    return DestinationLock(path, options);
}

/// The folder of snapshots; throws if it has none of that name.
std::shared_ptr<KeyValueStore> folder_with(const Where& where, std::string_view name, const StoreOptions& options) {
    require_name(name);
    auto folder = directory_store(where.folder, options);
    if (is_snapshot({*folder, name})) return folder;
    std::vector<std::string> names;
    for (const SnapshotInfo& info : list_snapshots(where.path)) names.push_back(info.name);
    throw not_found("{}: no snapshot \"{}\" here; there {}", where.folder.string(), name,
                    names.empty() ? "is none" : fmt::format("is {}", fmt::join(names, ", ")));
}

// ---- what is recorded

std::string utc_now() {
    return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
}

/// Removes leftovers of interrupted attempts in a folder of snapshots, whose lock is held.
void remove_interrupted(KeyValueStore& folder) {
    for (const std::string& name : folder.list("").prefixes) {
        if (is_own_name(name) && name != own_folder) folder.erase_below(name);
    }
}

// ---- sharing files

/// Transfers the files of nodes to another store, by reflink or hard link where possible.
class FileSharer {
public:
    FileSharer(const ReadableStore& from, KeyValueStore& to, const IoOptions& io) : from_(from), to_(to), io_(io) {}

    /// Calls each(file in `to`) in order.
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

    /// Keys to leave out.
    void leave_out(std::set<std::string> keys) { left_out_ = std::move(keys); }

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
        const bool sealed =
            from_.contains(join_key(node.path, seal_sums_key)) && !from_.contains(join_key(node.path, seal_mark_key));
        if (sealed) documents.emplace_back(seal_sums_key);
        share_files(node.path, documents, false, each);
        share_files(node.path, chunks, true, each);
        if (node.kind == NodeKind::group) return;
        for (const std::string& name : listing.prefixes) {
            if (!files.owns(name) || is_own_name(name)) continue;
            FolderWalk walk({from_, join_key(node.path, name)}, [](const std::string&) { return true; });
            while (walk.next()) {
                share_files(walk.prefix(), walk.listing().keys, true, each);
                for (const std::string& below : walk.listing().prefixes) {
                    if (looks_like_chunk(below)) walk.enter(below);
                }
            }
        }
    }

    /// `chunks`: files that Tessera only ever replaces, so that hard links are as good as copies.
    template <class Each>
    void share_files(const std::string& folder, const std::vector<std::string>& names, bool chunks, const Each& each) {
        std::vector<FileRecord> files(names.size());
        parallel_for(std::ssize(names), io_, [&](std::int64_t n) {
            const std::string& name = names[static_cast<std::size_t>(n)];
            if (is_lock_name(name)) return;
            const std::string key = join_key(folder, name);
            if (left_out_.contains(key)) return;
            if (!(chunks && share_file(key)) && !copy_file(key, chunks)) return;
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
            if (to_.local_files().clone(key, from_, key)) {
                ++reflinked_;
                return true;
            }
            can_clone_ = false;  // unsupported by this file system: stop trying
        }
        if (!to_.local_files().link(key, from_, key)) return false;
        ++linked_;
        return true;
    }

    /// False if it is gone: other programs take no locks. Throws corrupt for a document or a list that is not read
    /// either.
    bool copy_file(const std::string& key, bool chunk) {
        const auto source = from_.open(key);
        if (source == nullptr) return false;
        if (key.ends_with(seal_sums_key)) {
            require_sums(*source);
        } else if (!chunk) {
            require_size(source->name(), source->size(), metadata_limit);
        }
        copy_bytes(*source, to_, key);
        return true;
    }

    const ReadableStore& from_;
    KeyValueStore& to_;
    const IoOptions& io_;
    std::set<std::string> left_out_;
    SnapshotInfo info_;
    std::atomic<bool> can_clone_ = true;
    std::atomic<std::int64_t> reflinked_ = 0;
    std::atomic<std::int64_t> linked_ = 0;
};

/// Recreates links that no walk enters: between groups, and out to things that are not nodes.
void share_links(const ReadableStore& from, const ReadableStore& to) {
    for (const PassedFolder& passed : hierarchy_below(from).passed) {
        if (passed.why == PassedFolder::Why::too_deep) {
            throw unsupported("{}: folders are nested deeper than {}, which no snapshot holds",
                              from.name_of(passed.path), deepest_folder);
        }
        const fs::path place = fs::path(to.name()) / passed.path;
        fs::path target = from.local_files().link_target(passed.path);
        if (target.empty()) target = fs::path(passed.target).lexically_relative(fs::path(passed.path).parent_path());
        std::error_code error;
        fs::create_directories(place.parent_path(), error);
        fs::create_symlink(target, place, error);
        if (error) throw io_error("making the link", place.string(), error.value());
    }
}

/// Fills the empty store `built` with a snapshot of all nodes of `from`.
SnapshotInfo build_snapshot(KeyValueStore& from, KeyValueStore& built, const Where& where, const IoOptions& io,
                            bool sums) {
    const auto files = built.create(files_key);
    FileSharer sharer(from, built, io);
    std::string made;
    {
        const LockedNodes locked = lock_settled_nodes(from);
        if (locked.nodes.empty()) throw absence(from, "array or group");
        made = utc_now();
        sharer.share(locked.nodes, [&](const FileRecord& file) {
            const std::string line = line_of(file);
            files->append(std::as_bytes(std::span(line)));
        });
        share_links(from, built);
    }
    files->finish();
    SnapshotInfo info = sharer.info();
    info.node = where.node;
    info.made = made;
    info.sums = sums;
    if (sums) save_sums(built, io);
    save_record(built, info);
    built.sync();
    return info;
}

// ---- putting back

/// The paths that lie below `prefix`, relative to it.
std::vector<std::string> within(const std::string& prefix, const std::vector<std::string>& paths) {
    std::vector<std::string> found;
    for (const std::string& path : paths) {
        if (prefix.empty()) found.push_back(path);
        if (!prefix.empty() && path.starts_with(prefix + '/')) found.push_back(path.substr(prefix.size() + 1));
    }
    return found;
}

/// Why a snapshot is not restored.
Error damaged(const SnapshotInfo& info, const SnapshotState& state) {
    if (!state.untold.empty()) {
        return corrupt(
                   "{}: not one of its {} files has the time that it had when it was made, though all have their "
                   "sizes: it "
                   "was copied without them (cp -r; cp -a keeps them), and whether they hold the same cannot be told",
                   info.path.string(), state.files)
            .advising(Action::accept_snapshot, "takes them as they are", info.name);
    }
    std::vector<std::string> names = state.changed;
    names.insert(names.end(), state.missing.begin(), state.missing.end());
    return corrupt("{}: {} of its files are not as they were when it was made: {}", info.path.string(), names.size(),
                   names_text(names));
}

/// The files to leave out when a part of a snapshot is restored, as paths below the part. Throws if there are any
/// without `skip_damaged`.
std::vector<std::string> damaged_files(const ReadableStore& folder, const SnapshotInfo& info, const std::string& part,
                                       const IoOptions& io, bool skip_damaged) {
    SnapshotState state = snapshot_state_of({folder, info.name}, info, part, io);
    for (auto* paths : {&state.changed, &state.missing, &state.untold}) *paths = within(part, *paths);
    if (state.intact()) return {};
    if (!state.untold.empty() || !skip_damaged) {
        const Error error = damaged(info, state);
        if (!state.untold.empty()) throw error;
        throw error.advising(Action::skip_damaged, "restores all others").advising(Action::copy, "takes it as it is");
    }
    std::vector<std::string> damaged = std::move(state.changed);
    damaged.insert(damaged.end(), state.missing.begin(), state.missing.end());
    std::ranges::sort(damaged);
    return damaged;
}

/// Removes from `nodes` the arrays whose metadata is among the damaged files. Returns the losses: those files, and
/// these arrays as a whole. Throws corrupt if a group or the root is among them.
std::vector<std::string> leave_out_nodes(std::vector<Node>& nodes, const std::vector<std::string>& damaged,
                                         const SnapshotInfo& info) {
    std::vector<std::string> lost = damaged;
    std::erase_if(nodes, [&](const Node& node) {
        if (node.dialect == nullptr) return false;
        const bool is_array = node.kind == NodeKind::array;
        const std::string key = join_key(node.path, is_array ? node.dialect->metadata_key : node.dialect->group_key);
        if (!std::ranges::binary_search(damaged, key)) return false;
        if (!is_array || node.path.empty()) {
            throw corrupt("{}: {} is not as it was when the snapshot was made, and without it nothing can be restored",
                          info.path.string(), key)
                .advising(Action::copy, "takes the snapshot as it is");
        }
        lost.push_back(node.path);
        return true;
    });
    // An array without metadata is not a node.
    for (const std::string& key : damaged) {
        const std::size_t slash = key.rfind('/');
        if (slash == std::string::npos || std::ranges::count(nodes, key.substr(0, slash), &Node::path) > 0) continue;
        const bool metadata = std::ranges::any_of(
            dialect_table(), [&](const Dialect* d) { return key.substr(slash + 1) == d->metadata_key; });
        if (metadata && std::ranges::count(lost, key.substr(0, slash)) == 0) lost.push_back(key.substr(0, slash));
    }
    std::ranges::sort(lost);
    return lost;
}

/// Keeps a seal with parity, as a broken one: sealing again then makes parity of the restored files. The snapshot's own
/// seal, if it has one, has no parity.
void carry_parity(const ReadableStore& old, KeyValueStore& built, const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
        const std::string folder = join_key(node.path, parity_folder);
        std::vector<std::string> keys;
        for (const std::string& name : old.list(folder).keys) keys.push_back(join_key(folder, name));
        if (keys.empty()) continue;
        for (const std::string_view key : {seal_sums_key, seal_mark_key}) keys.push_back(join_key(node.path, key));
        for (const std::string& key : keys) {
            built.erase(key);
            const auto source = old.open(key);
            if (source != nullptr && !built.local_files().link(key, old, key)) copy_bytes(*source, built, key);
        }
    }
}

/// What was recorded of an array stays its record, in whatever state it is.
void carry_fixity(const ReadableStore& old, KeyValueStore& built, const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
        const std::string key = join_key(node.path, fixity_key);
        const auto log = old.open(key);
        if (log != nullptr && !built.local_files().link(key, old, key)) copy_bytes(*log, built, key);
    }
}

/// Adds the nodes that the restored ones replace and that are none because their metadata are broken or gone: snapshots
/// are there for that.
void add_broken_nodes(std::vector<Node>& nodes, const ReadableStore& old, const ReadableStore& restored) {
    for (Node& node : all_nodes(restored)) {
        const auto there = std::ranges::find(nodes, node.path, &Node::path);
        if (there == nodes.end()) {
            if (probe_node({old, node.path}) || lost_its_metadata({old, node.path})) nodes.push_back(std::move(node));
        } else if (there->kind != node.kind) {
            *there = std::move(node);  // a broken document may be that of an array or of a group
        }
    }
}

/// Puts the complete directory `built` at `path`.
void record_all_chunks(const std::shared_ptr<KeyValueStore>& store, const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
        if (node.kind != NodeKind::array) continue;
        const ArrayState array(store, node.path, *node.dialect);
        record_stored_chunks(array, LoadedArray(load_metadata(*node.dialect, {*store, node.path})));
    }
}

void put_in_place(const fs::path& built, const fs::path& path, const StoreOptions& options) {
    if (!fs::exists(status_of(path))) {
        const auto above = directory_store(path.parent_path(), options);
        above->move(built.filename().string(), path.filename().string());
        above->sync();
        return;
    }
    const auto old = directory_store(path, options);
    LockedNodes locked = lock_nodes(*old);
    add_broken_nodes(locked.nodes, *old, *directory_store(built, {.read_only = true}));
    if (locked.nodes.empty()) {
        throw already_exists("{}: something that is no array or group is there; move it away first", path.string());
    }
    std::vector<std::string> links;
    for (const PassedFolder& passed : hierarchy_below(*old).passed) links.push_back(passed.path);
    in_context(
        [] { return "what is there now would be lost"; },
        [&] { require_nothing_foreign(*old, locked.nodes, links, ErrorCode::invalid_argument, BrokenNodes::guess); });
    replace_directory(built, *old, std::move(locked), options);
}

/// The path of `where` below the snapshot's source.
std::string part_of(const Where& where, const SnapshotInfo& info) {
    if (info.node.empty() || where.node == info.node) return where.node == info.node ? "" : where.node;
    if (where.node.starts_with(info.node + '/')) return where.node.substr(info.node.size() + 1);
    throw invalid_argument("{}: a snapshot of {}, in which {} is not", info.path.string(), info.node,
                           where.node.empty() ? where.path.string() : where.node);
}

}  // namespace

SnapshotInfo create_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options,
                             const IoOptions& io, SnapshotOptions how) {
    require_name(name);
    const Where where = where_of(path);
    at_place(where.path, {.read_only = true}, [](const Place& from) {
        if (probe_node(*from.store) || !child_nodes(*from.store).empty()) return;
        throw absence(*from.store, "array or group");
    });
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    // An empty one of another user's run that was killed before it shared it.
    if (::access(where.folder.c_str(), X_OK) != 0) (void)::rmdir(where.folder.c_str());
    const auto folder = directory_store(where.folder, options);
    const fs::path place = where.folder / name;
    if (fs::exists(status_of(place))) throw already_exists("{}: is there already", place.string());
    remove_interrupted(*folder);
    const std::string hidden = hidden_name(place, "new");
    const bool is_first = !fs::exists(status_of(where.folder));
    BuiltDirectory directory(where.folder / hidden, options.durability);
    const auto built = directory_store(directory.path(), options);
    built->sync_later();
    std::shared_ptr<KeyValueStore> source;  // outlives what takes after it
    SnapshotInfo info = at_place(where.path, options, [&](const Place& from) {
        source = from.store;
        if (is_first) share_like(*folder, *source);
        share_like(*built, *source);
        built->erase_below("");  // files of a node that was replaced meanwhile
        return build_snapshot(*from.store, *built, where, io, how.sums);
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
        if (!name.starts_with('.') && is_snapshot({*folder, name})) snapshots.push_back(load_record(*folder, name));
    }
    return snapshots;
}

std::vector<std::string> restore_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options,
                                          const IoOptions& io, RestoreOptions how) {
    const Where where = where_of(path);
    const DestinationLock building(where.path, options);
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = folder_with(where, name, options);
    remove_interrupted(*folder);
    const SnapshotInfo info = load_record(*folder, std::string(name));
    const std::string part = part_of(where, info);
    const std::vector<std::string> damaged = damaged_files(*folder, info, part, io, how.skip_damaged);
    const auto from = directory_store(info.path / part, {.read_only = true});
    std::vector<Node> nodes = all_nodes(*from);
    std::vector<std::string> lost = leave_out_nodes(nodes, damaged, info);
    if (nodes.empty()) throw absence(*from, "array or group");
    fs::path built = where.path;
    built.replace_filename(hidden_name(where.path, "new"));
    rescue_set_aside(built, where.path, options);
    BuiltDirectory directory(built, options.durability);
    const auto to = directory_store(built, options);
    to->sync_later();
    const auto old = directory_store(where.path, {.read_only = true});
    share_like(*to, *old);
    FileSharer sharer(*from, *to, io);
    sharer.leave_out({damaged.begin(), damaged.end()});
    sharer.share(nodes);
    share_links(*from, *to);
    record_all_chunks(to, nodes);
    carry_parity(*old, *to, nodes);
    carry_fixity(*old, *to, nodes);
    to->sync();
    building.require_held();
    put_in_place(built, where.path, options);
    directory.release();
    return lost;
}

void accept_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options, const IoOptions& io,
                     SnapshotOptions how) {
    const Where where = where_of(path);
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = folder_with(where, name, options);
    SnapshotInfo info = load_record(*folder, std::string(name));
    const PlaceRef place{*folder, name};
    // Sums that are missing or damaged are given up, or made again.
    info.sums = sums_are_whole(place, info);
    const SnapshotState state = snapshot_state_of(place, info, "", io);
    // If only some files have another time, they are among `changed`, because another program changed them.
    if (!state.changed.empty() || !state.missing.empty()) throw damaged(info, state);
    std::string files;
    for_each_record(place, [&](const FileRecord& file, const std::optional<ValueStamp>& now) {
        files += line_of({file.path, file.size, now ? now->modified : file.modified});
    });
    save_record(place, info, false);  // a crash while the lists change leaves a snapshot that can be accepted
    folder->sync();
    info.sums = info.sums || how.sums;
    if (how.sums) save_sums(place, io);
    if (!info.sums) folder->erase(place.key(snapshot_sums_key));
    folder->put(place.key(files_key), std::as_bytes(std::span(files)));
    save_record(place, info);
    folder->sync();
}

void remove_snapshot(const fs::path& path, std::string_view name, const StoreOptions& options) {
    const Where where = where_of(path);
    const DestinationLock one_at_a_time = lock_folder(where.folder, options);
    const auto folder = folder_with(where, name, options);
    remove_interrupted(*folder);
    const std::string hidden = hidden_name(name, "old");
    folder->move(name, hidden);
    folder->sync();  // else a power failure could bring the old name back with only a part of its content
    folder->erase_below(hidden);
    folder->sync();
}

void mend_snapshots(const fs::path& path, std::vector<MendedFile>& files) {
    const std::vector<SnapshotInfo> snapshots = list_snapshots(path);
    if (snapshots.empty()) return;
    const Where where = where_of(path);
    const DestinationLock one_at_a_time = lock_folder(where.folder, {});
    const auto folder = directory_store(where.folder, {});
    const auto store = directory_store(where.path, {.read_only = true});
    for (const SnapshotInfo& info : snapshots) {
        for (MendedFile& file : files) {
            const std::string there = join_key(where.node, file.path);  // below the root
            const std::vector<std::string> key = within(info.node, {there});
            if (key.empty()) continue;
            const fs::path shared = info.path / key.front();
            std::error_code ignored;  // absent
            if (!fs::equivalent(shared, where.path / file.kept, ignored)) continue;
            const std::string linked = join_key(info.name, mended_key);
            folder->erase(linked);
            if (!folder->local_files().link(linked, *store, file.path)) continue;
            if (folder->stamp(linked) == file.stamp) {
                folder->replace(linked, join_key(info.name, key.front()));
                file.snapshots.push_back(info.name);
            } else {
                folder->erase(linked);
            }
        }
    }
    folder->sync();
}

}  // namespace tessera
