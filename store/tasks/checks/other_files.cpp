#include "other_files.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/byte_io.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/own_names.h>
#include <tessera/seal.h>
#include <tessera/verify.h>

#include "batch.h"
#include "check_batch.h"
#include "destination_lock_file.h"
#include "keys.h"
#include "remove_array.h"

namespace tessera {

void OtherFiles::add_stray(const std::string& key, std::string_view what) const {
    run_.add({.kind = FindingKind::note, .node = node_, .key = key, .text = fmt::format("{}; it is left alone", what)});
}

bool OtherFiles::check_name(const std::string& folder, std::string_view name) const {
    const std::string key = join_key(folder, name);
    if (name.starts_with(temporary_prefix)) {
        run_.add({.kind = FindingKind::leftover,
                  .node = node_,
                  .key = key,
                  .text = "a temporary file of a writer that was copied along with the rest"});
        return true;
    }
    if (is_destination_lock(name)) {
        run_.add({.kind = FindingKind::leftover,
                  .remedy = Remedy::remove_temporary,
                  .node = node_,
                  .key = key,
                  .text = "the lock file of a run that makes something here now or was killed"});
        return true;
    }
    if (!is_lock_name(name)) return false;
    run_.add({.kind = FindingKind::leftover,
              .node = node_,
              .key = key,
              .text = "a lock file of another program; remove it when no such program has the array open"});
    return true;
}

bool OtherFiles::check_own_folder(const std::string& name) const {
    if (!is_own_name(name)) return false;
    if (name == own_folder) return true;
    run_.add({.kind = FindingKind::leftover,
              .node = node_,
              .key = join_key(node_, name),
              .text = "what an interrupted copy, bag or replacement built or put aside; remove it when what it was to "
                      "become is as it should be"});
    return true;
}

bool OtherFiles::check_place(const std::string& key) const {
    return run_.guarded({.remedy = Remedy::remove_foreign, .node = node_, .key = key},
                        [&] { (void)run_.store->stamp(run_.place(key)); });
}

bool OtherFiles::check_own() const {
    const std::string own = join_key(node_, own_folder);
    const Listing listing = run_.store->list(run_.place(own));
    check_temporaries(own);
    for (const std::string_view name : {"lock", "batch", "damaged", "undo", "log", "fixity.jsonl"})
        check_place(join_key(own, name));
    if (holds(listing.prefixes, "undo")) check_place(join_key(node_, undo_record_key));
    for (const std::string& name : listing.prefixes) check_own_part(join_key(own, name), name);
    if (run_.options.seals) check_manifest_place(listing);
    return check_marker(listing);
}

void OtherFiles::check_manifest_place(const Listing& own) const {
    const std::string_view manifest = seal_key.substr(seal_key.rfind('/') + 1);
    if (!holds(own.prefixes, manifest) || holds(own.prefixes, "parity")) return;
    run_.add({.node = node_,
              .key = join_key(node_, seal_key),
              .text = "a directory in the place of a seal's list of files",
              .advice = {{Action::seal, "sets it aside and seals what is there now"}}});
}

bool OtherFiles::check_marker(const Listing& own) const {
    if (!holds(own.keys, unfinished_marker_key.substr(unfinished_marker_key.rfind('/') + 1))) return false;
    if (is_being_removed({*run_.store, run_.place(node_)})) {
        run_.add({.kind = FindingKind::leftover,
                  .remedy = Remedy::finish_removal,
                  .node = node_,
                  .key = join_key(node_, unfinished_marker_key),
                  .text = "an array whose removal was interrupted"});
        return true;
    }
    // By itself nothing opens it. Beside sound arrays it is only left over, as is the mark of one that was completed.
    const bool alone = node_.empty() && probe_dialect({*run_.store, run_.place(node_)}) == nullptr;
    run_.add(
        {.kind = alone ? FindingKind::damage : FindingKind::leftover,
         .node = node_,
         .key = join_key(node_, unfinished_marker_key),
         .text = "an unfinished copy",
         .advice = {{Action::resume, "goes on with it where it was begun"}, {Action::overwrite, "starts afresh"}}});
    return true;
}

void OtherFiles::check_own_part(const std::string& key, std::string_view name) const {
    if (name == "batch") {
        check_temporaries(key);
        if (check_place(join_key(key, "journal"))) check_batch(key);
    } else if (name == "damaged") {
        run_.add({.kind = FindingKind::note,
                  .node = node_,
                  .key = key,
                  .text = set_aside_text(),
                  .advice = {{Action::drop_damaged, "deletes it"}}});
    }
}

std::string OtherFiles::set_aside_text() const {
    const SetAside size = set_aside_in({*run_.store, run_.place(node_)});
    return fmt::format("what repair set aside: {} files, {} bytes", size.files, size.bytes);
}

/// Of a batch with a journal.
void OtherFiles::describe_recorded(Finding& finding) const {
    const ReadableStore& store = *run_.store;
    const std::string place = run_.place(node_);
    finding.remedy = Remedy::finish_batch;
    try {
        if (!batch_takes_effect({store, place})) {
            finding.remedy = Remedy::discard_batch;
            return;
        }
        require_staged_whole({run_.store, place}, run_.options.io);
        finding.text = fmt::format(
            "pending: a batch of edits that is committed but not yet in place ({}); the next opening for "
            "writing finishes it: {}",
            pending_batch({store, place}), pending_text({store, place}));
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        const bool newer = e.code() == ErrorCode::unsupported;
        finding.kind = newer ? FindingKind::unchecked : FindingKind::damage;
        // Giving it up needs only its old values.
        if (e.code() == ErrorCode::corrupt && !ways_out({store, place}).give_up) {
            finding.remedy = Remedy::set_aside_batch;
        }
        finding.text = e.what();
        finding.advice = e.advice();
    }
}

void OtherFiles::check_batch(const std::string& key) const {
    Finding finding{.kind = FindingKind::leftover,
                    .remedy = Remedy::discard_batch,
                    .node = node_,
                    .key = key,
                    .text = "a batch of edits that was never committed, or that somebody is making now"};
    if (holds(run_.store->list(run_.place(key)).keys, "journal")) describe_recorded(finding);
    run_.add(std::move(finding));
}

void OtherFiles::check_temporaries(const std::string& folder) const {
    for (const std::string& name : run_.store->local_files().temporaries(run_.place(folder))) {
        run_.add({.kind = FindingKind::leftover,
                  .remedy = Remedy::remove_temporary,
                  .node = node_,
                  .key = join_key(folder, name),
                  .text = "a temporary file of a writer that is at work or was killed"});
    }
}

}  // namespace tessera
