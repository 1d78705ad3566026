// A kill at any moment leaves the old seal or the new one. This is the order on the disk:
//   1. the parity files of all segments, which no root names yet;
//   2. when they are durable, root.0: the commit;
//   3. the other roots and the manifest;
//   4. parity files that the root does not name are removed.
// As long as there is a root, only the manifest that it names counts.
#include "parity_seal.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "parity_encode.h"
#include "parity_index.h"
#include "parity_layout.h"
#include "seal_changes.h"

namespace tessera {

namespace {

std::uint64_t memory_of(const IoOptions& io) {
    constexpr std::uint64_t most = std::uint64_t{64} << 20;
    constexpr std::uint64_t unless_given = std::uint64_t{256} << 20;
    const std::uint64_t memory = io.max_memory == 0 ? unless_given : io.max_memory;
    return std::max<std::uint64_t>(std::uint64_t{64} << 10, std::min(most, memory / 4));
}

/// The files with their present sizes, times and modes.
FileList records_of(const PlaceView& place, const FileList& files, const IoOptions& io) {
    FileList records(spool_folder(place.store));
    in_batches<FileFacts>(
        files, io,
        [&](const ListedFile& file, FileFacts& facts) {
            const std::string key = place.key(file.path);
            const auto found = facts_of(place.store, key);
            if (!found) throw not_found("{}: gone since it was listed", place.store.name_of(key));
            facts = *found;
        },
        [&](const ListedFile& file, const FileFacts& facts) {
            records.append({.path = file.path, .size = facts.size, .modified = facts.modified, .mode = facts.mode});
        });
    return records;
}

/// A file that was written to meanwhile may have sums of two versions.
void require_unchanged(const PlaceView& place, const FileList& records, const IoOptions& io) {
    in_batches<char>(
        records, io,
        [&](const ListedFile& record, char& /*none*/) {
            const std::string key = place.key(record.path);
            const auto facts = facts_of(place.store, key);
            if (facts && facts->size == record.size && facts->modified == record.modified) return;
            throw invalid_argument("{}: changed while it was sealed; run this again when no program writes there",
                                   place.store.name_of(key));
        },
        [](const ListedFile& /*record*/, char /*none*/) {});
}

/// Removes parity files that the root does not name.
void remove_unnamed(const PlaceRef& place, const ParityRoot& root) {
    const std::set<std::string> named = named_files(root);
    for (const std::string& name : place.store.list(place.key(parity_folder)).keys) {
        const std::string key = join_key(parity_folder, name);
        if (is_parity_file(name) && !named.contains(key)) place.store.erase(place.key(key));
    }
}

/// Removes all files of parity. The mark of a first run goes last, as without it the others would count.
void remove_parity(const PlaceRef& place) {
    const std::string folder = place.key(parity_folder);
    for (const std::string& name : place.store.list(folder).keys) {
        if (is_parity_file(name) && name != unfinished_parity) place.store.erase(join_key(folder, name));
    }
    place.store.erase(join_key(folder, unfinished_parity));
    const Listing rest = place.store.list(folder);
    if (rest.keys.empty() && rest.prefixes.empty()) place.store.erase_below(folder);
}

/// Whether the parity files of a segment have the sizes that its index says.
bool has_all_rows(const ParityArchive& archive, const NamedSegment& named) {
    const Segment& s = named.segment;
    for (std::uint32_t row = 0; row < s.parity; ++row) {
        const auto facts = facts_of(archive.store(), join_key(archive.prefix(), parity_key(named.name.sum, row)));
        if (!facts || facts->size != parity_offset(s, named.name.index_size, s.groups)) return false;
    }
    return true;
}

bool is_whole_segment(const ParityArchive& archive, std::size_t number, bool check, const IoOptions& io) {
    if (check) {
        const auto state = archive.state(number, io);
        return state && state->whole();
    }
    const auto named = archive.segment(number);
    return named && has_all_rows(archive, *named);
}

/// The new extents of one segment, and their files.
struct DealtSegment {
    std::vector<SealedFile> files;
    std::vector<std::uint64_t> numbers;  ///< of the files among all records
    std::vector<Extent> extents;
};

/// Calls each(DealtSegment) for every new segment. `dealt` has one entry for each extent, sorted by segment.
template <class Each>
void for_each_segment(const FileList& dealt, const Each& each) {
    FileList::Reader reader(dealt);
    const ListedFile* file = reader.next();
    while (file != nullptr) {
        DealtSegment segment;
        const std::uint32_t number = file->segment;
        for (; file != nullptr && file->segment == number; file = reader.next()) {
            if (segment.numbers.empty() || segment.numbers.back() != file->origin) {
                segment.numbers.push_back(file->origin);
                segment.files.push_back({file->path, file->size, file->modified, file->mode, {}});
            }
            segment.extents.push_back({static_cast<std::uint32_t>(segment.files.size() - 1), file->extent * extent_size,
                                       extent_length(file->size, file->extent)});
        }
        each(std::move(segment));
    }
}

/// Sealing with parity, step by step.
class Sealer {
public:
    Sealer(const PlaceRef& place, const FileList& files, const Redundancy& redundancy, const OldParity& old,
           const IoOptions& io)
        : place_(place),
          old_(old),
          io_(io),
          records_(records_of(place, files, io)),
          sums_(spool_folder(place.store), records_.size()),
          renewed_(records_.size()),
          spread_(spool_folder(place.store)) {
        root_.redundancy = redundancy;
        root_.files = records_.size();
        root_.bytes = records_.bytes();
    }

