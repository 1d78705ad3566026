// Findings of verify about seals, with or without parity, and about snapshots.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/seal.h>
#include <tessera/snapshot.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bag_state.h"
#include "keys.h"
#include "ocfl_object.h"
#include "other_files.h"
#include "package_state.h"
#include "parity_archive.h"
#include "parity_restore.h"
#include "seal_changes.h"
#include "seal_mark.h"
#include "sealed_file_store.h"
#include "snapshot_record.h"
#include "verify_run.h"

namespace tessera {

namespace {

std::string promise_text(const ParityPromise& promise) {
    if (promise.blocks == 0) return "nothing more can be lost for certain";
    const std::string files =
        promise.files == 0 ? "" : fmt::format(", or any {} file{}", promise.files, promise.files == 1 ? "" : "s");
    return fmt::format("enough to restore any {} bytes in a row{}", promise.run, files);
}

using Difference = std::pair<FindingKind, std::string_view>;
constexpr Difference is_missing{FindingKind::lost, "was sealed and is missing"};
constexpr Difference is_damaged{FindingKind::damage, "is damaged: not as it was sealed"};
constexpr Difference is_changed{FindingKind::changed, "is not as it was sealed"};

void add_files(VerifyRun& run, const std::string& node, const std::vector<std::string>& files, const Difference& what) {
    for (const std::string& file : files) {
        run.add({.kind = what.first, .node = node, .key = join_key(node, file), .text = std::string(what.second)});
    }
}

/// The check of one node by its seal, once the node's files were checked by themselves.
class SealCheck {
public:
    SealCheck(VerifyRun& run, const std::string& node) : run_(run), node_(node) {}

    /// Returns whether there is a seal.
    bool check() {
        const std::string parity = join_key(node_, parity_folder);
        // Such as a link, which repair removes.
        if (!OtherFiles(run_, node_).check_place(parity)) return false;
        if (is_first_unfinished({*run_.store, run_.place(node_)})) note_unfinished(parity);
        const bool read = run_.guarded({.node = node_, .key = join_key(node_, seal_key)}, [&] {
            state_ = seal_state({*run_.store, run_.place(node_)}, run_.options.io);
        });
        if (!read) return true;
        if (!state_.present) return false;
        ++run_.report.seals;
        if (seal_broken({*run_.store, run_.place(node_)})) {
            run_.add(
                {.kind = FindingKind::note,
                 .node = node_,
                 .key = join_key(node_, seal_mark_key),
                 .text = "the seal was broken on purpose: differences may be intended; seal again to accept them"});
        }
        run_.report.sealed += state_.unchanged;
        if (run_.store->list(run_.place(parity)).keys.empty()) {
            add_files(run_, node_, state_.changed, is_changed);
            add_files(run_, node_, state_.missing, is_missing);
            add_added();
        } else {
            run_.guarded({.node = node_, .key = parity}, [&] { check_parity(); });
        }
        return true;
    }

private:
    void add_added() { add_files(run_, node_, state_.added, {FindingKind::added, "was added after the seal"}); }

    void note_unfinished(const std::string& parity) {
        run_.add({.kind = FindingKind::leftover,
                  .node = node_,
                  .key = parity,
                  .text = "a first sealing with parity is at work or was interrupted, and so nothing is sealed with it",
                  .advice = {{Action::seal_with_parity, "begins again"}}});
    }

    void check_parity() {
        const auto archive = ParityArchive::open({*run_.store, run_.place(node_)});
        if (!archive) return;
        const ParityState parity = parity_state(*archive, state_, undecodable(), run_.options.io);
        for (const Differing& file : parity.files) add_differing(file, parity);
        add_added();
        add_parity(*archive, parity);
    }

