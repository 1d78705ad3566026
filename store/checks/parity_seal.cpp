// The order on the disk, which leaves the old seal or the new one after a kill at any moment: the parity files of all
// segments, which nobody looks for yet; when they are durable, root.0, the commit; the other roots and the manifest;
// last, parity files that the root does not name go. As long as there is a root, the manifest that it names counts
// alone.
#include "parity_seal.h"

#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>

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

std::vector<SealedFile> records_of(const KeyValueStore& store, std::string_view prefix,
                                   const std::vector<SummedFile>& files) {
    std::vector<SealedFile> records;
    records.reserve(files.size());
    for (const SummedFile& file : files) {
        const std::string key = join_key(prefix, file.path);
        const auto facts = facts_of(store, key);
        if (!facts) throw not_found(fmt::format("{}: gone since it was listed", join_key(store.name(), key)));
        records.push_back({file.path, facts->size, facts->modified, facts->mode, {}});
    }
    return records;
}

/// The sums of files of which only a part lies in one new segment, which are computed by themselves.
void sum_spread_files(const KeyValueStore& store, std::string_view prefix,
                      const std::vector<std::vector<Extent>>& segments, std::vector<SealedFile>& records,
                      const IoOptions& io) {
    std::vector<std::uint32_t> spread;
    for (const auto& extents : segments) {
        std::map<std::uint32_t, std::uint64_t> bytes;
        for (const Extent& extent : extents) bytes[extent.file] += extent.length;
        for (const auto& [file, length] : bytes) {
            if (length < records[file].size) spread.push_back(file);
        }
    }
    std::ranges::sort(spread);
    spread.erase(std::unique(spread.begin(), spread.end()), spread.end());
    parallel_for(std::ssize(spread), io, [&](std::int64_t n) {
        SealedFile& record = records[spread[static_cast<std::size_t>(n)]];
        const std::string key = join_key(prefix, record.path);
        const auto sum = sum_of(store, key);
        if (!sum) throw not_found(fmt::format("{}: gone since it was listed", join_key(store.name(), key)));
        record.sum = *sum;
    });
}

/// A file that was written to meanwhile may have sums of two versions.
void require_unchanged(const KeyValueStore& store, std::string_view prefix, const std::vector<SealedFile>& records) {
    for (const SealedFile& record : records) {
        const std::string key = join_key(prefix, record.path);
        const auto facts = facts_of(store, key);
        if (facts && facts->size == record.size && facts->modified == record.modified) continue;
        throw invalid_argument(
            fmt::format("{}: changed while it was sealed; run this again when no program writes there",
                        join_key(store.name(), key)));
    }
}

