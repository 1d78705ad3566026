#include <tessera/verify.h>

#include <fmt/format.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <tessera/repair.h>
#include <tessera/seal.h>
#include <tessera/shard.h>
#include <tessera/snapshot.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <tuple>
#include <utility>

#include "batch.h"
#include "check_chunk.h"
#include "destination_lock_file.h"
#include "keys.h"
#include "lost_separator.h"
#include "metadata_json.h"
#include "region_io.h"
#include "resize.h"
#include "snapshot_record.h"

namespace tessera {

namespace {

constexpr std::uint64_t default_memory = std::uint64_t{256} << 20;

/// Names below a folder, from one listing.
bool holds(const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::binary_search(names, name);
}

/// Whether a name is what all formats but zmeta call a chunk, or a folder of chunks: "3", "3.0", "c.3.0". Stricter than
/// looks_like_chunk(): it makes a plain folder a lost array.
bool is_chunk_name(std::string_view name) {
    if (name.starts_with("c.")) name.remove_prefix(2);
    bool digit = false;
    for (const char c : name) {
        if (c == '.' ? !digit : c < '0' || c > '9') return false;
        digit = c != '.';
    }
    return digit;
}

/// One run of verify: a walk over all nodes.
class Verifier {
public:
    Verifier(const std::shared_ptr<KeyValueStore>& store, std::string_view root, const VerifyOptions& options)
        : store_(store),
          root_(root),
          options_(options),
          walk_(*store, root, [this](const std::string& link) { return probe_node(*store_, link).has_value(); }) {}

    VerifyReport run() {
        while (walk_.next()) {
            const std::string path = walk_.path();
            guarded({.node = path}, [&] { check_node(path); });
        }
        for (const PassedFolder& passed : walk_.passed()) check_passed(passed);
        // The worst first, then by key, whatever the threads found first.
        std::ranges::stable_sort(report_.findings, {}, [](const Finding& f) {
            return std::tuple(f.kind, std::string_view(f.key.empty() ? f.node : f.key));
        });
        return std::move(report_);
    }

private:
    [[nodiscard]] std::string place(std::string_view path) const { return join_key(root_, path); }
    /// A key of the store as one below what is verified.
    [[nodiscard]] std::string below(std::string_view key) const {
        return std::string(root_.empty() ? key : key.substr(root_.size() + 1));
    }

    void add(Finding finding) {
        const std::lock_guard lock(mutex_);
        report_.findings.push_back(std::move(finding));
    }

    /// Runs `body`; what it throws becomes a finding like `where`. Whether it threw nothing.
    template <class Body>
    bool guarded(Finding where, const Body& body) {
        try {
            body();
            return true;
        } catch (...) {
            Fault fault = current_fault();
            where.kind = fault.kind;
            where.text = std::move(fault.text);
            // What could not be read just now may be whole, and is not to be mended.
            if (where.kind == FindingKind::unchecked) where.remedy = Remedy::none;
            add(std::move(where));
            return false;
        }
    }

    // ---- nodes

    void check_node(const std::string& path) {
        const std::string prefix = place(path);
        const Listing& listing = walk_.listing();
        check_temporaries(path, path);
        const bool own_is_whole = check_place(path, join_key(path, ".tessera"));
        const bool unfinished = own_is_whole && holds(listing.prefixes, ".tessera") && check_own(path);
        if (const Dialect* dialect = probe_dialect(*store_, prefix)) {
            check_array(path, *dialect, listing);
        } else {
            check_group(path, probe_group_dialect(*store_, prefix), listing, unfinished);
        }
        if (!own_is_whole) return;
        if (options_.seals) check_seal(path);
        check_snapshot(path);
    }

    /// What the walk did not go into. A second way to what it has been to is no matter.
    void check_passed(const PassedFolder& passed) {
        if (passed.why == PassedFolder::Why::too_deep) {
            add({.kind = FindingKind::unchecked,
                 .node = passed.path,
                 .text = fmt::format("folders are nested deeper than {}: what lies there is not looked at",
                                     deepest_folder)});
        } else if (passed.why == PassedFolder::Why::elsewhere) {
            add({.kind = FindingKind::note,
                 .node = passed.path,
                 .text = fmt::format("a symbolic link to {}, which is no array and no group with metadata: it is not "
                                     "followed",
                                     passed.target)});
        }
    }