    /// Files that were found damaged by decoding them, whatever their sums say.
    [[nodiscard]] PathSet undecodable() const {
        PathSet files;
        const auto* beside = as_sealed_file(*run_.store);
        const bool of_file = beside != nullptr && beside->of_file();
        for (const Finding& finding : run_.report.findings) {
            const bool within = node_.empty() || finding.key.starts_with(node_ + '/');
            if (of_file && finding.kind == FindingKind::damage) files.insert(beside->path().filename().string());
            if (of_file || finding.kind != FindingKind::damage || finding.key.empty() || !within) continue;
            files.insert(node_.empty() ? finding.key : finding.key.substr(node_.size() + 1));
        }
        return files;
    }

    void add_differing(const Differing& file, const ParityState& parity) {
        Finding finding{.node = node_, .key = join_key(node_, file.path), .by_seal = true};
        std::tie(finding.kind, finding.text) = file.kind == Differing::Kind::missing   ? is_missing
                                               : file.kind == Differing::Kind::damaged ? is_damaged
                                                                                       : is_changed;
        if (!file.solvable) {
            finding.text += "; more is lost than the parity can give back";
        } else if (parity.broken) {
            finding.text += ", and the seal was broken on purpose";
            finding.advice.push_back({Action::repair_to_seal, "restores it", finding.key});
        } else if (file.kind == Differing::Kind::changed) {
            finding.text += parity.times_prove ? ", perhaps by an edit"
                                               : "; most files have lost the times of the seal, so that an edit cannot "
                                                 "be told from damage";
            finding.advice.push_back({Action::repair_to_seal, "restores it"});
        } else {
            finding.advice.push_back({Action::repair, "restores it from parity"});
            finding.remedy = Remedy::restore;
        }
        run_.add(std::move(finding));
    }

    void add_parity(const ParityArchive& archive, const ParityState& parity) {
        const auto promise = parity_promise({*run_.store, run_.place(node_)}, run_.options.io);
        if (!promise) return;
        Finding finding{.kind = FindingKind::note, .node = node_, .key = join_key(node_, parity_folder)};
        const std::string about = fmt::format("parity of {}", redundancy_text(archive.root().redundancy));
        if (parity.whole()) {
            finding.text = fmt::format("{}, all of it as it was written: {}", about, promise_text(*promise));
        } else if (parity.bad_files == 0 && parity.lost_segments == 0 && archive.is_unfinished()) {
            finding.kind = FindingKind::leftover;
            finding.remedy = Remedy::restore;
            finding.text = fmt::format(
                "a sealing is at work or was interrupted: the files are sealed, and their {} is complete", about);
            finding.advice.push_back({Action::seal, "writes the rest of the seal"});
        } else {
            finding.kind = FindingKind::damage;
            finding.remedy = Remedy::restore;
            finding.text = fmt::format(
                "{}: {} of {} parity blocks in {} files are damaged or missing{}{}; {}", about, parity.bad_blocks,
                parity.blocks, parity.bad_files, parity.roots_good ? "" : ", and so are roots or the manifest",
                parity.lost_segments == 0
                    ? ""
                    : fmt::format(", and {} of {} segments wholly", parity.lost_segments, archive.segments()),
                promise_text(*promise));
        }
        run_.add(std::move(finding));
    }

