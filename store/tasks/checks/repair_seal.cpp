#include "repair_seal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "parity_restore.h"
#include "replace_directory.h"
#include "seal_changes.h"
#include "sealed_file_store.h"
#include "snapshot_record.h"

namespace tessera {

namespace {

/// Restores files from the parity of seals, seal by seal.
class SealMender {
public:
    /// `restored` are the keys of files that were restored before, or would be. They are not restored again.
    SealMender(const PlaceRef& place, const RepairOptions& options, const std::vector<Finding>& findings,
               std::set<std::string> restored = {})
        : place_(place), options_(options), findings_(findings), restored_(std::move(restored)) {}

    /// Whether there is anything to do.
    [[nodiscard]] bool needed() const {
        return std::ranges::any_of(findings_, [&](const Finding& f) { return is_wanted(f); });
    }

    /// Throws invalid_argument if a seal was broken and no files to restore are named.
    void require_named() const {
        if (!options_.to_seal || !options_.to_seal_names.empty()) return;
        for (const Finding& f : findings_) {
            if (!may_be_edit(f) || f.remedy == Remedy::restore || !has_parity(f.node) || !is_broken(f.node)) continue;
            throw invalid_argument(
                "the seal of {} was broken on purpose, so that only files that are named are "
                "restored, such as {}",
                place_.name_of(f.node), f.key);
        }
    }

    /// A seal inside another one covers some of the same files. So if any are restored by the outer one, the inner one
    /// is left for the next round, whose findings say how they are then.
    void run(RepairReport& report) {
        std::set<std::string> nodes;  // outer ones come first
        for (const Finding& finding : findings_) {
            if (is_wanted(finding)) nodes.insert(finding.node);
        }
        std::vector<std::string> changed;
        for (const std::string& node : nodes) {
            const bool stale = std::ranges::any_of(
                changed, [&](const std::string& outer) { return outer.empty() || node.starts_with(outer + '/'); });
            if (stale && !options_.dry_run) continue;
            if (restore(node, report)) changed.push_back(node);
        }
    }

    /// Throws invalid_argument for a name that to_seal cannot restore.
    static void require_names(const RepairOptions& options, const std::vector<Finding>& findings) {
        for (const std::string& name : options.to_seal_names) {
            const bool there = std::ranges::any_of(findings, [&](const Finding& f) {
                return f.key == name && (may_be_edit(f) || f.remedy == Remedy::restore);
            });
            if (there) continue;
            throw invalid_argument("{}: no such file differs from a seal with parity", name);
        }
    }

    /// Keys of files that were restored, or would be.
    [[nodiscard]] const std::set<std::string>& restored() const { return restored_; }

private:
    [[nodiscard]] bool is_wanted(const Finding& finding) const {
        if (restored_.contains(finding.key)) return false;  // two seals may disagree about a file
        if (finding.remedy == Remedy::restore) return true;
        if (!may_be_edit(finding) || !options_.to_seal || !has_parity(finding.node)) return false;
        if (std::ranges::count(options_.to_seal_names, finding.key) > 0) return true;
        return options_.to_seal_names.empty() && !is_broken(finding.node);
    }

    /// Whether a file differs from a seal, perhaps by an edit. Once the seal is broken, a missing file may be an edit,
    /// too.
    static bool may_be_edit(const Finding& finding) {
        return finding.kind == FindingKind::changed || (finding.kind == FindingKind::lost && finding.by_seal);
    }

    [[nodiscard]] bool is_broken(const std::string& node) const {
        return seal_broken({place_.store, place_.key(node)}).has_value();
    }

    [[nodiscard]] bool has_parity(const std::string& node) const {
        const std::string key = join_key(node, parity_folder);
        return std::ranges::any_of(findings_, [&](const Finding& f) { return f.key == key; });
    }

    /// Returns whether it changed anything.
    bool restore(const std::string& node, RepairReport& report) {
        const std::string place = place_.key(node);
        const auto below = [&](const std::string& key) { return node.empty() ? key : key.substr(node.size() + 1); };
        PathSet differing;
        PathSet wanted;
        for (const Finding& finding : findings_) {
            const bool within = node.empty() || finding.key.starts_with(node + '/');
            if (!within || finding.key.empty() || is_harmless(finding.kind)) continue;
            if (options_.dry_run && restored_.contains(finding.key)) continue;
            differing.insert(below(finding.key));
            if (finding.node == node && is_wanted(finding) && finding.key != join_key(node, parity_folder)) {
                wanted.insert(below(finding.key));
            }
        }
        LockedNodes locked;
        if (!options_.dry_run) {
            for (const std::string& path : wanted) place_.store.local_files().require_direct(join_key(place, path));
            locked = lock_nodes({place_.store, place});
        }
        auto restored = restore_from_parity({place_.store, place}, differing, wanted, options_.dry_run, options_.io);
        locked.locks.clear();
        mend_in_snapshots(node, restored);
        for (Restored& one : restored) {
            const std::string key = join_key(node, one.path);
            report.done += one.done ? 1 : 0;
            report.actions.push_back({finding_of(node, key), one.done, std::move(one.text)});
            if (one.done) restored_.insert(key);
        }
        return std::ranges::any_of(restored, &Restored::done);
    }