    /// Whether nothing, a file or a directory is where Tessera keeps one of its own; anything else is added. What
    /// Tessera keeps for itself is never looked for behind it.
    bool check_place(const std::string& node, const std::string& key) {
        return guarded({.remedy = Remedy::remove_foreign, .node = node, .key = key},
                       [&] { (void)store_->stamp(place(key)); });
    }

    void check_group(const std::string& path, const Dialect* dialect, const Listing& listing, bool unfinished) {
        if (unfinished) return;  // its files are no array yet
        bool orphans = false;
        if (dialect != nullptr) {
            ++report_.groups;
            check_group_documents(path, *dialect);
        } else {
            orphans = check_orphans(path, listing);
        }
        const auto owned = [&](std::string_view name) {
            return name == dialect->consolidated_key || std::ranges::count(dialect->documents, name) > 0;
        };
        for (const std::string& name : listing.keys) {
            if (check_name(path, name) || dialect == nullptr || owned(name)) continue;
            add_stray(path, join_key(path, name), "a file that is no part of the group");
        }
        for (const std::string& name : listing.prefixes) {
            const std::string child = join_key(path, name);
            if (orphans && (is_chunk_name(name) || name == "c") && !probe_node(*store_, place(child))) continue;
            if (check_own_folder(path, name)) continue;
            if (!name.starts_with('.') || probe_node(*store_, place(child))) {
                walk_.enter(name);
            } else if (dialect != nullptr) {
                add_stray(path, child, "a directory that is no part of the group");
            }
        }
    }

    void check_group_documents(const std::string& path, const Dialect& dialect) {
        const std::string prefix = place(path);
        const std::string group_key = join_key(path, dialect.group_key);
        guarded({.node = path, .key = group_key}, [&] { (void)get_object(*store_, place(group_key)); });
        if (dialect.documents.back() != dialect.group_key) check_attributes(path, dialect);
        const std::string consolidated =
            join_key(path, dialect.consolidated_key.empty() ? dialect.group_key : dialect.consolidated_key);
        const bool readable = guarded({.remedy = Remedy::consolidate, .node = path, .key = consolidated},
                                      [&] { (void)dialect.load_consolidated(*store_, prefix); });
        if (!readable) return;
        ConsolidatedState state;
        try {
            state = Group::open(store_, prefix).consolidated_state();
        } catch (...) {
            (void)current_fault();  // of a node, where it is said anyway
            return;
        }
        if (!state.present || state.fresh()) return;
        const std::string& first = state.stale.front();
        add({.kind = FindingKind::leftover,
             .remedy = Remedy::consolidate,
             .node = path,
             .key = consolidated,
             .text = fmt::format("consolidated metadata say otherwise than {} of the nodes, the first being {}: other "
                                 "programs go by them",
                                 state.stale.size(), first.empty() ? "the group itself" : first)});
    }

    /// The last of a dialect's documents holds the attributes.
    void check_attributes(const std::string& path, const Dialect& dialect) {
        guarded({.node = path, .key = join_key(path, dialect.documents.back())},
                [&] { (void)dialect.load_attributes(*store_, place(path)); });
    }

    /// Of a folder without array and group: documents and chunks whose metadata are lost. Whether it holds chunks.
    bool check_orphans(const std::string& path, const Listing& listing) {
        for (const Dialect& dialect : dialect_table()) {
            if (!dialect.metadata_key.starts_with('.') && !dialect.metadata_key.starts_with('_')) continue;
            for (const std::string_view document : dialect.documents) {
                if (!holds(listing.keys, document)) continue;
                add({.node = path,
                     .key = join_key(path, document),
                     .text = fmt::format("{} is there, but {} is missing: neither an array nor a group opens here",
                                         document, dialect.metadata_key)});
            }
            // "__zdata__": the one folder of chunks that nothing else is called.
            const std::string folder = dialect.default_keys().prefix;
            if (folder.starts_with('_') &&
                holds(listing.prefixes, std::string_view(folder).substr(0, folder.size() - 1))) {
                add({.node = path,
                     .key = join_key(path, dialect.metadata_key),
                     .text = fmt::format("{} with chunks is there, but {} is missing: no array opens here", folder,
                                         dialect.metadata_key)});
            }
        }
        const std::string chunk = chunk_named(path);
        if (chunk.empty()) return false;
        add({.node = path,
             .key = join_key(path, chunk),
             .text =
                 "is named like a chunk, but the array's metadata (.zarray, zarr.json or meta) are missing: no array "
                 "opens here"});
        return true;
    }

