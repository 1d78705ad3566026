#include <tessera/verify.h>

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/own_names.h>
#include <tessera/shard.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "batch.h"
#include "check_batch.h"
#include "check_chunk.h"
#include "copy_bytes.h"
#include "destination_lock_file.h"
#include "move_aside.h"
#include "remove_array.h"
#include "repair_copy.h"
#include "repair_seal.h"
#include "resize.h"
#include "sealed_file_store.h"
#include "stored_record.h"

namespace tessera {

namespace {

/// What became of one finding.
struct Outcome {
    bool done = false;
    std::string text;
    bool loses = false;  ///< elements of the chunk read as the fill value now
};

/// The elements of a damaged chunk inside its array. 0 if they cannot be told.
std::int64_t elements_of(const PlaceView& place, const Finding& finding) {
    const Dialect* dialect = probe_dialect(place);
    if (dialect == nullptr || !finding.chunk) return 0;
    const LoadedArray loaded(load_metadata(*dialect, place));
    if (!in_grid(loaded.grid, *finding.chunk)) return 0;
    const Region chunk = loaded.grid.chunk_region(*finding.chunk);
    const ShardCodec* shard = loaded.pipeline.shard();
    if (!finding.inner || shard == nullptr) return chunk.count();
    const Region part = intersection(loaded.of(*finding.chunk)->pipeline.shard()->grid().chunk_region(*finding.inner),
                                     Region::whole(chunk.extent));
    return part.empty() ? 0 : part.count();
}

bool loses_elements(Remedy remedy) {
    return remedy == Remedy::set_aside || remedy == Remedy::rewrite_shard;
}

/// Whether a batch that could not be given up, for this error, cannot be finished either. A group's journal says only
/// which parts belong to it.
bool is_lost_batch(const PlaceView& place, const Error& e) {
    return e.code() == ErrorCode::corrupt && probe_dialect(place) != nullptr && batch_pending(place) &&
           !ways_out(place).finish;
}

/// Mends the findings in one array or group. Holds an array's shape lock as long as it lives.
class Mender {
public:
    Mender(const Place& place, const RepairOptions& options)
        : place_(place), io_(options.io), give_up_batches_(options.give_up_batches), dialect_(probe_dialect(place_)) {
        if (dialect_ == nullptr) return;
        lock_ = place.store->lock(place_.prefix, 0, LockMode::exclusive);
        array_ = std::make_unique<ArrayState>(place.store, place_.prefix, *dialect_);
    }

    /// `key` is the finding's key in the store.
    Outcome mend(const Finding& finding, const std::string& key) {
        switch (finding.remedy) {
            case Remedy::remove_temporary:
                return remove_temporary(key);
            case Remedy::finish_batch:
                return end_batch();
            case Remedy::set_aside_batch:
                return set_aside_batch();
            case Remedy::discard_batch:
                return discard_batch(key);
            case Remedy::set_aside:
            case Remedy::rewrite_shard:
            case Remedy::cut_off:
                return mend_chunk(finding, key);
            case Remedy::consolidate:
                return consolidate();
            case Remedy::finish_removal:
                return finish_removal();
            case Remedy::remove_foreign:  // findings_without_foreign() did it
            case Remedy::restore:         // findings_after_parity() did it
            case Remedy::none:
                break;
        }
        return {};
    }

private:
    Outcome consolidate() {
        try {
            Group::open(place_).consolidate();
            return {true, "consolidated anew"};
        } catch (const Error& e) {
            if (e.code() != ErrorCode::sealed) throw;
            return {false, "left: it is sealed, and consolidated metadata are part of that"};
        }
    }

    Outcome finish_removal() {
        const StoreLock building = place_.store->lock_destination(place_.prefix);
        if (!is_being_removed(place_)) return {true, "gone by now"};
        remove_array(place_);
        return {true, "removed"};
    }

