#include "seal_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/action.h>
#include <tessera/error.h>

#include <algorithm>
#include <span>

#include "parity_encode.h"
#include "parity_layout.h"
#include "seal_mark.h"

namespace tessera {

namespace {

enum class Fate : std::uint8_t { intact, edited, damaged, changed, added };

/// Files of other programs have the time of the kernel's last clock tick, and some file systems keep only every other
/// second.
constexpr std::int64_t coarseness = 2'000'000'000;

/// An existing file, and its entry in the seal.
struct Compared {
    ListedFile file;
    std::optional<Sha256> sealed = std::nullopt;
    bool recorded = false;
    std::uint64_t size = 0;     ///< of the record
    std::int64_t modified = 0;  ///< of the record
};

/// Classifies an existing file.
class Judge {
public:
    Judge(const PlaceView& place, bool check)
        : place_(place), check_(check), mark_(facts_of(place.store, place.key(seal_mark_key))) {}

    [[nodiscard]] Fate of(const Compared& compared) const {
        if (!compared.sealed) return Fate::added;
        const std::string key = place_.key(compared.file.path);
        const auto facts = facts_of(place_.store, key);
        const bool as_stamped =
            compared.recorded && facts && facts->size == compared.size && facts->modified == compared.modified;
        if (as_stamped && !check_) return Fate::intact;
        if (has_sum(key, *compared.sealed)) return Fate::intact;
        if (as_stamped) return Fate::damaged;
        return facts && is_edit(*facts) ? Fate::edited : Fate::changed;
    }

private:
    /// Whether a file was written, or put in place, after the seal was broken. (Files that undo and snapshots put back
    /// keep the time at which they were written.) In a copy of the archive all files were put in place later, the mark,
    /// too; there only the time of writing counts.
    [[nodiscard]] bool is_edit(const FileFacts& file) const {
        if (!mark_) return false;
        if (file.modified >= mark_->modified - coarseness) return true;
        const bool copied = mark_->placed > mark_->modified + coarseness;
        return !copied && file.placed >= mark_->modified - coarseness;
    }
    [[nodiscard]] bool has_sum(const std::string& key, const Sha256& sum) const {
        try {
            return sum_of(place_.store, key) == sum;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
            return false;  // an unreadable file counts as changed
        }
    }

    PlaceView place_;
    bool check_;
    std::optional<FileFacts> mark_;  ///< of the mark that the seal was broken
};

/// The list for files of that fate; null for intact ones.
std::vector<std::string>* list_of(SealChanges& changes, Fate fate) {
    switch (fate) {
        case Fate::edited:
            return &changes.edited;
        case Fate::damaged:
            return &changes.damaged;
        case Fate::changed:
            return &changes.changed;
        case Fate::added:
            return &changes.added;
        case Fate::intact:
            break;
    }
    return nullptr;
}

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
    constexpr std::size_t shown = 3;
    const auto some = std::span(names).first(std::min(shown, names.size()));
    const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
    return fmt::format("{}{}", fmt::join(some, ", "), more);
}

std::string damaged_text(const std::vector<std::string>& names) {
    return fmt::format("damaged since it was sealed, with the size and time of the seal: {}", names_text(names));
}

Error advise_damaged(const Error& error) {
    return error.advising(Action::repair, "restores what parity gives")
        .advising(Action::accept, "seals it as it is", "NAMES");
}

std::optional<std::int64_t> seal_broken(const PlaceView& place) {
    const auto facts = facts_of(place.store, place.key(seal_mark_key));
    return facts ? std::optional(facts->modified) : std::nullopt;
}

SealedParts sealed_parts(const ParityArchive& archive) {
    FileSorter sorter(spool_folder(archive.store()));
    std::vector<std::optional<std::uint64_t>> bytes(archive.segments());
    for (std::size_t i = 0; i < archive.segments(); ++i) {
        const auto named = archive.segment(i);
        if (!named) continue;
        bytes[i] = 0;
        auto piece = named->segment.pieces.begin();
        const auto end = named->segment.pieces.end();
        for (std::uint32_t f = 0; f < named->segment.files.size(); ++f) {
            const SealedFile& file = named->segment.files[f];
            ListedFile part{file.path, file.size, file.modified, file.mode, file.sum, static_cast<std::uint32_t>(i)};
            if (piece == end || piece->file != f) {
                part.extent = file.size == 0 ? 0 : SealedParts::no_extent;
                sorter.add(part);
            }
            for (std::optional<std::uint64_t> before; piece != end && piece->file == f; ++piece) {
                *bytes[i] += piece->length;
                const std::uint64_t extent = piece->offset / extent_size;
                part.extent = static_cast<std::uint32_t>(extent);
                if (before != extent) sorter.add(part);
                before = extent;
            }
        }
    }
    return {sorter.sort(), std::move(bytes)};
}

/// Sets what is there, was sealed and was recorded of the next file. Returns false after the last one.
static bool next_compared(FileList::Reader& files, FileList::Follower& sums, FileList::Follower& records,
                          Compared& compared) {
    const ListedFile* const file = files.next();
    if (file == nullptr) return false;
    compared = {.file = *file};
    if (const ListedFile* const sum = sums.find(file->path)) compared.sealed = sum->sum;
    if (const ListedFile* const record = records.find(file->path)) {
        compared.recorded = true;
        compared.size = record->size;
        compared.modified = record->modified;
    }
    return true;
}

SealChanges seal_changes(const PlaceView& place, const FileList& files, const FileList& sealed, const FileList& records,
                         bool check, const IoOptions& io) {
    const Judge judge(place, check);
    SealChanges changes;
    changes.intact.reserve(files.size());
    FileList::Reader reader(files);
    FileList::Follower sums(sealed);
    FileList::Follower recorded(records);
    const auto next = [&](Compared& compared) { return next_compared(reader, sums, recorded, compared); };
    const auto each = [&](const Compared& compared, Fate& fate) {
        fate = judge.of(compared);
        if (io.progress != nullptr) io.progress->advance(static_cast<std::int64_t>(compared.file.size));
    };
    const auto take = [&](const Compared& compared, Fate fate) {
        changes.intact.push_back(fate == Fate::intact);
        if (auto* const list = list_of(changes, fate)) list->push_back(compared.file.path);
    };
    if (io.progress != nullptr) {
        io.progress->start(static_cast<std::int64_t>(files.bytes()), "comparing with the seal");
    }
    in_batches<Compared, Fate>(next, io, each, take);
    join_files(files, sealed, [&](const ListedFile* there, const ListedFile* was) {
        if (there == nullptr) changes.missing.push_back(was->path);
    });
    return changes;
}

}  // namespace tessera