    std::uint64_t run() {
        keep_segments();
        take_kept_sums();
        const FileList dealt = deal();
        if (io_.progress != nullptr) io_.progress->start(static_cast<std::int64_t>(extents_.bytes), "sealing");
        sum_spread_files();
        require_space(dealt);
        const bool first = is_first();
        if (first) place_.store.put(join_key(place_.key(parity_folder), unfinished_parity), {});
        try {
            for_each_segment(dealt, [&](DealtSegment segment) { write_segment(std::move(segment)); });
            require_sealed_sums();
            require_unchanged(place_, records_, io_);
        } catch (...) {
            undo(first);
            throw;
        }
        place_.store.sync();
        commit();
        return parity_bytes_;
    }

private:
    /// Whether there is no parity yet, or only leftovers of a killed first run. Parity without one of its roots is more
    /// than that.
    [[nodiscard]] bool is_first() const {
        const std::vector<std::string> there = place_.store.list(place_.key(parity_folder)).keys;
        return old_.archive == nullptr &&
               (std::ranges::none_of(there, is_parity_file) || std::ranges::count(there, unfinished_parity) > 0);
    }

    /// Removes the written files that no root names.
    void undo(bool first) {
        if (first) {
            remove_parity(place_);
        } else if (old_.archive != nullptr) {
            remove_unnamed(place_, old_.archive->root());
        }
    }

    // ---- what stays

    /// For each old segment, whether its files, their times and their modes are as they were sealed.
    [[nodiscard]] std::vector<bool> intact_segments() const {
        std::vector<bool> intact(old_.parts->bytes.size());
        for (std::size_t i = 0; i < intact.size(); ++i) intact[i] = old_.parts->bytes[i].has_value();
        FileList::Follower records(records_);
        FileList::Reader parts(old_.parts->files);
        while (const ListedFile* const part = parts.next()) {
            const ListedFile* const now = records.find(part->path);
            const bool same = now != nullptr && old_.intact[records.number()] && now->size == part->size &&
                              now->modified == part->modified && now->mode == part->mode;
            if (!same) intact[part->segment] = false;
        }
        return intact;
    }

    /// Chooses the segments that stay.
    void keep_segments() {
        if (old_.archive == nullptr || old_.archive->root().redundancy != root_.redundancy) return;
        const std::vector<bool> intact = intact_segments();
        std::vector<std::size_t> stay;
        for (std::size_t i = 0; i < intact.size(); ++i) {
            if (intact[i] && is_whole_segment(*old_.archive, i, old_.check, io_)) stay.push_back(i);
        }
        std::ranges::stable_sort(stay, std::greater<>(), [&](std::size_t i) { return *old_.parts->bytes[i]; });
        kept_.resize(intact.size());
        for (const std::size_t i : stay) kept_[i] = true;
        if (!stay.empty() && any_new_extent()) {
            kept_[stay.back()] = false;
            stay.pop_back();
        }
        for (const std::size_t i : stay) root_.segments.push_back(old_.archive->root().segments[i]);
    }