    /// Of a folder without array and group: the key, below it, of a file that is named like a chunk; empty without one.
    /// v1 and v2 call chunks "3.0" or "3/0", v3 "c/3/0" or "c.3.0". Where thousands of folders lie in each other, not
    /// each is looked into from all those above it.
    [[nodiscard]] std::string chunk_named(const std::string& path) const {
        std::string folder;
        for (int depth = 0; depth <= max_rank; ++depth) {
            const std::string prefix = place(join_key(path, folder));
            if (depth > 0 && (deeper_looks_ == 0 || probe_node(*store_, prefix))) return "";
            if (depth > 0) --deeper_looks_;
            const Listing listing = store_->list(prefix);
            const auto key = std::ranges::find_if(listing.keys, [](const auto& name) { return is_chunk_name(name); });
            if (key != listing.keys.end()) return join_key(folder, *key);
            const auto next = std::ranges::find_if(listing.prefixes, [&](const std::string& name) {
                return is_chunk_name(name) || (depth == 0 && name == "c");
            });
            if (next == listing.prefixes.end()) return "";
            folder = join_key(folder, *next);
        }
        return "";
    }

    // ---- what is no part of nodes

    void add_stray(const std::string& node, const std::string& key, std::string_view what) {
        add({.kind = FindingKind::note, .node = node, .key = key, .text = fmt::format("{}; it is left alone", what)});
    }

    /// Whether a file's name says that it was left behind; it is then added.
    bool check_name(const std::string& node, const std::string& key) { return check_name(node, node, key); }
    bool check_name(const std::string& node, const std::string& folder, std::string_view name) {
        const std::string key = join_key(folder, name);
        if (name.starts_with(temporary_prefix)) {
            add({.kind = FindingKind::leftover,
                 .node = node,
                 .key = key,
                 .text = "a temporary file of a writer that was copied along with the rest"});
            return true;
        }
        if (is_destination_lock(name)) {
            add({.kind = FindingKind::leftover,
                 .remedy = Remedy::remove_temporary,
                 .node = node,
                 .key = key,
                 .text = "the lock file of a run that makes something here now or was killed"});
            return true;
        }
        if (!is_lock_name(name)) return false;
        add({.kind = FindingKind::leftover,
             .node = node,
             .key = key,
             .text = "a lock file of another program; remove it when no such program has the array open"});
        return true;
    }

    /// Whether a folder is one of Tessera's own; what was left behind is added.
    bool check_own_folder(const std::string& node, const std::string& name) {
        if (!is_own_name(name)) return false;
        if (name == ".tessera") return true;
        add({.kind = FindingKind::leftover,
             .node = node,
             .key = join_key(node, name),
             .text = "what an interrupted copy, bag or replacement built or put aside; remove it when what it was to "
                     "become is as it should be"});
        return true;
    }

    /// `.tessera` of a node. Whether it says that the node is unfinished.
    bool check_own(const std::string& path) {
        const std::string own = join_key(path, ".tessera");
        const Listing listing = store_->list(place(own));
        check_temporaries(path, own);
        for (const std::string_view name : {"lock", "batch", "damaged", "undo"}) check_place(path, join_key(own, name));
        if (holds(listing.prefixes, "undo")) check_place(path, join_key(own, "undo/journal"));
        for (const std::string& name : listing.prefixes) check_own_part(path, join_key(own, name), name);
        if (!holds(listing.keys, unfinished_marker_key.substr(unfinished_marker_key.rfind('/') + 1))) return false;
        add({.kind = FindingKind::leftover,
             .node = path,
             .key = join_key(path, unfinished_marker_key),
             .text = "an unfinished copy; the same command with --resume goes on with it, --overwrite starts afresh"});
        return true;
    }

    void check_own_part(const std::string& node, const std::string& key, std::string_view name) {
        if (name == "batch") {
            check_temporaries(node, key);
            if (check_place(node, join_key(key, "journal"))) check_batch(node, key);
        } else if (name == "damaged") {
            add({.kind = FindingKind::note, .node = node, .key = key, .text = set_aside_text(node)});
        }
    }

