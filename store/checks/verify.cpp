#include <tessera/action.h>
#include <tessera/verify.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/repair.h>
#include <tessera/seal.h>
#include <tessera/snapshot.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "bag_state.h"
#include "batch.h"
#include "destination_lock_file.h"
#include "keys.h"
#include "metadata_json.h"
#include "sealed_file_store.h"
#include "snapshot_record.h"
#include "verifier.h"

namespace tessera {

namespace {

/// Whether a name is that of a chunk, or of a folder of chunks, in any format but zmeta: "3", "3.0", "c.3.0". Stricter
/// than looks_like_chunk(), because such a name makes a plain folder a lost array.
bool is_chunk_name(std::string_view name) {
    if (name.starts_with("c.")) name.remove_prefix(2);
    bool digit = false;
    for (const char c : name) {
        if (c == '.' ? !digit : c < '0' || c > '9') return false;
        digit = c != '.';
    }
    return digit;
}

/// The folder of a dialect's chunks; empty if they lie in the array's own.
std::string chunk_folder(const Dialect& dialect) {
    std::string folder = dialect.default_keys().prefix;
    if (folder.ends_with('/')) folder.pop_back();
    return folder;
}

/// Whether a folder of this name, with chunks in it, may belong to a lost array: "c".
bool is_chunk_folder(std::string_view name) {
    return std::ranges::any_of(dialect_table(),
                               [&](const Dialect* d) { return !d->own_folder && chunk_folder(*d) == name; });
}

/// Whether only folders of chunks have this name.
bool is_own_folder(std::string_view name) {
    return std::ranges::any_of(dialect_table(),
                               [&](const Dialect* d) { return d->own_folder && chunk_folder(*d) == name; });
}

/// The metadata documents of the formats that have no such folder.
std::vector<std::string_view> lost_metadata() {
    std::vector<std::string_view> keys;
    for (const Dialect* dialect : dialect_table()) {
        if (!dialect->own_folder) keys.push_back(dialect->metadata_key);
    }
    return keys;
}

}  // namespace

VerifyReport Verifier::run() {
    while (walk_.next()) {
        const std::string path = walk_.path();
        guarded({.node = path}, [&] { check_node(path); });
    }
    for (const PassedFolder& passed : walk_.passed()) check_passed(passed);
    for (const std::string& path : maybe_sealed_) {
        const bool sealed = check_seal(path);
        // The seal of a bag covers what its manifests list.
        const bool covered = sealed && path.empty() && as_sealed_file(*store_) != nullptr;
        if (!covered && std::ranges::count(bags_, path) > 0) check_bag(path);
    }
    if (!bags_.empty()) leave_bags();
    if (report_.absent > 0) forget_absent_in_seals();
    // The worst come first, then by key, so that the order does not depend on the threads.
    std::ranges::stable_sort(report_.findings, {}, [](const Finding& f) {
        return std::tuple(f.kind, std::string_view(f.key.empty() ? f.node : f.key));
    });
    return std::move(report_);
}

VerifyReport Verifier::run_beside(VerifyReport found) {
    report_ = std::move(found);
    Listing own;
    const std::string folder(own_folder);
    if (guarded({.node = {}, .key = folder}, [&] { own = store_->list(folder); })) {
        check_manifest_place("", own);
        check_seal("");
    }
    std::ranges::stable_sort(report_.findings, {}, &Finding::kind);
    return std::move(report_);
}

void Verifier::add(Finding finding) {
    // A report shows the key of each finding. So the file's name is removed from a read error that begins with it.
    const std::string named = join_key(store_->name(), place(finding.key)) + ": ";
    if (!finding.key.empty() && finding.text.starts_with(named)) finding.text.erase(0, named.size());
    const std::lock_guard lock(mutex_);
    report_.findings.push_back(std::move(finding));
}

void Verifier::check_node(const std::string& path) {
    const std::string prefix = place(path);
    // The chunks of an array may be too many to list them.
    std::vector<std::string> folders;
    store_->for_each(
        prefix, [](std::string_view, const auto&) {}, [&](std::string_view name, bool) { folders.emplace_back(name); });
    std::ranges::sort(folders);
    check_temporaries(path, path);
    const bool own_is_whole = check_place(path, join_key(path, own_folder));
    const bool unfinished = own_is_whole && holds(folders, own_folder) && check_own(path);
    if (const Dialect* dialect = probe_dialect(*store_, prefix)) {
        check_array(path, *dialect, folders);
    } else {
        check_group(path, probe_group_dialect(*store_, prefix), walk_.listing(), unfinished);
    }
    if (!own_is_whole) return;
    if (options_.seals) maybe_sealed_.push_back(path);
    check_snapshot(path);
}

void Verifier::check_passed(const PassedFolder& passed) {
    if (passed.why == PassedFolder::Why::too_deep) {
        add({.kind = FindingKind::unchecked,
             .node = passed.path,
             .text =
                 fmt::format("folders are nested deeper than {}: what lies there is not looked at", deepest_folder)});
    } else if (passed.why == PassedFolder::Why::elsewhere) {
        add({.kind = FindingKind::note,
             .node = passed.path,
             .text = fmt::format("a symbolic link to {}, which is no array and no group with metadata: it is not "
                                 "followed",
                                 passed.target)});
    }
}

bool Verifier::check_place(const std::string& node, const std::string& key) {
    return guarded({.remedy = Remedy::remove_foreign, .node = node, .key = key},
                   [&] { (void)store_->stamp(place(key)); });
}

void Verifier::check_group(const std::string& path, const Dialect* dialect, const Listing& listing, bool unfinished) {
    if (unfinished) return;  // its files are no array yet
    bool orphans = false;
    if (is_bag(listing)) bags_.push_back(path);
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
        if (orphans && (is_chunk_name(name) || is_chunk_folder(name)) && !probe_node(*store_, place(child))) continue;
        if (check_own_folder(path, name)) continue;
        if (!name.starts_with('.') || probe_node(*store_, place(child))) {
            walk_.enter(name);
        } else if (dialect != nullptr) {
            add_stray(path, child, "a directory that is no part of the group");
        }
    }
}