    void take_kept_sums() {
        if (kept_.empty()) return;
        FileList::Follower records(records_);
        FileList::Reader parts(old_.parts->files);
        while (const ListedFile* const part = parts.next()) {
            if (kept_[part->segment] && records.find(part->path) != nullptr) sums_.set(records.number(), part->sum);
        }
    }

    // ---- what is new

    /// Calls each(record, its number, its extents in no segment that stays) until it returns false.
    template <class Each>
    void for_each_new(const Each& each) const {
        const FileList none("");
        FileList::Follower parts(kept_.empty() ? none : old_.parts->files);
        FileList::Reader records(records_);
        std::vector<std::uint32_t> fresh;
        std::vector<bool> covered;
        while (const ListedFile* const record = records.next()) {
            const std::uint64_t count = extents_in(record->size);
            covered.assign(count, false);
            for (const ListedFile* part = parts.find(record->path); part != nullptr;
                 part = parts.find_next(record->path)) {
                if (kept_[part->segment] && part->extent < count) covered[part->extent] = true;
            }
            fresh.clear();
            for (std::uint64_t i = 0; i < count; ++i) {
                if (!covered[i]) fresh.push_back(static_cast<std::uint32_t>(i));
            }
            if (!fresh.empty() && !each(*record, records.number(), fresh)) return;
        }
    }

    [[nodiscard]] bool any_new_extent() const {
        bool any = false;
        for_each_new([&](const auto&...) { return any = true, false; });
        return any;
    }

    /// The new extents, by segment. Finds the renewed files, and those of them that are split between segments.
    FileList deal() {
        for_each_new([&](const ListedFile& record, std::uint64_t /*number*/, const std::vector<std::uint32_t>& fresh) {
            std::uint64_t bytes = 0;
            for (const std::uint32_t extent : fresh) bytes += extent_length(record.size, extent);
            extents_.count += fresh.size();
            extents_.bytes += bytes;
            extents_.largest = std::max(extents_.largest, bytes);
            return true;
        });
        Dealer dealer(extents_, root_.redundancy, memory_of(io_));
        FileSorter dealt(spool_folder(place_.store));
        for_each_new([&](ListedFile record, std::uint64_t number, const std::vector<std::uint32_t>& fresh) {
            renewed_[number] = true;
            record.origin = number;
            bool spread = fresh.size() < extents_in(record.size);
            for (const std::uint32_t extent : fresh) {
                const std::uint32_t segment = dealer.deal(extent_length(record.size, extent));
                spread |= extent != fresh.front() && segment != record.segment;
                record.segment = segment;
                record.extent = extent;
                dealt.add_by_segment(record);
            }
            if (spread) spread_.append(record);
            return true;
        });
        return dealt.sort();
    }

    /// The sums of files split between segments, which are computed separately.
    void sum_spread_files() {
        in_batches<Sha256>(
            spread_, io_,
            [&](const ListedFile& file, Sha256& sum) {
                const std::string key = place_.key(file.path);
                const auto found = sum_of(place_.store, key);
                if (!found) throw not_found("{}: gone since it was listed", place_.store.name_of(key));
                sum = *found;
            },
            [&](const ListedFile& file, const Sha256& sum) { sums_.set(file.origin, sum); });
    }

    [[nodiscard]] Segment laid_out(DealtSegment segment) const {
        return lay_out(std::move(segment.files), segment.extents, parity_block_size(root_.bytes), root_.redundancy,
                       root_.bytes);
    }

    /// Called before anything is written: on a full disk the archive keeps its old seal.
    void require_space(const FileList& dealt) const {
        const auto space = space_of(place_.store);
        if (!space) return;
        std::uint64_t needed = 0;
        for_each_segment(dealt, [&](DealtSegment dealt_segment) {
            const Segment segment = laid_out(std::move(dealt_segment));
            needed += segment.parity * parity_offset(segment, segment_index_size(segment), segment.groups);
        });
        if (needed <= *space) return;
        throw Error(ErrorCode::io, fmt::format("{}: the parity takes {} bytes, and the disk has {} left", place_.name(),
                                               needed, *space));
    }