    [[nodiscard]] std::string set_aside_text(const std::string& node) const {
        const SetAside size = set_aside_in(*store_, place(node));
        return fmt::format("what repair set aside: {} files, {} bytes; `tessera repair --drop-damaged` deletes it",
                           size.files, size.bytes);
    }

    void check_batch(const std::string& node, const std::string& key) {
        Finding finding{.kind = FindingKind::leftover,
                        .remedy = Remedy::discard_batch,
                        .node = node,
                        .key = key,
                        .text = "a batch of edits that was never committed, or that somebody is making now"};
        if (holds(store_->list(place(key)).keys, "journal")) {
            finding.remedy = Remedy::finish_batch;
            try {
                finding.text = fmt::format(
                    "pending: a batch of edits that is committed but not yet in place ({}); the next opening for "
                    "writing finishes it: {}",
                    pending_batch(*store_, place(node)), pending_text(*store_, place(node)));
            } catch (const Error& e) {
                const bool newer = e.code() == ErrorCode::unsupported;
                finding.kind = newer ? FindingKind::unchecked : FindingKind::damage;
                if (e.code() == ErrorCode::corrupt) finding.remedy = Remedy::set_aside_batch;
                finding.text = e.what();
            }
        }
        add(std::move(finding));
    }

    /// Temporary files in a folder, which listings leave out.
    void check_temporaries(const std::string& node, const std::string& folder) {
        for (const std::string& name : store_->temporaries(place(folder))) {
            add({.kind = FindingKind::leftover,
                 .remedy = Remedy::remove_temporary,
                 .node = node,
                 .key = join_key(folder, name),
                 .text = "a temporary file of a writer that is at work or was killed"});
        }
    }

    // ---- arrays

    void check_array(const std::string& path, const Dialect& dialect, const Listing& listing) {
        ++report_.arrays;
        ArrayState array(store_, place(path), dialect);
        const std::string metadata_key = join_key(path, dialect.metadata_key);
        std::shared_ptr<const LoadedArray> loaded;
        guarded({.node = path, .key = metadata_key},
                [&] { loaded = std::make_shared<const LoadedArray>(load_metadata(dialect, *store_, array.prefix)); });
        if (loaded || dialect.documents.back() != dialect.metadata_key) check_attributes(path, dialect);
        if (!loaded) return;
        for (const std::string& name : listing.keys) {
            if (!check_name(path, name) && !dialect.owns(loaded->metadata, name)) {
                add_stray(path, join_key(path, name), "a file that is no part of the array");
            }
        }
        bool lost_separator = false;
        for (const std::string& name : listing.prefixes) {
            if (check_own_folder(path, name)) continue;
            if (dialect.owns(loaded->metadata, name)) {
                check_chunk_folders(path, join_key(path, name));
            } else if (const auto key = chunk_of_lost_separator(*store_, array.prefix, loaded->metadata, name)) {
                if (!lost_separator) add_lost_separator(path, dialect, *key);
                lost_separator = true;
            } else {
                add_stray(path, join_key(path, name), "a directory that is no part of the array");
            }
        }
        check_chunks(path, array, *loaded);
    }

    void add_lost_separator(const std::string& path, const Dialect& dialect, const std::string& key) {
        add({.node = path,
             .key = join_key(path, key),
             .text = fmt::format(
                 "is a chunk by the dimension_separator \"/\", which {} does not say, so that chunks like it "
                 "read as the fill value: zarr-python 2.13 loses it when it appends or resizes. Add "
                 "\"dimension_separator\": \"/\" to {}; chunks that were written since, such as {}, then "
                 "belong in folders",
                 dialect.metadata_key, dialect.metadata_key, dotted(key))});
    }

    static std::string dotted(std::string key) {
        std::ranges::replace(key, '/', '.');
        return key;
    }

    /// Temporary files in the folders of chunks, however deep.
    void check_chunk_folders(const std::string& node, const std::string& folder) {
        FolderWalk walk(*store_, place(folder), [](const std::string&) { return true; });
        while (walk.next()) {
            check_temporaries(node, join_key(folder, walk.path()));
            for (const std::string& name : walk.listing().prefixes) {
                if (looks_like_chunk(name)) walk.enter(name);
            }
        }
    }