/// Removes what the root does not name.
void remove_unnamed(KeyValueStore& store, std::string_view prefix, const ParityRoot& root) {
    std::set<std::string> named;
    for (int copy = 0; copy < parity_roots; ++copy) named.insert(root_key(copy));
    for (const SegmentName& segment : root.segments) {
        for (std::uint32_t row = 0; row < segment.parity; ++row) named.insert(parity_key(segment.sum, row));
    }
    for (const std::string& name : store.list(join_key(prefix, parity_folder)).keys) {
        const std::string key = join_key(parity_folder, name);
        if (!named.contains(key)) store.erase(join_key(prefix, key));
    }
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

/// Sealing with parity, step by step.
class Sealer {
public:
    Sealer(KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
           const Redundancy& redundancy, const OldParity& old, const IoOptions& io)
        : store_(store), prefix_(prefix), old_(old), io_(io), records_(records_of(store, prefix, files)) {
        root_.redundancy = redundancy;
        root_.files = records_.size();
        for (const SealedFile& record : records_) root_.bytes += record.size;
        for (std::uint32_t i = 0; i < records_.size(); ++i) numbers_[records_[i].path] = i;
    }

    std::uint64_t run() {
        keep_segments();
        const auto segments = deal_extents(new_extents(), root_.redundancy, memory_of(io_));
        start_progress(segments);
        sum_spread_files(store_, prefix_, segments, records_, io_);
        require_space(segments);
        const bool first = is_first();
        if (first) store_.put(join_key(join_key(prefix_, parity_folder), unfinished_parity), {});
        try {
            for (const auto& extents : segments) write_segment(extents);
            require_sealed_sums(segments);
            require_unchanged(store_, prefix_, records_);
        } catch (...) {
            undo(first);
            throw;
        }
        store_.sync();
        commit();
        return parity_bytes_;
    }

private:
    /// Whether there is no parity yet, or only what a killed first run left. Parity that has lost a root is not that.
    [[nodiscard]] bool is_first() const {
        const std::vector<std::string> there = store_.list(join_key(prefix_, parity_folder)).keys;
        return old_.archive == nullptr && (there.empty() || std::ranges::count(there, unfinished_parity) > 0);
    }

    /// Removes what was written and no root names.
    void undo(bool first) {
        if (first) {
            store_.erase_below(join_key(prefix_, parity_folder));
        } else if (old_.archive != nullptr) {
            remove_unnamed(store_, prefix_, old_.archive->root());
        }
    }

    struct Candidate {
        std::size_t number = 0;  ///< of the old segment
        std::uint64_t bytes = 0;
    };

    /// Whether its files, their times and their modes are as they were sealed.
    [[nodiscard]] bool is_intact(const Segment& segment) const {
        return std::ranges::all_of(segment.files, [&](const SealedFile& file) {
            const auto number = numbers_.find(file.path);
            if (number == numbers_.end() || !old_.intact.contains(file.path)) return false;
            const SealedFile& now = records_[number->second];
            return now.size == file.size && now.modified == file.modified && now.mode == file.mode;
        });
    }

    /// Chooses the segments that stay.
    void keep_segments() {
        if (old_.archive == nullptr || old_.archive->root().redundancy != root_.redundancy) return;
        std::vector<Candidate> stay;
        for (std::size_t i = 0; i < old_.archive->segments(); ++i) {
            const auto named = old_.archive->segment(i);
            if (!named || !is_intact(named->segment) || !is_whole_segment(*old_.archive, i, old_.check, io_)) continue;
            Candidate candidate{.number = i};
            for (const Piece& piece : named->segment.pieces) candidate.bytes += piece.length;
            stay.push_back(candidate);
        }
        std::ranges::stable_sort(stay, std::greater<>(), &Candidate::bytes);
        for (const Candidate& candidate : stay) keep(candidate.number);
        if (stay.empty() || new_extents().empty()) return;
        covered_.clear();
        root_.segments.clear();
        stay.pop_back();
        for (const Candidate& candidate : stay) keep(candidate.number);
    }

    void keep(std::size_t number) {
        const auto named = old_.archive->segment(number);
        if (!named) return;  // damaged since it was looked at
        root_.segments.push_back(named->name);
        for (const SealedFile& file : named->segment.files) {
            const std::uint32_t place = numbers_.find(file.path)->second;
            records_[place].sum = file.sum;
            if (file.size == 0) covered_.emplace(place, 0);
        }
        for (const Piece& piece : named->segment.pieces) {
            const std::uint32_t place = numbers_.find(named->segment.files[piece.file].path)->second;
            covered_.emplace(place, piece.offset / extent_size);
        }
    }

    [[nodiscard]] std::vector<Extent> new_extents() const {
        std::vector<Extent> extents = extents_of(records_);
        std::erase_if(extents, [&](const Extent& e) { return covered_.contains({e.file, e.offset / extent_size}); });
        return extents;
    }

    void start_progress(const std::vector<std::vector<Extent>>& segments) const {
        if (io_.progress == nullptr) return;
        std::uint64_t bytes = 0;
        for (const auto& extents : segments) {
            for (const Extent& extent : extents) bytes += extent.length;
        }
        io_.progress->start(static_cast<std::int64_t>(bytes), "sealing");
    }

    [[nodiscard]] LaidOut laid_out(const std::vector<Extent>& extents) const {
        return lay_out(extents, records_, parity_block_size(root_.bytes), root_.redundancy);
    }

    /// Before anything is written: an archive on a full disk keeps its old seal, and its disk some space.
    void require_space(const std::vector<std::vector<Extent>>& segments) const {
        const auto space = space_of(store_);
        if (!space) return;
        std::uint64_t needed = 0;
        for (const auto& extents : segments) {
            const Segment segment = laid_out(extents).segment;
            needed += segment.parity * parity_offset(segment, segment_index_size(segment), segment.groups);
        }
        if (needed <= *space) return;
        throw Error(ErrorCode::io, fmt::format("{}: the parity takes {} bytes, and the disk has {} left",
                                               join_key(store_.name(), prefix_), needed, *space));
    }

    void write_segment(const std::vector<Extent>& extents) {
        LaidOut laid = laid_out(extents);
        const Buffer parity = encode_parity(store_, prefix_, laid.segment, true, io_);
        for (std::size_t i = 0; i < laid.numbers.size(); ++i) {
            records_[laid.numbers[i]].sum = laid.segment.files[i].sum;
        }
        const Buffer index = encode_segment_index(laid.segment);
        for (std::uint32_t row = 0; row < laid.segment.parity; ++row) {
            write_parity(store_, prefix_, laid.segment, index.span(), parity.span(), row);
        }
        root_.segments.push_back({index_sum(index.span()), index.size(), laid.segment.parity});
        parity_bytes_ += laid.segment.parity * index.size() + parity.size();
    }

    /// Files that were taken for intact by their times have been read by now.
    void require_sealed_sums(const std::vector<std::vector<Extent>>& segments) const {
        if (old_.sums == nullptr) return;
        PathSet damaged;
        for (const auto& extents : segments) {
            for (const Extent& extent : extents) {
                const SealedFile& record = records_[extent.file];
                const auto sum = old_.sums->find(record.path);
                if (!old_.intact.contains(record.path) || sum == old_.sums->end()) continue;
                if (sum->second != record.sum) damaged.insert(record.path);
            }
        }
        if (damaged.empty()) return;
        throw corrupt(
            fmt::format("{}: {}", join_key(store_.name(), prefix_), damaged_text({damaged.begin(), damaged.end()})));
    }

    void commit() {
        Sums sums;
        for (const SealedFile& record : records_) sums.emplace_back(record.path, record.sum);
        const std::string manifest = manifest_of(sums);
        Hasher hasher;
        hasher.add(manifest.data(), manifest.size());
        root_.manifest = hasher.finish();
        root_.sealed =
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        const Buffer encoded = encode_root(root_);
        for (int copy = 0; copy < parity_roots; ++copy) {
            store_.put(join_key(prefix_, root_key(copy)), encoded.span());
            if (copy == 0) store_.sync();
        }
        store_.put(join_key(prefix_, seal_sums_key), std::as_bytes(std::span(manifest)));
        store_.sync();
        remove_unnamed(store_, prefix_, root_);
        store_.sync();
    }

    KeyValueStore& store_;
    std::string prefix_;
    const OldParity& old_;
    const IoOptions& io_;
    std::vector<SealedFile> records_;                            ///< of all files as they are now
    std::map<std::string, std::uint32_t, std::less<>> numbers_;  ///< of the records, by path
    std::set<std::pair<std::uint32_t, std::uint64_t>> covered_;  ///< extents in segments that stay: record, number
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

std::uint64_t seal_with_parity(KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
                               const Redundancy& redundancy, const OldParity& old, const IoOptions& io) {
    return Sealer(store, prefix, files, redundancy, old, io).run();
}

void drop_parity(KeyValueStore& store, std::string_view prefix) {
    // The first root is the one that counts: the next takes its place, and says the same.
    for (int copy = 0; copy < parity_roots; ++copy) {
        if (store.erase(join_key(prefix, root_key(copy)))) store.sync();
    }
    store.erase_below(join_key(prefix, parity_folder));
    store.sync();
}

}  // namespace tessera