    VerifyRun& run_;
    const std::string& node_;
    SealState state_;
};

}  // namespace

namespace {

void count_package(VerifyRun& run, const PackageState& state) {
    ++run.report.seals;
    run.report.sealed += state.files.unchanged;
}

/// What the check of a bag or an OCFL object found; `listed` is what lists its files.
void add_package(VerifyRun& run, const std::string& node, const PackageState& state, std::string_view listed) {
    const auto add = [&](FindingKind kind, const std::vector<std::string>& files, const std::string& what) {
        add_files(run, node, files, {kind, what});
    };
    add(FindingKind::changed, state.files.changed, fmt::format("is not as {} says", listed));
    add(FindingKind::lost, state.files.missing, fmt::format("is in {} and is missing", listed));
    add(FindingKind::added, state.files.added, fmt::format("is not in {}", listed));
    const auto add_remarks = [&](FindingKind kind, const std::vector<PackageRemark>& remarks) {
        for (const PackageRemark& remark : remarks) {
            run.add({.kind = kind, .node = node, .key = join_key(node, remark.key), .text = remark.text});
        }
    };
    add_remarks(FindingKind::damage, state.wrong);
    add_remarks(FindingKind::note, state.notes);
}

/// Forgets the files of which another check said what is wrong, such as that of the bag's own seal.
void leave_out_found(const VerifyRun& run, const std::string& node, SealState& files) {
    std::set<std::string_view> found;
    for (const Finding& finding : run.report.findings) {
        if (!is_harmless(finding.kind)) found.insert(finding.key);
    }
    for (auto* const list : {&files.changed, &files.missing, &files.added}) {
        std::erase_if(*list, [&](const std::string& file) { return found.contains(join_key(node, file)); });
    }
}

}  // namespace

void verify_ocfl(VerifyRun& run, const std::string& object) {
    PackageState state;
    const bool read = run.guarded({.node = object}, [&] {
        state = ocfl_state({*run.store, run.place(object)}, run.options.io);
    });
    if (!read) return;
    count_package(run, state);
    add_package(run, object, state, "the object's inventory");
}

bool verify_node_seal(VerifyRun& run, const std::string& node) {
    return SealCheck(run, node).check();
}

void verify_bag(VerifyRun& run, const std::string& bag, bool sealed) {
    // A store of a sealed bag does not show the manifest of tag files.
    const auto* beside = as_sealed_file(*run.store);
    const auto plain = beside == nullptr ? run.store : directory_store(beside->path(), {.read_only = true});
    const Place place(plain, run.place(bag));
    PackageState state;
    const bool read = run.guarded({.node = bag, .key = join_key(bag, bag_manifest)},
                                  [&] { state = bag_state(place, run.options.io); });
    if (!read) return;
    if (sealed) {
        leave_out_found(run, bag, state.files);
    } else {
        count_package(run, state);
    }
    add_package(run, bag, state, "the bag's manifest");
    if (std::ranges::none_of(plain->list(place.prefix).keys, is_bag_tag_manifest)) {
        run.add({.kind = FindingKind::note,
                 .node = bag,
                 .key = join_key(bag, "tagmanifest-sha256.txt"),
                 .text = "is missing, and so nothing says whether the bag's manifests are as they were"});
    }
}

void verify_snapshot(VerifyRun& run, const std::string& node) {
    std::optional<SnapshotState> state;
    run.guarded({.node = node, .key = join_key(node, snapshot_record_key)}, [&] {
        state = snapshot_state({*run.store, run.place(node)}, run.options.io);
    });
    if (!state) return;
    add_files(run, node, state->changed,
              {FindingKind::damage,
               "is not as it was when the snapshot was made: it was damaged, or another program changed it in place"});
    add_files(run, node, state->missing, {FindingKind::damage, "was there when the snapshot was made, and is gone"});
    const std::string files = join_key(node, snapshot_files_key);
    if (!state->untold.empty()) {
        run.add(
            {.kind = FindingKind::unchecked,
             .node = node,
             .key = files,
             .text = fmt::format("not one of its {} files has the time that it had when the snapshot was made, though "
                                 "{} have their sizes: it was copied without the times (cp -r; cp -a keeps them), "
                                 "and no sums tell whether they hold the same",
                                 state->files, state->untold.size()),
             .advice = {{Action::accept_snapshot, "takes them as they are", "NAME"}}});
    }
    if (state->moved > 0) {
        run.add({.kind = FindingKind::note,
                 .node = node,
                 .key = files,
                 .text = fmt::format("{} files have other times than when the snapshot was made, and the same content",
                                     state->moved)});
    }
}

}  // namespace tessera