    void write_segment(DealtSegment dealt) {
        const std::vector<std::uint64_t> numbers = std::move(dealt.numbers);
        Segment segment = laid_out(std::move(dealt));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (segment.files[i].size > extent_size) segment.files[i].sum = sums_.get(numbers[i]);  // if it is spread
        }
        const Buffer parity = encode_parity(place_, segment, true, io_);
        for (std::size_t i = 0; i < numbers.size(); ++i) sums_.set(numbers[i], segment.files[i].sum);
        const Buffer index = encode_segment_index(segment);
        for (std::uint32_t row = 0; row < segment.parity; ++row) {
            write_parity(place_, segment, index.span(), parity.span(), row);
        }
        root_.segments.push_back({index_sum(index.span()), index.size(), segment.parity});
        parity_bytes_ += segment.parity * index.size() + parity.size();
    }

    /// Throws corrupt for files that were taken for intact by their times, and now, having been read, have another sum.
    void require_sealed_sums() const {
        if (old_.sums == nullptr) return;
        std::vector<std::string> damaged;
        FileList::Reader records(records_);
        SumColumn::Reader sums(sums_);
        FileList::Follower sealed(*old_.sums);
        while (const ListedFile* const record = records.next()) {
            const Sha256 now = sums.next();
            if (!renewed_[records.number()] || !old_.intact[records.number()]) continue;
            const ListedFile* const was = sealed.find(record->path);
            if (was != nullptr && was->sum != now) damaged.push_back(record->path);
        }
        if (damaged.empty()) return;
        throw advise_damaged(corrupt("{}: {}", place_.name(), damaged_text(damaged)));
    }

    /// The files of the manifest.
    [[nodiscard]] NextSum sealed_files() const {
        return [records = std::make_shared<FileList::Reader>(records_),
                sums = std::make_shared<SumColumn::Reader>(sums_)](ListedFile& file) {
            const ListedFile* const record = records->next();
            if (record == nullptr) return false;
            file = *record;
            file.sum = sums->next();
            return true;
        };
    }

    void commit() {
        root_.manifest = manifest_sum(sealed_files());
        root_.sealed =
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        const Buffer encoded = encode_root(root_);
        for (int copy = 0; copy < parity_roots; ++copy) {
            place_.store.put(place_.key(root_key(copy)), encoded.span());
            if (copy == 0) place_.store.sync();
        }
        put_manifest(place_.store, place_.key(seal_sums_key), sealed_files());
        place_.store.sync();
        remove_unnamed(place_, root_);
        place_.store.sync();
    }

    PlaceRef place_;
    const OldParity& old_;
    const IoOptions& io_;
    FileList records_;           ///< all files as they are now, sorted by path
    SumColumn sums_;             ///< of the records
    std::vector<bool> kept_;     ///< of each old segment: it stays; empty: none does
    std::vector<bool> renewed_;  ///< of each record: an extent of it is new
    Extents extents_;            ///< that are new
    FileList spread_;
    ParityRoot root_;
    std::uint64_t parity_bytes_ = 0;
};

}  // namespace

bool is_whole(const ParityArchive& archive, bool check, const IoOptions& io) {
    if (!archive.roots_good() || !archive.manifest_good()) return false;
    for (std::size_t i = 0; i < archive.segments(); ++i) {
        if (!is_whole_segment(archive, i, check, io)) return false;
    }
    return true;
}

std::uint64_t seal_with_parity(const PlaceRef& place, const FileList& files, const Redundancy& redundancy,
                               const OldParity& old, const IoOptions& io) {
    return Sealer(place, files, redundancy, old, io).run();
}

void drop_parity(const PlaceRef& place) {
    // The first root that exists counts. So after each removal the next copy of it counts, until the last is gone.
    for (int copy = 0; copy < parity_roots; ++copy) {
        if (place.store.erase(place.key(root_key(copy)))) place.store.sync();
    }
    remove_parity(place);
    place.store.sync();
}

}  // namespace tessera
