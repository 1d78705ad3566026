#include <tessera/error.h>

#include <algorithm>
#include <map>

#include "parity_encode.h"
#include "parity_restore.h"
#include "seal_changes.h"

namespace tessera {

namespace {

/// Whether a file can be read at all.
bool is_readable(const ReadableStore& store, const std::string& key) {
    try {
        return sum_of(store, key).has_value();
    } catch (const Error& e) {
        if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
        return false;
    }
}

/// Classifies the differing files of one segment, and counts how many of the others have their sealed time.
class Sorter {
public:
    Sorter(const ParityArchive& archive, const PathSet& differing, const PathSet& undecodable)
        : archive_(archive), differing_(differing), undecodable_(undecodable) {}

    void add(const Segment& segment) {
        for (const SealedFile& file : segment.files) {
            const std::string key = join_key(archive_.prefix(), file.path);
            const auto facts = facts_of(archive_.store(), key);
            const bool as_stamped = facts && facts->size == file.size && facts->modified == file.modified;
            if (!differing_.contains(file.path)) {
                ++(facts && facts->modified == file.modified ? same_ : other_);
            } else if (!found_.contains(file.path)) {
                found_[file.path] = kind_of(key, file.path, as_stamped);
            }
        }
    }

    [[nodiscard]] bool times_prove() const { return same_ >= other_; }

    /// The kind of a differing file. Without proof by times, only a missing one is known not to be an edit.
    [[nodiscard]] Differing::Kind kind(const std::string& path) const {
        const auto found = found_.find(path);
        if (found == found_.end()) return Differing::Kind::changed;
        if (found->second == Differing::Kind::damaged && !times_prove()) return Differing::Kind::changed;
        return found->second;
    }

private:
    [[nodiscard]] Differing::Kind kind_of(const std::string& key, const std::string& path, bool as_stamped) const {
        if (!is_there(archive_.store(), key)) return Differing::Kind::missing;
        if (as_stamped || undecodable_.contains(path) || !is_readable(archive_.store(), key)) {
            return Differing::Kind::damaged;
        }
        return Differing::Kind::changed;
    }

    const ParityArchive& archive_;
    const PathSet& differing_;
    const PathSet& undecodable_;
    std::map<std::string, Differing::Kind, std::less<>> found_;
    std::int64_t same_ = 0;
    std::int64_t other_ = 0;
};

void count_parity(const SegmentState& segment, ParityState& state) {
    const Segment& s = segment.named.segment;
    state.blocks += std::ssize(segment.good);
    state.bad_blocks += segment.bad_blocks();
    for (std::uint32_t row = 0; row < s.parity; ++row) {
        const auto first = segment.good.begin() + std::ptrdiff_t{row} * s.groups;
        const bool whole = segment.whole_file[row] != 0 && std::count(first, first + s.groups, char{0}) == 0;
        if (!whole) ++state.bad_files;
    }
}

}  // namespace

ParityState parity_state(const ParityArchive& archive, const SealState& sealed, const PathSet& undecodable,
                         const IoOptions& io) {
    ParityState state;
    state.roots_good = archive.roots_good() && archive.manifest_good();
    PathSet differing(sealed.changed.begin(), sealed.changed.end());
    differing.insert(sealed.missing.begin(), sealed.missing.end());
    Sorter sorter(archive, differing, undecodable);
    PathSet covered;
    PathSet unsolvable;
    for (std::size_t i = 0; i < archive.segments(); ++i) {
        const auto segment = archive.state(i, io);
        if (!segment) {
            ++state.lost_segments;
            continue;
        }
        count_parity(*segment, state);
        sorter.add(segment->named.segment);
        for (const SealedFile& file : segment->named.segment.files) {
            if (differing.contains(file.path)) covered.insert(file.path);
        }
        if (differing.empty()) continue;
        const SegmentDecoder decoder({archive.store(), archive.prefix()}, *segment, differing, io);
        unsolvable.merge(decoder.unsolvable());
    }
    state.times_prove = sorter.times_prove();
    state.broken = seal_broken({archive.store(), archive.prefix()}).has_value();
    for (const std::string& path : differing) {
        Differing::Kind kind = sorter.kind(path);
        if (state.broken && kind == Differing::Kind::damaged) kind = Differing::Kind::changed;
        // A large file is in several segments. If another one is lost, only the SHA-256 after restoring shows it.
        state.files.push_back({path, kind, covered.contains(path) && !unsolvable.contains(path)});
    }
    return state;
}

}  // namespace tessera
