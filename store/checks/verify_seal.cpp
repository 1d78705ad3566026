// Findings of verify about seals, with or without parity.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/seal.h>

#include "bag_state.h"
#include "parity_archive.h"
#include "seal_changes.h"
#include "seal_mark.h"
#include "sealed_file_store.h"
#include "verifier.h"

namespace tessera {

void Verifier::check_manifest_place(const std::string& node, const Listing& own) {
    const std::string_view manifest = seal_key.substr(seal_key.rfind('/') + 1);
    if (!holds(own.prefixes, manifest) || holds(own.prefixes, "parity")) return;
    add({.node = node,
         .key = join_key(node, seal_key),
         .text = "a directory in the place of a seal's list of files",
         .advice = {{Action::seal, "sets it aside and seals what is there now"}}});
}

bool Verifier::check_seal(const std::string& path) {
    if (!check_place(path, join_key(path, parity_folder))) return false;  // such as a link, which repair removes
    const std::string manifest = join_key(path, seal_key);
    if (is_first_unfinished(*store_, place(path))) {
        add({.kind = FindingKind::leftover,
             .node = path,
             .key = join_key(path, parity_folder),
             .text = "a first sealing with parity is at work or was interrupted, and so nothing is sealed with it",
             .advice = {{Action::seal_with_parity, "begins again"}}});
    }
    SealState state;
    if (!guarded({.node = path, .key = manifest}, [&] { state = seal_state(*store_, place(path), options_.io); })) {
        return true;
    }
    if (!state.present) return false;
    ++report_.seals;
    if (seal_broken(*store_, place(path))) {
        add({.kind = FindingKind::note,
             .node = path,
             .key = join_key(path, seal_mark_key),
             .text = "the seal was broken on purpose: differences may be intended; seal again to accept them"});
    }
    report_.sealed += state.unchanged;
    if (const auto added = store_->list(place(join_key(path, parity_folder))); !added.keys.empty()) {
        guarded({.node = path, .key = join_key(path, parity_folder)}, [&] { check_parity(path, state); });
        return true;
    }
    add_changes(path, state, {"is not as it was sealed", "was sealed and is missing", "was added after the seal"});
    return true;
}

void Verifier::check_bag(const std::string& path) {
    // A store of a sealed bag does not show the manifest of tag files.
    const auto* beside = as_sealed_file(*store_);
    const auto plain = beside == nullptr ? store_ : directory_store(beside->path(), {.read_only = true});
    SealState state;
    const std::string manifest = join_key(path, bag_manifest);
    if (!guarded({.node = path, .key = manifest}, [&] { state = bag_state(*plain, place(path), options_.io); })) return;
    ++report_.seals;
    report_.sealed += state.unchanged;
    add_changes(path, state,
                {"is not as the bag's manifest says", "is in the bag's manifest and is missing",
                 "is in no manifest of the bag"});
    if (!holds(plain->list(place(path)).keys, bag_tag_manifest)) {
        add({.kind = FindingKind::note,
             .node = path,
             .key = join_key(path, bag_tag_manifest),
             .text = "is missing, and so nothing says whether the bag's manifest is as it was"});
    }
}

void Verifier::leave_bags() {
    for (Finding& finding : report_.findings) {
        const std::string& at = finding.key.empty() ? finding.node : finding.key;
        const bool in_bag = std::ranges::any_of(
            bags_, [&](const std::string& bag) { return bag.empty() || (at + '/').starts_with(bag + '/'); });
        if (in_bag && finding.remedy != Remedy::restore) finding.remedy = Remedy::none;
    }
}

void Verifier::add_changes(const std::string& path, const SealState& state,
                           const std::array<std::string_view, 3>& what) {
    struct Row {
        const std::vector<std::string>& files;
        FindingKind kind;
        std::string_view what;
    };
    for (const Row& row :
         {Row{state.changed, FindingKind::changed, what[0]}, Row{state.missing, FindingKind::lost, what[1]},
          Row{state.added, FindingKind::added, what[2]}}) {
        for (const std::string& file : row.files) {
            add({.kind = row.kind, .node = path, .key = join_key(path, file), .text = std::string(row.what)});
        }
    }
}

namespace {

std::string promise_text(const ParityPromise& promise) {
    if (promise.blocks == 0) return "nothing more can be lost for certain";
    const std::string files =
        promise.files == 0 ? "" : fmt::format(", or any {} file{}", promise.files, promise.files == 1 ? "" : "s");
    return fmt::format("enough to restore any {} bytes in a row{}", promise.run, files);
}

}  // namespace

void Verifier::check_parity(const std::string& path, const SealState& state) {
    const auto archive = ParityArchive::open(*store_, place(path));
    if (!archive) return;
    PathSet undecodable;
    const auto* beside = as_sealed_file(*store_);
    const bool of_file = beside != nullptr && beside->of_file();
    for (const Finding& finding : report_.findings) {
        const bool within = path.empty() || finding.key.starts_with(path + '/');
        if (of_file && finding.kind == FindingKind::damage) undecodable.insert(beside->path().filename().string());
        if (of_file || finding.kind != FindingKind::damage || finding.key.empty() || !within) continue;
        undecodable.insert(path.empty() ? finding.key : finding.key.substr(path.size() + 1));
    }
    const ParityState parity = parity_state(*archive, state, undecodable, options_.io);
    for (const Differing& file : parity.files) add_differing(path, file, parity);
    for (const std::string& file : state.added) {
        add({.kind = FindingKind::added,
             .node = path,
             .key = join_key(path, file),
             .text = "was added after the seal"});
    }
    add_parity(path, *archive, parity);
}

void Verifier::add_differing(const std::string& path, const Differing& file, const ParityState& state) {
    Finding finding{.node = path, .key = join_key(path, file.path), .by_seal = true};
    switch (file.kind) {
        case Differing::Kind::missing:
            finding.kind = FindingKind::lost;
            finding.text = "was sealed and is missing";
            break;
        case Differing::Kind::damaged:
            finding.kind = FindingKind::damage;
            finding.text = "is damaged: not as it was sealed";
            break;
        case Differing::Kind::changed:
            finding.kind = FindingKind::changed;
            finding.text = "is not as it was sealed";
            break;
    }
    if (!file.solvable) {
        finding.text += "; more is lost than the parity can give back";
    } else if (state.broken) {
        finding.text += ", and the seal was broken on purpose";
        finding.advice.push_back({Action::repair_to_seal, "restores it", finding.key});
    } else if (file.kind == Differing::Kind::changed) {
        finding.text += state.times_prove ? ", perhaps by an edit"
                                          : "; most files have lost the times of the seal, so that an edit cannot be "
                                            "told from damage";
        finding.advice.push_back({Action::repair_to_seal, "restores it"});
    } else {
        finding.advice.push_back({Action::repair, "restores it from parity"});
        finding.remedy = Remedy::restore;
    }
    add(std::move(finding));
}

void Verifier::add_parity(const std::string& path, const ParityArchive& archive, const ParityState& state) {
    const auto promise = parity_promise(*store_, place(path), options_.io);
    if (!promise) return;
    Finding finding{.kind = FindingKind::note, .node = path, .key = join_key(path, parity_folder)};
    const std::string about = fmt::format("parity of {}", redundancy_text(archive.root().redundancy));
    if (state.whole()) {
        finding.text = fmt::format("{}, all of it as it was written: {}", about, promise_text(*promise));
    } else if (state.bad_files == 0 && state.lost_segments == 0 && archive.is_unfinished()) {
        finding.kind = FindingKind::leftover;
        finding.remedy = Remedy::restore;
        finding.text = fmt::format(
            "a sealing is at work or was interrupted: the files are sealed, and their {} is complete", about);
        finding.advice.push_back({Action::seal, "writes the rest of the seal"});
    } else {
        finding.kind = FindingKind::damage;
        finding.remedy = Remedy::restore;
        finding.text = fmt::format(
            "{}: {} of {} parity blocks in {} files are damaged or missing{}{}; {}", about, state.bad_blocks,
            state.blocks, state.bad_files, state.roots_good ? "" : ", and so are roots or the manifest",
            state.lost_segments == 0
                ? ""
                : fmt::format(", and {} of {} segments wholly", state.lost_segments, archive.segments()),
            promise_text(*promise));
    }
    add(std::move(finding));
}

}  // namespace tessera