    void check_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded) {
        std::vector<std::int64_t> stored;
        std::uint64_t bytes = 0;
        std::uint64_t largest = 0;
        const auto each = [&](const Index& index, const std::string& key, const auto& size_of) {
            if (!in_grid(loaded.grid, index)) return add_outside(path, loaded, index, below(key));
            stored.push_back(loaded.grid.linear(index));
            const std::uint64_t size = size_of();
            bytes += size;
            largest = std::max(largest, size);
        };
        const auto stray = [&](const std::string& key) {
            const std::size_t slash = key.rfind('/');
            if (slash == std::string::npos) return;  // directly in the array: looked at with its other names
            const std::string folder = join_key(path, key.substr(0, slash));
            if (!check_name(path, folder, key.substr(slash + 1))) {
                add_stray(path, join_key(path, key), "a file among the chunks that is none");
            }
        };
        const auto in_the_way = [&](const Index* index, const std::string& key, const std::string& text) {
            if (index != nullptr && !in_grid(loaded.grid, *index)) {
                return add_outside(path, loaded, *index, join_key(path, key));
            }
            add({.remedy = index != nullptr ? Remedy::set_aside : Remedy::none,
                 .node = path,
                 .key = join_key(path, key),
                 .chunk = index != nullptr ? std::optional(*index) : std::nullopt,
                 .text = text});
        };
        for_each_stored(array, loaded, {.each = each, .stray = stray, .in_the_way = in_the_way});
        report_.chunks += std::ssize(stored);
        report_.missing += loaded.grid.chunk_count() - std::ssize(stored);
        report_.bytes += bytes;
        if (stored.empty()) return;

        const std::uint64_t memory = options_.io.max_memory == 0 ? default_memory : options_.io.max_memory;
        const std::uint64_t need = check_memory(loaded, largest);
        if (need > memory) {
            add({.kind = FindingKind::unchecked,
                 .node = path,
                 .key = join_key(path, array.dialect->metadata_key),
                 .text =
                     fmt::format("its chunks were not decoded: one takes {} bytes of memory, the budget is {}; give "
                                 "at least --max-memory {}M",
                                 need, memory, (need >> 20U) + 1)});
            return;
        }
        IoOptions outer = options_.io;
        outer.threads = static_cast<int>(
            std::min<std::uint64_t>(memory / need, static_cast<std::uint64_t>(thread_count(options_.io))));
        Progress* const progress = options_.io.progress;
        if (progress != nullptr) progress->start(static_cast<std::int64_t>(bytes), array.name);
        decode_chunks(path, array, loaded, stored, outer);
    }

    /// Those of these numbers, in parallel.
    void decode_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                       const std::vector<std::int64_t>& stored, IoOptions outer) {
        IoOptions within = outer;
        // Few shards are taken one after another, and all threads work on the chunks of each.
        const bool few = loaded.pipeline.shard() != nullptr && std::ssize(stored) < outer.threads;
        (few ? outer : within).threads = 1;
        Progress* const progress = options_.io.progress;
        std::mutex mutex;
        std::vector<std::int64_t> alone;  // those that took too much memory beside others
        const auto check = [&](std::int64_t n, bool beside_others) {
            const Index index = loaded.grid.index(stored[static_cast<std::size_t>(n)]);
            const CheckedChunk checked = check_chunk(array, loaded, index, within);
            if (beside_others &&
                std::ranges::any_of(checked.bad, [](const CheckedChunk::Bad& bad) { return bad.fault.over_budget; })) {
                const std::lock_guard lock(mutex);
                alone.push_back(n);
                return;
            }
            for (const CheckedChunk::Bad& bad : checked.bad) add_chunk(path, array, loaded, index, bad);
            if (progress != nullptr) progress->advance(static_cast<std::int64_t>(checked.bytes));
        };
        parallel_for(std::ssize(stored), outer, [&](std::int64_t n) { check(n, true); });
        for (const std::int64_t n : alone) {
            if (outer.stop.stop_requested()) throw cancelled("stopped on request");
            check(n, false);
        }
    }

    void add_outside(const std::string& path, const LoadedArray& loaded, const Index& index, const std::string& key) {
        add({.kind = FindingKind::leftover,
             .remedy = Remedy::set_aside,
             .node = path,
             .key = key,
             .chunk = index,
             .text = fmt::format("a chunk outside the array, whose shape is {}", loaded.grid.shape().to_string())});
    }

