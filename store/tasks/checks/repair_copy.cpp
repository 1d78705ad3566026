#include "repair_copy.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "copy_bytes.h"
#include "move_aside.h"
#include "replace_directory.h"
#include "seal_changes.h"
#include "sealed_file_store.h"
#include "snapshot_record.h"
#include "sums.h"

namespace tessera {

namespace {

/// The seal that covers a finding.
struct Seal {
    std::string node;  ///< below the repaired place
    std::optional<FileList> sums;
    bool broken = false;
};

/// One round of taking files from the copy.
class CopyMender {
public:
    /// `tried` are the keys of earlier rounds, which are left out, and then those of this one, too.
    CopyMender(const Place& place, const RepairOptions& options, const Place& from, std::set<std::string>& tried)
        : place_(place), options_(options), from_(from), tried_(tried) {}

    /// Returns whether anything was put in place.
    bool run(std::vector<Finding>& findings, std::set<std::string>& nodes, RepairReport& report) {
        bool any = false;
        for (Finding& finding : findings) {
            if (finding.key.empty() || is_harmless(finding.kind) || tried_.contains(finding.key)) continue;
            const Seal* const seal = seal_of(finding.node);
            if (seal == nullptr) {
                refuse(finding, "left: it has no seal, whose sums would say whether a copy is right", report);
                continue;
            }
            const auto listed = seal->sums->find(below(*seal, finding.key));
            if (!listed) continue;
            if (!is_wanted(finding, *seal)) {
                finding.by_seal = true;
                finding.advice = {{Action::repair_to_seal, "takes it from the copy", finding.key}};
                continue;
            }
            tried_.insert(finding.key);
            Repaired done = mend(finding, *seal, listed->file.sum);
            any = any || done.done;
            report.done += done.done ? 1 : 0;
            nodes.insert(seal->node);
            report.actions.push_back(std::move(done));
        }
        locks_.clear();
        mend_in_snapshots();
        return any;
    }

private:
    /// That of the innermost node at or above `node` which has one; null if none has.
    const Seal* seal_of(const std::string& node) {
        auto [at, is_new] = seals_.try_emplace(node);
        if (is_new) {
            Seal seal{.node = node, .sums = load_sums(*place_.store, place_.key(join_key(node, seal_sums_key)))};
            seal.broken = seal_broken({*place_.store, place_.key(node)}).has_value();
            at->second = std::move(seal);
        }
        if (at->second.sums) return &at->second;
        if (node.empty()) return nullptr;
        const std::size_t slash = node.rfind('/');
        return seal_of(slash == std::string::npos ? "" : node.substr(0, slash));
    }

    static std::string below(const Seal& seal, const std::string& key) {
        return seal.node.empty() ? key : key.substr(seal.node.size() + 1);
    }

    /// What may be somebody's edit is only replaced on request; once the seal was broken, everything may be.
    [[nodiscard]] bool is_wanted(const Finding& finding, const Seal& seal) const {
        if (options_.to_seal && std::ranges::count(options_.to_seal_names, finding.key) > 0) return true;
        if (seal.broken) return false;
        return finding.kind != FindingKind::changed || (options_.to_seal && options_.to_seal_names.empty());
    }

    /// Of an unsealed array nothing is set aside either: the copy may still be compared by a person.
    void refuse(const Finding& finding, std::string text, RepairReport& report) {
        if (finding.kind != FindingKind::damage && finding.kind != FindingKind::lost) return;
        tried_.insert(finding.key);
        report.actions.push_back({finding, false, std::move(text)});
    }

    Repaired mend(const Finding& finding, const Seal& seal, const Sha256& sum) {
        const std::string copy = from_.name_of(finding.key);
        try {
            const auto value = from_.store->open(from_.key(finding.key));
            if (value == nullptr) return {finding, false, fmt::format("left: {} is not there", copy)};
            if (options_.dry_run) {
                const bool same = sum_of(*from_.store, from_.key(finding.key)) == sum;
                return {finding, same, same ? fmt::format("would be taken from {}", copy) : other_content(copy)};
            }
            return take(finding, seal, *value, sum, copy);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            return {finding, false, fmt::format("left: {}", e.what())};
        }
    }

