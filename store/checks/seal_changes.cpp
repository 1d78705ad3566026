#include "seal_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>

#include <algorithm>
#include <span>

#include "parity_encode.h"
#include "seal_mark.h"

namespace tessera {

namespace {

enum class Fate : std::uint8_t { intact, edited, damaged, changed, added };

/// Other programs' files get the time of the kernel's clock tick, and some file systems keep every other second alone.
constexpr std::int64_t coarseness = 2'000'000'000;

/// Judges one file that is there.
class Judge {
public:
    Judge(const KeyValueStore& store, std::string_view prefix, const FileSums& sealed, const SealedRecords& records,
          bool check)
        : store_(store),
          prefix_(prefix),
          sealed_(sealed),
          records_(records),
          check_(check),
          mark_(facts_of(store, join_key(prefix, seal_mark_key))) {}

    [[nodiscard]] Fate of(const std::string& path) const {
        const auto sum = sealed_.find(path);
        if (sum == sealed_.end()) return Fate::added;
        const std::string key = join_key(prefix_, path);
        const auto record = records_.find(path);
        const auto facts = facts_of(store_, key);
        const bool as_stamped = record != records_.end() && facts && facts->size == record->second.size &&
                                facts->modified == record->second.modified;
        if (as_stamped && !check_) return Fate::intact;
        if (has_sum(key, sum->second)) return Fate::intact;
        if (as_stamped) return Fate::damaged;
        return facts && is_edit(*facts) ? Fate::edited : Fate::changed;
    }

private:
    /// Whether a file was written, or put in its place, after the seal was broken: what undo and snapshots put back has
    /// the time at which it was written. In a copy of the archive all files are new in their places, the mark, too.
    [[nodiscard]] bool is_edit(const FileFacts& file) const {
        if (!mark_) return false;
        if (file.modified >= mark_->modified - coarseness) return true;
        const bool copied = mark_->placed > mark_->modified + coarseness;
        return !copied && file.placed >= mark_->modified - coarseness;
    }
    [[nodiscard]] bool has_sum(const std::string& key, const Sha256& sum) const {
        try {
            return sum_of(store_, key) == sum;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
            return false;  // what cannot be read is not what it was
        }
    }

    const KeyValueStore& store_;
    std::string prefix_;
    const FileSums& sealed_;
    const SealedRecords& records_;
    bool check_;
    std::optional<FileFacts> mark_;  ///< that the seal was broken
};

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
    constexpr std::size_t shown = 3;
    const auto some = std::span(names).first(std::min(shown, names.size()));
    const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
    return fmt::format("{}{}", fmt::join(some, ", "), more);
}

std::string damaged_text(const std::vector<std::string>& names) {
    return fmt::format(
        "damaged since it was sealed, with the size and time of the seal: {}; `tessera repair` restores "
        "what parity gives, --accept NAMES seals it as it is",
        names_text(names));
}

std::optional<std::int64_t> seal_broken(const KeyValueStore& store, std::string_view prefix) {
    const auto facts = facts_of(store, join_key(prefix, seal_mark_key));
    return facts ? std::optional(facts->modified) : std::nullopt;
}

SealedRecords sealed_records(const ParityArchive& archive) {
    SealedRecords records;
    for (std::size_t i = 0; i < archive.segments(); ++i) {
        auto named = archive.segment(i);
        if (!named) continue;
        for (SealedFile& file : named->segment.files) records.try_emplace(file.path, std::move(file));
    }
    return records;
}

SealChanges seal_changes(const KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
                         const FileSums& sealed, const SealedRecords& records, bool check, const IoOptions& io) {
    const Judge judge(store, prefix, sealed, records, check);
    std::vector<Fate> fates(files.size(), Fate::added);
    for_each_file(files, io, "comparing with the seal",
                  [&](const SummedFile& file, std::size_t i) { fates[i] = judge.of(file.path); });
    SealChanges changes;
    for (std::size_t i = 0; i < files.size(); ++i) {
        switch (fates[i]) {
            case Fate::intact:
                changes.intact.insert(files[i].path);
                break;
            case Fate::edited:
                changes.edited.push_back(files[i].path);
                break;
            case Fate::damaged:
                changes.damaged.push_back(files[i].path);
                break;
            case Fate::changed:
                changes.changed.push_back(files[i].path);
                break;
            case Fate::added:
                changes.added.push_back(files[i].path);
                break;
        }
    }
    for (const auto& [path, sum] : sealed) {
        if (!std::ranges::binary_search(files, path, {}, &SummedFile::path)) changes.missing.push_back(path);
    }
    return changes;
}

}  // namespace tessera