    Outcome remove_temporary(const std::string& key) {
        const std::size_t slash = key.rfind('/');
        const std::string folder = slash == std::string::npos ? "" : key.substr(0, slash);
        if (place_.store->local_files().remove_temporary(folder, key.substr(slash + 1))) return {true, "removed"};
        if (is_destination_lock(key.substr(slash + 1))) return {false, "left: a run that is at work holds it"};
        return {false,
                "left: its writer may be at work (a process of this machine, or one of another machine), and it was "
                "written to "
                "within the last hour"};
    }

    Outcome end_batch() {
        const StoreLock group_lock =
            dialect_ != nullptr ? StoreLock() : place_.store->lock(place_.prefix, 0, LockMode::exclusive);
        try {
            if (!give_up_batches_) {
                if (!ways_out(place_).finish) return {false, "left: it cannot be finished"};
                require_staged_whole(place_, io_);
                finish_batch(place_);
                return {true, "finished"};
            }
            const std::string_view document = dialect_ == nullptr ? "" : dialect_->metadata_key;
            const std::int64_t changed = give_up_batch(place_, document);
            return {true, fmt::format("taken back: {} put back or removed", changed)};
        } catch (const Error& e) {
            if (give_up_batches_ && e.code() == ErrorCode::unsupported) return set_aside_batch();  // a newer journal
            if (give_up_batches_ && is_lost_batch(place_, e)) {
                Outcome aside = set_aside_batch();
                return {false, fmt::format("{}; {}", e.what(), aside.text)};
            }
            return {false, e.what()};
        }
    }

    Outcome set_aside_batch() {
        if (!batch_pending(place_)) return {true, "gone by now"};
        return {true, fmt::format("set aside as {}; its changes that were already in place stay",
                                  tessera::set_aside_batch(place_))};
    }

    Outcome discard_batch(const std::string& key) {
        // No batch is alive: it would hold the shape lock, which is held here, or far away the lease.
        const StoreLock lease = place_.store->is_far() ? place_.store->lock_destination(place_.prefix) : StoreLock();
        if (batch_pending(place_)) {
            if (batch_takes_effect(place_)) return {false, "left: it was committed meanwhile"};
            finish_batch(place_);  // a part of a batch over a group, of which nothing takes effect
        }
        place_.store->erase_below(key);
        return {true, "discarded: it was never committed"};
    }

    // ---- chunks

    Outcome mend_chunk(const Finding& finding, const std::string& key) {
        const LoadedArray& loaded = load();
        if (!in_grid(loaded.grid, *finding.chunk)) return set_aside(key);
        const CheckedChunk checked = check_chunk(*array_, loaded, *finding.chunk, io_);
        std::set<std::size_t> bad;  // their numbers in the shard
        const auto own = loaded.of(*finding.chunk);
        for (const CheckedChunk::Bad& one : checked.bad) {
            if (one.fault.kind != FindingKind::damage) return {false, "left: " + one.fault.text};
            if (one.trailing > 0) return cut_off(key, one.trailing);
            if (!one.inner) return set_aside(key);
            bad.insert(own->pipeline.shard()->number(*one.inner));
        }
        if (bad.empty()) return {true, "whole by now: it was written anew meanwhile"};
        return rewrite_shard(loaded, *finding.chunk, key, bad);
    }

    const LoadedArray& load() {
        if (!loaded_) loaded_ = std::make_unique<LoadedArray>(load_metadata(*dialect_, place_));
        return *loaded_;
    }

    /// A free key in .tessera/damaged.
    [[nodiscard]] std::string aside_key(const std::string& key) const { return tessera::aside_key(place_, key); }

    Outcome set_aside(const std::string& key) {
        const std::string aside = aside_key(key);
        ErasedNotes(place_).add({&key, 1});
        if (!place_.store->replace(key, aside)) return {true, "gone by now"};
        return {true, fmt::format("set aside as {}", aside), true};
    }

    /// The chunk without its last `trailing` bytes. The old file is kept first, as a shard is.
    Outcome cut_off(const std::string& key, std::uint64_t trailing) {
        const auto old = place_.store->open(key);
        if (old == nullptr) return {true, "gone by now"};
        const std::string aside = keep_aside(key, *old);
        const Buffer bytes = read_range(*old, 0, old->size() - trailing);
        place_.store->put(key, bytes.span());
        return {true, fmt::format("written anew without {} bytes; the old file is {}", trailing, aside)};
    }