    static std::string other_content(const std::string& copy) {
        return fmt::format("left: {} is not as it was sealed, either", copy);
    }

    /// The bytes are compared while they are written under a temporary name, so that what takes the place is what was
    /// compared.
    Repaired take(const Finding& finding, const Seal& seal, const ByteSource& value, const Sha256& sum,
                  const std::string& copy) {
        const std::string key = place_.key(finding.key);
        const std::string node = place_.key(seal.node);
        place_.store->local_files().require_direct(key);
        lock(seal);
        const auto sink = place_.store->create(key);
        Hasher hasher;
        for_each_piece(value, [&](ByteSpan bytes) {
            sink->append(bytes);
            hasher.add(bytes.data(), bytes.size());
        });
        if (hasher.finish() != sum) return {finding, false, other_content(copy)};
        const std::string aside = keep_aside({*place_.store, node}, key);
        sink->finish();
        if (!aside.empty()) {
            kept_[seal.node].push_back({below(seal, finding.key),
                                        below(seal, aside.substr(place_.prefix.empty() ? 0 : place_.prefix.size() + 1)),
                                        place_.store->stamp(key).value_or(ValueStamp{})});
        }
        return {finding, true,
                aside.empty() ? fmt::format("taken from {}", copy)
                              : fmt::format("taken from {}; the damaged file is {}", copy, aside)};
    }

    /// Writers wait for the whole round.
    void lock(const Seal& seal) {
        auto [at, is_new] = locks_.try_emplace(seal.node);
        if (is_new) at->second = lock_nodes({*place_.store, place_.key(seal.node)});
    }

    /// A snapshot shares the files of chunks that have not changed since, and so their damage.
    void mend_in_snapshots() {
        if (!place_.store->local_files().folder_id("")) return;
        for (auto& [node, files] : kept_) {
            mend_snapshots(std::filesystem::path(place_.store->name()) / place_.key(node), files);
        }
    }

    const Place& place_;
    const RepairOptions& options_;
    const Place& from_;
    std::set<std::string>& tried_;
    std::map<std::string, Seal> seals_;  ///< by node, also those without sums
    std::map<std::string, LockedNodes> locks_;
    std::map<std::string, std::vector<MendedFile>> kept_;  ///< by the node of the seal
};

/// Of a bag, what it holds.
Place held_by(const Place& copy) {
    if (!copy.store->contains(copy.key("bagit.txt"))) return copy;
    const std::vector<std::string> held = copy.store->list(copy.key("data")).prefixes;
    if (held.size() == 1) return {copy.store, copy.key(join_key("data", held.front()))};
    throw invalid_argument("{}: a bag of {} folders: name the one below data/ that is the copy", copy.name(),
                           held.size());
}

}  // namespace

std::vector<Finding> findings_after_copy(const Place& place, const RepairOptions& options,
                                         std::vector<Finding> findings, std::set<std::string>& nodes,
                                         RepairReport& report) {
    if (!options.from) return findings;
    if (as_sealed_file(*place.store) != nullptr) {
        throw unsupported("{}: a file is taken from a copy as a whole: copy it here, and verify it", place.name());
    }
    const Place from = held_by(*options.from);
    std::set<std::string> tried;
    // Metadata that were restored may show chunks that nobody could look at before.
    while (CopyMender(place, options, from, tried).run(findings, nodes, report) && !options.dry_run) {
        findings = verify(place, {.io = options.io}).findings;
    }
    std::erase_if(findings, [&](const Finding& f) { return !is_harmless(f.kind) && tried.contains(f.key); });
    return findings;
}

}  // namespace tessera
