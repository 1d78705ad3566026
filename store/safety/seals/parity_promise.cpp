#include <tessera/error.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "parity_archive.h"
#include "parity_layout.h"

namespace tessera {

namespace {

constexpr std::uint32_t no_limit = UINT32_MAX;

/// The offset of each file, if all files are concatenated in the order of their paths.
class Begins {
public:
    explicit Begins(const ParityArchive& archive) : begins_(spool_folder(archive.store())) {
        FileSorter sorter(spool_folder(archive.store()));
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < archive.segments(); ++i) {
            first_.push_back(count);
            const auto named = archive.segment(i);
            if (!named) continue;
            for (const SealedFile& file : named->segment.files) {
                sorter.add({.path = file.path, .size = file.size, .origin = count++});
            }
        }
        const std::vector<std::byte> zeros(sizeof(std::uint64_t));
        for (std::uint64_t i = 0; i < count; ++i) begins_.append(zeros);
        set_begins(sorter.sort());
    }

    [[nodiscard]] std::uint64_t files() const { return files_; }
    [[nodiscard]] std::uint64_t total() const { return total_; }
    /// The offsets of a segment's files. Its index must be readable.
    [[nodiscard]] std::vector<std::uint64_t> of(std::size_t segment, const Segment& s) const {
        std::vector<std::uint64_t> begins(s.files.size());
        begins_.read(first_[segment] * sizeof(std::uint64_t), std::as_writable_bytes(std::span(begins)));
        return begins;
    }

private:
    /// A file may be in several segments.
    void set_begins(const FileList& sorted) {
        FileList::Reader reader(sorted);
        std::string path;
        std::uint64_t begin = 0;
        while (const ListedFile* const file = reader.next()) {
            if (files_ == 0 || file->path != path) {
                path = file->path;
                begin = total_;
                total_ += file->size;
                ++files_;
            }
            begins_.write(file->origin * sizeof begin, std::as_bytes(std::span(&begin, 1)));
        }
    }

    Spool begins_;                      ///< segment by segment, file by file
    std::vector<std::uint64_t> first_;  ///< of each segment, in begins_
    std::uint64_t files_ = 0;
    std::uint64_t total_ = 0;
};

/// How many parity blocks of each group are good.
std::vector<std::uint32_t> good_of(const SegmentState& state) {
    const std::uint32_t groups = state.named.segment.groups;
    std::vector<std::uint32_t> good(groups);
    for (std::size_t i = 0; i < state.good.size(); ++i) good[i % groups] += state.good[i] != 0 ? 1 : 0;
    return good;
}

/// Where each piece of a segment lies, if all files are put one after another.
std::vector<std::uint64_t> begins_of_pieces(const Segment& s, const std::vector<std::uint64_t>& files) {
    std::vector<std::uint64_t> begins;
    begins.reserve(s.pieces.size());
    for (const Piece& piece : s.pieces) begins.push_back(files[piece.file] + piece.offset);
    return begins;
}

/// The number of files that a segment can always lose.
std::uint32_t files_of(const Segment& s, const std::vector<std::uint32_t>& good) {
    std::vector<std::map<std::uint32_t, std::uint32_t>> blocks(s.groups);  // of each file, by group
    for (const Piece& piece : s.pieces) ++blocks[s.group_of(piece)][piece.file];
    std::uint32_t least = no_limit;
    for (std::uint32_t g = 0; g < s.groups; ++g) {
        std::vector<std::uint32_t> counts;
        for (const auto& [file, count] : blocks[g]) counts.push_back(count);
        std::ranges::sort(counts, std::greater<>());
        std::uint32_t files = 0;
        std::uint64_t sum = 0;
        for (const std::uint32_t count : counts) {
            if ((sum += count) > good[g]) break;
            ++files;
        }
        if (sum > good[g]) least = std::min(least, files);
    }
    return least;
}

}  // namespace

std::optional<ParityPromise> parity_promise(const PlaceView& place, const IoOptions& io) {
    const auto archive = ParityArchive::open(place);
    if (!archive) return std::nullopt;
    ParityPromise promise;
    promise.asked = archive->root().redundancy;
    promise.segments = static_cast<std::int64_t>(archive->segments());
    const Begins begins(*archive);
    promise.run = begins.total();
    promise.blocks = no_limit;
    promise.files = no_limit;
    for (std::size_t i = 0; i < archive->segments(); ++i) {
        const auto state = archive->state(i, io);
        if (!state) {
            ++promise.lost_segments;
            promise.blocks = promise.files = 0;
            promise.run = 0;
            continue;
        }
        const Segment& s = state->named.segment;
        const std::vector<std::uint32_t> good = good_of(*state);
        promise.block_size = s.block_size;
        promise.parity_bytes += s.parity * (parity_offset(s, state->named.name.index_size, s.groups));
        promise.blocks = std::min(promise.blocks, *std::ranges::min_element(good));
        promise.files = std::min(promise.files, files_of(s, good));
        promise.run = std::min(promise.run, safe_run(s, begins_of_pieces(s, begins.of(i, s)), good, begins.total()));
    }
    promise.files = std::min(promise.files, static_cast<std::uint32_t>(begins.files()));
    return promise;
}

}  // namespace tessera