    /// A snapshot shares the files of chunks that have not changed since, and so their damage.
    void mend_in_snapshots(const std::string& node, std::vector<Restored>& restored) {
        if (!place_.store.local_files().folder_id("") || as_sealed_file(place_.store) != nullptr) return;
        std::vector<MendedFile> files;
        std::vector<Restored*> of;
        for (Restored& one : restored) {
            // The snapshot keeps an edited file.
            const bool edit = may_be_edit(finding_of(node, join_key(node, one.path)));
            if (one.kept.empty() || edit) continue;
            files.push_back({one.path, one.kept, one.stamp});
            of.push_back(&one);
        }
        if (files.empty()) return;
        mend_snapshots(std::filesystem::path(place_.store.name()) / place_.key(node), files);
        for (std::size_t i = 0; i < files.size(); ++i) {
            if (files[i].snapshots.empty()) continue;
            of[i]->text += fmt::format(", which was the file of {} {}, too: replaced there as well",
                                       files[i].snapshots.size() == 1 ? "snapshot" : "the snapshots",
                                       fmt::join(files[i].snapshots, ", "));
        }
    }

    /// The finding about a key. Parity files have a common one.
    [[nodiscard]] Finding finding_of(const std::string& node, const std::string& key) const {
        for (const Finding& finding : findings_) {
            if (finding.node == node && finding.key == key && is_wanted(finding)) return finding;
        }
        return {.remedy = Remedy::restore, .node = node, .key = key, .text = "is damaged or missing"};
    }

    PlaceRef place_;
    const RepairOptions& options_;
    const std::vector<Finding>& findings_;
    std::set<std::string> restored_;
};

/// Leaves damaged chunks in place if parity covers them but cannot restore them now: their good parts may still help.
/// Leaves sealed consolidated metadata as they are, even if nodes are missing.
void keep_covered(std::vector<Finding>& findings, const std::set<std::string>& sealed) {
    for (Finding& finding : findings) {
        const bool writes = finding.remedy == Remedy::set_aside || finding.remedy == Remedy::rewrite_shard ||
                            finding.remedy == Remedy::cut_off || finding.remedy == Remedy::consolidate;
        const bool covered = std::ranges::any_of(
            sealed, [&](const std::string& node) { return node.empty() || finding.key.starts_with(node + '/'); });
        if (writes && covered) finding.remedy = Remedy::none;
    }
}

/// Whether a finding is there only because metadata of its node are missing or damaged, which parity restores.
bool is_for_want_of_metadata(const Finding& finding, const std::set<std::string>& restored) {
    if (finding.kind != FindingKind::damage || finding.by_seal || finding.remedy != Remedy::none) return false;
    const auto gives = [&](std::string_view document) { return restored.contains(join_key(finding.node, document)); };
    return std::ranges::any_of(dialect_table(), [&](const Dialect* d) {
        return gives(d->metadata_key) || gives(d->group_key) || std::ranges::any_of(d->documents, gives);
    });
}

/// Once metadata are restored, chunks that do not decode show, and are restored in the next round. `findings` become
/// those of a check afterwards. `count` is the number of seals: one inside another takes a round of its own.
void restore_in_rounds(const Place& place, const RepairOptions& options, std::size_t count,
                       std::vector<Finding>& findings, RepairReport& report) {
    std::set<std::string> restored;
    for (std::size_t round = 0; round < count + 3; ++round) {
        SealMender seals(place, options, findings, std::move(restored));
        if (!seals.needed()) return;
        std::erase_if(report.actions, [](const Repaired& r) { return !r.done; });  // it is tried anew
        const std::int64_t before = report.done;
        seals.run(report);
        if (options.dry_run) {
            const auto* beside = as_sealed_file(*place.store);
            const bool whole_file = beside != nullptr && beside->of_file() && !seals.restored().empty();
            std::erase_if(findings, [&](const Finding& f) {
                return whole_file || f.remedy == Remedy::restore || seals.restored().contains(f.key) ||
                       is_for_want_of_metadata(f, seals.restored());
            });
            return;
        }
        restored = seals.restored();
        findings = verify(place, {.io = options.io}).findings;
        if (report.done == before) return;
    }
}

}  // namespace

std::vector<Finding> findings_after_parity(const Place& place, const RepairOptions& options,
                                           std::vector<Finding> findings, std::set<std::string>& nodes,
                                           RepairReport& report) {
    std::set<std::string> sealed;  // nodes with parity
    for (const Finding& finding : findings) {
        if (finding.key == join_key(finding.node, parity_folder)) sealed.insert(finding.node);
    }
    SealMender::require_names(options, findings);
    SealMender(place, options, findings).require_named();
    if (options.to_seal || SealMender(place, options, findings).needed()) {
        nodes.insert(sealed.begin(), sealed.end());
        restore_in_rounds(place, options, sealed.size(), findings, report);
        for (Finding& f : findings) {
            if (f.remedy == Remedy::restore) f.remedy = Remedy::none;  // it was tried
        }
        // A file that could not be restored is reported once.
        std::erase_if(findings, [&](const Finding& f) {
            return !is_harmless(f.kind) && std::ranges::any_of(report.actions, [&](const Repaired& r) {
                return !r.done && r.finding.key == f.key;
            });
        });
    }
    keep_covered(findings, sealed);
    return findings;
}

}  // namespace tessera