    /// Gives a file a second name in .tessera/damaged, which it returns.
    std::string keep_aside(const std::string& key, const ByteSource& old) {
        std::string aside = aside_key(key);
        if (!place_.store->local_files().link(aside, *place_.store, key)) copy_bytes(old, *place_.store, aside);
        return aside;
    }

    /// The old shard gets a second name first, so that a crash leaves it in place.
    Outcome rewrite_shard(const LoadedArray& loaded, const Index& index, const std::string& key,
                          const std::set<std::size_t>& bad) {
        const auto own = loaded.of(index);
        const ShardCodec& codec = *own->pipeline.shard();
        std::shared_ptr<const ByteSource> old = place_.store->open(key);
        if (old == nullptr) return {true, "gone by now"};
        const std::string aside = keep_aside(key, *old);
        ShardWriter writer(codec, std::make_unique<const Shard>(codec, std::move(old)),
                           Region::whole(loaded.grid.chunk_region(index).extent),
                           [&] { return place_.store->create(key); });
        writer.write(
            Region::whole(codec.grid().grid()),
            [&](const Index& inner, const ShardWriter::ChunkMemory& memory) -> std::optional<ArrayView> {
                if (!bad.contains(codec.number(inner))) return std::nullopt;
                return memory(false);  // the fill
            },
            io_);
        if (writer.empty()) {
            ErasedNotes(place_).add({&key, 1});
            place_.store->erase(key);
        } else {
            ErasedNotes(place_).add_inner(key, writer.dropped());
            writer.finish();
        }
        return {true, fmt::format("written anew without {} damaged chunks; the old shard is {}", bad.size(), aside),
                true};
    }