    void add_chunk(const std::string& path, const ArrayState& array, const LoadedArray& loaded, const Index& index,
                   const CheckedChunk::Bad& bad) {
        const Remedy remedy = bad.trailing > 0 ? Remedy::cut_off
                              : bad.inner      ? Remedy::rewrite_shard
                                               : Remedy::set_aside;
        add({.kind = bad.fault.kind,
             .remedy = bad.fault.kind == FindingKind::damage ? remedy : Remedy::none,
             .node = path,
             .key = below(array.chunk_key(loaded, index)),
             .chunk = index,
             .inner = bad.inner,
             .text = bad.fault.text});
    }

    // ---- seals

    void check_seal(const std::string& path) {
        const std::string manifest = join_key(path, seal_key);
        SealState state;
        if (!guarded({.node = path, .key = manifest}, [&] { state = seal_state(*store_, place(path), options_.io); })) {
            return;
        }
        if (!state.present) return;
        ++report_.seals;
        report_.sealed += state.unchanged;
        struct Row {
            const std::vector<std::string>& files;
            FindingKind kind;
            std::string_view what;
        };
        for (const Row& row : {Row{state.changed, FindingKind::changed, "is not as it was sealed"},
                               Row{state.missing, FindingKind::lost, "was sealed and is missing"},
                               Row{state.added, FindingKind::added, "was added after the seal"}}) {
            for (const std::string& file : row.files) {
                add({.kind = row.kind, .node = path, .key = join_key(path, file), .text = std::string(row.what)});
            }
        }
    }

    void check_snapshot(const std::string& path) {
        const auto state = snapshot_state(*store_, place(path), options_.io);
        if (!state) return;
        for (const std::string& file : state->changed) {
            add({.node = path,
                 .key = join_key(path, file),
                 .text = "is not as it was when the snapshot was made: another program changed it in place"});
        }
        for (const std::string& file : state->missing) {
            add({.node = path,
                 .key = join_key(path, file),
                 .text = "was there when the snapshot was made, and is gone"});
        }
        const std::string files = join_key(path, snapshot_files_key);
        if (!state->untold.empty()) {
            add({.kind = FindingKind::unchecked,
                 .node = path,
                 .key = files,
                 .text =
                     fmt::format("not one of its {} files has the time that it had when the snapshot was made, though "
                                 "{} have their sizes: it was copied without the times (cp -r; cp -a keeps them), "
                                 "and no sums tell whether they hold the same; `tessera snapshot PATH accept NAME` "
                                 "takes them as they are",
                                 state->files, state->untold.size())});
        }
        if (state->moved > 0) {
            add({.kind = FindingKind::note,
                 .node = path,
                 .key = files,
                 .text = fmt::format("{} files have other times than when the snapshot was made, and the same content",
                                     state->moved)});
        }
    }

    std::shared_ptr<KeyValueStore> store_;
    mutable int deeper_looks_ = 10'000;  ///< that chunk_named() may still take below the folder that it is asked for
    std::string root_;
    const VerifyOptions& options_;
    FolderWalk walk_;  ///< over the nodes
    std::mutex mutex_;
    VerifyReport report_;
};

}  // namespace

std::string_view kind_name(FindingKind kind) {
    constexpr std::array<std::string_view, 7> names{"damage",    "changed",  "lost", "added",
                                                    "unchecked", "leftover", "note"};
    return names[static_cast<std::size_t>(kind)];
}

bool is_harmless(FindingKind kind) {
    return kind == FindingKind::leftover || kind == FindingKind::note;
}

std::int64_t VerifyReport::count(FindingKind kind) const {
    return std::ranges::count(findings, kind, &Finding::kind);
}

bool VerifyReport::sound() const {
    return std::ranges::all_of(findings, [](const Finding& f) { return is_harmless(f.kind); });
}

VerifyReport verify(const std::shared_ptr<KeyValueStore>& store, std::string_view prefix,
                    const VerifyOptions& options) {
    VerifyReport report = Verifier(store, prefix, options).run();
    if (report.arrays == 0 && report.groups == 0 && report.findings.empty()) {
        throw not_found(absence_message(*store, prefix, "array or group"));
    }
    return report;
}

}  // namespace tessera