void Verifier::check_group_documents(const std::string& path, const Dialect& dialect) {
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
        (void)current_fault();  // the document of a node, which reports it
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

void Verifier::check_attributes(const std::string& path, const Dialect& dialect) {
    guarded({.node = path, .key = join_key(path, dialect.documents.back())},
            [&] { (void)dialect.load_attributes(*store_, place(path)); });
}

bool Verifier::check_orphans(const std::string& path, const Listing& listing) {
    for (const Dialect* dialect : dialect_table()) {
        if (dialect->common_key) continue;
        for (const std::string_view document : dialect->documents) {
            if (document == dialect->metadata_key || !holds(listing.keys, document)) continue;
            add({.node = path,
                 .key = join_key(path, document),
                 .text = fmt::format("{} is there, but {} is missing: neither an array nor a group opens here",
                                     document, dialect->metadata_key)});
        }
        if (dialect->own_folder && holds(listing.prefixes, chunk_folder(*dialect))) {
            add({.node = path,
                 .key = join_key(path, dialect->metadata_key),
                 .text = fmt::format("{}/ with chunks is there, but {} is missing: no array opens here",
                                     chunk_folder(*dialect), dialect->metadata_key)});
        }
    }
    if (is_own_folder(path.substr(path.rfind('/') + 1))) return false;  // reported for the folder that contains it
    const std::string chunk = chunk_named(path);
    if (chunk.empty()) return false;
    add({.node = path,
         .key = join_key(path, chunk),
         .text = fmt::format("is named like a chunk, but the array's metadata ({}) are missing: no array opens here",
                             fmt::join(lost_metadata(), ", "))});
    return true;
}

std::string Verifier::chunk_named(const std::string& path) const {
    std::string folder;
    for (int depth = 0; depth <= max_rank; ++depth) {
        const std::string prefix = place(join_key(path, folder));
        if (depth > 0 && (deeper_looks_ == 0 || probe_node(*store_, prefix))) return "";
        if (depth > 0) --deeper_looks_;
        const Listing listing = store_->list(prefix);
        const auto key = std::ranges::find_if(listing.keys, [](const auto& name) { return is_chunk_name(name); });
        if (key != listing.keys.end()) return join_key(folder, *key);
        const auto next = std::ranges::find_if(listing.prefixes, [&](const std::string& name) {
            return is_chunk_name(name) || (depth == 0 && is_chunk_folder(name));
        });
        if (next == listing.prefixes.end()) return "";
        folder = join_key(folder, *next);
    }
    return "";
}

void Verifier::add_stray(const std::string& node, const std::string& key, std::string_view what) {
    add({.kind = FindingKind::note, .node = node, .key = key, .text = fmt::format("{}; it is left alone", what)});
}

bool Verifier::check_name(const std::string& node, const std::string& folder, std::string_view name) {
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

bool Verifier::check_own_folder(const std::string& node, const std::string& name) {
    if (!is_own_name(name)) return false;
    if (name == own_folder) return true;
    add({.kind = FindingKind::leftover,
         .node = node,
         .key = join_key(node, name),
         .text = "what an interrupted copy, bag or replacement built or put aside; remove it when what it was to "
                 "become is as it should be"});
    return true;
}

bool Verifier::check_own(const std::string& path) {
    const std::string own = join_key(path, own_folder);
    const Listing listing = store_->list(place(own));
    check_temporaries(path, own);
    for (const std::string_view name : {"lock", "batch", "damaged", "undo", "log"})
        check_place(path, join_key(own, name));
    if (holds(listing.prefixes, "undo")) {
        for (const std::string_view name : {"undo/journal", "undo/changes"}) check_place(path, join_key(own, name));
    }
    for (const std::string& name : listing.prefixes) check_own_part(path, join_key(own, name), name);
    if (options_.seals) check_manifest_place(path, listing);
    if (!holds(listing.keys, unfinished_marker_key.substr(unfinished_marker_key.rfind('/') + 1))) return false;
    // By itself nothing opens it. Beside sound arrays it is only left over, as is the mark of one that was completed.
    const bool alone = path.empty() && probe_dialect(*store_, place(path)) == nullptr;
    add({.kind = alone ? FindingKind::damage : FindingKind::leftover,
         .node = path,
         .key = join_key(path, unfinished_marker_key),
         .text = "an unfinished copy",
         .advice = {{Action::resume, "goes on with it where it was begun"}, {Action::overwrite, "starts afresh"}}});
    return true;
}

void Verifier::check_own_part(const std::string& node, const std::string& key, std::string_view name) {
    if (name == "batch") {
        check_temporaries(node, key);
        if (check_place(node, join_key(key, "journal"))) check_batch(node, key);
    } else if (name == "damaged") {
        add({.kind = FindingKind::note,
             .node = node,
             .key = key,
             .text = set_aside_text(node),
             .advice = {{Action::drop_damaged, "deletes it"}}});
    }
}

std::string Verifier::set_aside_text(const std::string& node) const {
    const SetAside size = set_aside_in(*store_, place(node));
    return fmt::format("what repair set aside: {} files, {} bytes", size.files, size.bytes);
}

void Verifier::check_batch(const std::string& node, const std::string& key) {
    Finding finding{.kind = FindingKind::leftover,
                    .remedy = Remedy::discard_batch,
                    .node = node,
                    .key = key,
                    .text = "a batch of edits that was never committed, or that somebody is making now"};
    if (holds(store_->list(place(key)).keys, "journal")) {
        finding.remedy = Remedy::finish_batch;
        try {
            if (!batch_takes_effect(*store_, place(node))) {
                finding.remedy = Remedy::discard_batch;
                return add(std::move(finding));
            }
            finding.text = fmt::format(
                "pending: a batch of edits that is committed but not yet in place ({}); the next opening for "
                "writing finishes it: {}",
                pending_batch(*store_, place(node)), pending_text(*store_, place(node)));
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            const bool newer = e.code() == ErrorCode::unsupported;
            finding.kind = newer ? FindingKind::unchecked : FindingKind::damage;
            if (e.code() == ErrorCode::corrupt) finding.remedy = Remedy::set_aside_batch;
            finding.text = e.what();
            finding.advice = e.advice();
        }
    }
    add(std::move(finding));
}

void Verifier::check_temporaries(const std::string& node, const std::string& folder) {
    for (const std::string& name : store_->temporaries(place(folder))) {
        add({.kind = FindingKind::leftover,
             .remedy = Remedy::remove_temporary,
             .node = node,
             .key = join_key(folder, name),
             .text = "a temporary file of a writer that is at work or was killed"});
    }
}

void Verifier::check_snapshot(const std::string& path) {
    const auto state = snapshot_state(*store_, place(path), options_.io);
    if (!state) return;
    for (const std::string& file : state->changed) {
        add({.node = path,
             .key = join_key(path, file),
             .text = "is not as it was when the snapshot was made: it was damaged, or another program changed it in "
                     "place"});
    }
    for (const std::string& file : state->missing) {
        add({.node = path, .key = join_key(path, file), .text = "was there when the snapshot was made, and is gone"});
    }
    const std::string files = join_key(path, snapshot_files_key);
    if (!state->untold.empty()) {
        add({.kind = FindingKind::unchecked,
             .node = path,
             .key = files,
             .text = fmt::format("not one of its {} files has the time that it had when the snapshot was made, though "
                                 "{} have their sizes: it was copied without the times (cp -r; cp -a keeps them), "
                                 "and no sums tell whether they hold the same",
                                 state->files, state->untold.size()),
             .advice = {{Action::accept_snapshot, "takes them as they are", "NAME"}}});
    }
    if (state->moved > 0) {
        add({.kind = FindingKind::note,
             .node = path,
             .key = files,
             .text = fmt::format("{} files have other times than when the snapshot was made, and the same content",
                                 state->moved)});
    }
}

std::int64_t VerifyReport::count(FindingKind kind) const {
    return std::ranges::count(findings, kind, &Finding::kind);
}

bool VerifyReport::sound() const {
    return std::ranges::all_of(findings, [](const Finding& f) { return is_harmless(f.kind); });
}

VerifyReport verify(const std::shared_ptr<KeyValueStore>& store, std::string_view prefix,
                    const VerifyOptions& options) {
    if (const auto* beside = as_sealed_file(*store)) {
        VerifyReport report = verify_with_seal({beside->path(), {}}, options);
        // Sealed files and bags are changed by nothing but a restoration from parity.
        for (Finding& finding : report.findings) {
            if (finding.remedy != Remedy::restore) finding.remedy = Remedy::none;
        }
        return report;
    }
    VerifyReport report = Verifier(store, prefix, options).run();
    if (report.arrays == 0 && report.groups == 0 && report.findings.empty()) {
        throw absence(*store, prefix, "array or group");
    }
    return report;
}

}  // namespace tessera