    Place place_;
    IoOptions io_;
    bool give_up_batches_;
    const Dialect* dialect_;
    StoreLock lock_;
    std::unique_ptr<ArrayState> array_;
    std::unique_ptr<const LoadedArray> loaded_;
};

Outcome plan_for_batch(const Place& place, const RepairOptions& options) {
    const bool give_up = options.give_up_batches;
    try {
        if (give_up) return {true, "would be taken back: " + giving_up_batch(place)};
        require_staged_whole(place, options.io);
        return {true, "would be finished: " + pending_batch(place)};
    } catch (const Error& e) {
        if (give_up && e.code() == ErrorCode::unsupported) return {true, "would be set aside in .tessera/damaged"};
        if (give_up && is_lost_batch(place, e)) {
            return {false, fmt::format("{}; would be set aside in .tessera/damaged; its changes that were already in "
                                       "place would stay",
                                       e.what())};
        }
        return {false, e.what()};
    }
}

std::string_view plan(Remedy remedy) {
    switch (remedy) {
        case Remedy::remove_temporary:
            return "would be removed, unless its writer may be alive";
        case Remedy::finish_batch:
            break;  // plan_for_batch
        case Remedy::discard_batch:
            return "would be discarded";
        case Remedy::set_aside_batch:
        case Remedy::set_aside:
            return "would be set aside in .tessera/damaged";
        case Remedy::rewrite_shard:
            return "its shard would be written anew without it, and the old one set aside in .tessera/damaged";
        case Remedy::cut_off:
            return "would be written anew without what follows it, and the old file set aside in .tessera/damaged";
        case Remedy::consolidate:
            return "would be consolidated anew";
        case Remedy::finish_removal:
            return "would be removed to the end";
        case Remedy::remove_foreign:
            return "would be removed; what a link leads to stays";
        case Remedy::restore:  // restore_from_parity() says it
        case Remedy::none:
            break;
    }
    return "";
}

using Findings = std::map<std::string, std::vector<Finding>, std::greater<>>;

/// Called before anything is mended. Throws if a finding lies behind a link that must not be followed.
void require_direct(const PlaceView& place, const std::vector<Finding>& findings) {
    std::set<std::string> removed;
    for (const Finding& f : findings) {
        if (f.remedy == Remedy::remove_foreign) removed.insert(place.key(f.key));
    }
    for (const Finding& finding : findings) {
        // Restoring checks the same for its files.
        if (finding.remedy == Remedy::none || finding.remedy == Remedy::restore) continue;
        const std::string own = join_key(place.key(finding.node), own_folder);
        place.store.local_files().require_direct(place.key(finding.key));
        if (finding.remedy == Remedy::remove_foreign) continue;
        place.store.local_files().require_direct(own);
        const bool sets_aside = finding.remedy == Remedy::set_aside || finding.remedy == Remedy::rewrite_shard ||
                                finding.remedy == Remedy::cut_off;
        if (sets_aside && !removed.contains(own + "/damaged"))
            place.store.local_files().require_direct(own + "/damaged/" + finding.key);
    }
}

/// Counts the files set aside in these nodes, and deletes them if that was requested.
void count_set_aside(const PlaceRef& at, const std::set<std::string>& nodes, const RepairOptions& options,
                     RepairReport& report) {
    for (const std::string& node : nodes) {
        const std::string place = at.key(node);
        if (!options.drop_damaged) {
            report.set_aside += set_aside_in({at.store, place});
        } else {
            report.dropped += options.dry_run ? set_aside_in({at.store, place}) : drop_set_aside({at.store, place});
        }
    }
}

/// Whether a link or another thing has the place of one of Tessera's own files. Throws the error of any other failure.
bool is_foreign(const ReadableStore& store, const std::string& key) {
    try {
        (void)store.stamp(key);
        return false;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return true;
    }
}

/// Removes links and other things in the places of Tessera's own files, and their findings. Takes no lock, because the
/// lock file may be one of them.
void remove_foreign(const PlaceRef& place, std::vector<Finding>& findings, RepairReport& report, bool dry_run) {
    const auto others = std::stable_partition(findings.begin(), findings.end(),
                                              [](const Finding& f) { return f.remedy == Remedy::remove_foreign; });
    for (auto finding = findings.begin(); finding != others; ++finding) {
        const std::string key = place.key(finding->key);
        const bool there = is_foreign(place.store, key);
        if (!dry_run && there) place.store.erase(key);
        ++report.done;
        const std::string text(!there    ? "nothing is in the way any more"
                               : dry_run ? plan(finding->remedy)
                                         : "removed; what a link leads to stays");
        report.actions.push_back({std::move(*finding), true, text});
    }
    findings.erase(findings.begin(), others);
}

/// Verifies, and first of all removes what is foreign. Behind it nothing was looked at, such as a seal whose parity has
/// a link in its place. So everything is looked at again afterwards.
std::vector<Finding> findings_without_foreign(const Place& place, const RepairOptions& options,
                                              std::set<std::string>& nodes, RepairReport& report) {
    constexpr int most = 4;  // more appears only while somebody puts it there
    std::vector<Finding> findings = verify(place, {.io = options.io}).findings;
    for (int round = 0; round < most; ++round) {
        bool any = false;
        for (const Finding& finding : findings) {
            if (finding.remedy != Remedy::remove_foreign) continue;
            nodes.insert(finding.node);
            any = true;
        }
        if (!any) break;
        if (!options.dry_run) require_direct(place, findings);
        remove_foreign(place, findings, report, options.dry_run);
        if (options.dry_run) break;
        findings = verify(place, {.io = options.io}).findings;
    }
    return findings;
}

/// Ends the batches over groups, before those of their arrays, which are parts of them: outer groups first. Takes them
/// out of the findings, and returns the groups.
std::set<std::string> end_group_batches(const Place& here, const RepairOptions& options, Findings& by_node,
                                        RepairReport& report) {
    std::set<std::string> groups;
    for (auto at = by_node.rbegin(); at != by_node.rend(); ++at) {
        auto& [node, findings] = *at;
        const std::string place = here.key(node);
        const auto batch = std::ranges::find(findings, Remedy::finish_batch, &Finding::remedy);
        if (batch == findings.end() || probe_dialect({*here.store, place}) != nullptr) continue;
        const Outcome last = options.dry_run ? plan_for_batch({here.store, place}, options)
                                             : Mender({here.store, place}, options).mend(*batch, here.key(batch->key));
        if (!last.done) batch->kind = FindingKind::damage;  // nobody can write any more
        report.done += last.done ? 1 : 0;
        report.actions.push_back({std::move(*batch), last.done, last.text});
        findings.erase(batch);
        groups.insert(node);
    }
    return groups;
}

}  // namespace

std::int64_t RepairReport::lost() const {
    std::int64_t elements = 0;
    for (const Repaired& one : actions) elements += one.lost;
    return elements;
}

bool RepairReport::mended() const {
    return lost() == 0 && std::ranges::all_of(remaining, is_harmless, &Finding::kind) &&
           std::ranges::all_of(actions, [](const Repaired& r) { return r.done || is_harmless(r.finding.kind); });
}

namespace {

/// A batch comes first, because it may change the other findings.
bool is_batch(const Finding& finding) {
    return finding.remedy == Remedy::finish_batch || finding.remedy == Remedy::set_aside_batch;
}

/// What would be done about a finding of a node.
Outcome planned(const Place& place, const std::string& node, const std::set<std::string>& groups,
                const Finding& finding, const RepairOptions& options) {
    if (finding.remedy != Remedy::finish_batch) {
        return {true, std::string(plan(finding.remedy)), loses_elements(finding.remedy)};
    }
    const auto is_around = [&](const std::string& group) { return group.empty() || node.starts_with(group + "/"); };
    if (options.give_up_batches && std::ranges::any_of(groups, is_around)) {
        return {true, "would be taken back, with the batch of the group around it if it is a part of that"};
    }
    return plan_for_batch({place.store, place.key(node)}, options);
}

void mend_node(const Place& place, const std::string& node, Findings::mapped_type& findings,
               const std::set<std::string>& groups, const RepairOptions& options, RepairReport& report) {
    std::unique_ptr<Mender> mender;
    if (!options.dry_run) mender = std::make_unique<Mender>(Place(place.store, place.key(node)), options);
    std::stable_partition(findings.begin(), findings.end(), is_batch);
    std::set<std::string> mended;  // a shard is written anew once, however many of its chunks are damaged
    Outcome last;
    for (Finding& finding : findings) {
        const std::string key = place.key(finding.key);
        if (options.dry_run) {
            last = planned(place, node, groups, finding, options);
        } else if (mended.insert(key).second) {
            last = mender->mend(finding, key);
        }
        if (!last.done && is_batch(finding)) finding.kind = FindingKind::damage;  // nobody can write any more
        report.done += last.done ? 1 : 0;
        const std::int64_t lost =
            last.loses && loses_elements(finding.remedy) ? elements_of({*place.store, place.key(node)}, finding) : 0;
        report.actions.push_back({std::move(finding), last.done, last.text, lost});
    }
}

}  // namespace

RepairReport repair(const Place& place, const RepairOptions& options) {
    RepairReport report;
    // By node, groups after their members: mending these may make consolidated metadata stale or fresh.
    Findings by_node;
    std::set<std::string> nodes;  // where files were or may be set aside
    std::vector<Finding> found = findings_without_foreign(place, options, nodes, report);
    found = findings_after_parity(place, options, std::move(found), nodes, report);
    found = findings_after_copy(place, options, std::move(found), nodes, report);
    if (!options.dry_run) require_direct(place, found);
    for (Finding& finding : found) {
        nodes.insert(finding.node);
        if (finding.remedy != Remedy::none) {
            by_node[finding.node].push_back(std::move(finding));
        } else if (finding.kind != FindingKind::note) {
            report.remaining.push_back(std::move(finding));
        }
    }
    const std::set<std::string> groups = end_group_batches(place, options, by_node, report);
    for (auto& [node, findings] : by_node) mend_node(place, node, findings, groups, options, report);
    if (!options.dry_run) place.store->sync();
    count_set_aside(place, nodes, options, report);
    if (const auto* beside = as_sealed_file(*place.store)) {
        for (Repaired& one : report.actions) one.finding.key = beside->shown(one.finding.key);
        for (Finding& finding : report.remaining) finding.key = beside->shown(finding.key);
    }
    return report;
}

}  // namespace tessera
