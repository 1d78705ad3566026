#include "parity_decode.h"

#include <tessera/error.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tessera {

SegmentDecoder::SegmentDecoder(const PlaceView& place, const SegmentState& state, const PathSet& differing,
                               const IoOptions& io)
    : store_(place.store),
      prefix_(place.prefix),
      state_(state),
      segment_(state.named.segment),
      code_(segment_.rows, segment_.parity),
      erased_(segment_.pieces.size()),
      unsolvable_(segment_.pieces.size()),
      by_group_(segment_.groups) {
    for (std::uint32_t i = 0; i < segment_.pieces.size(); ++i) {
        by_group_[segment_.group_of(segment_.pieces[i])].push_back(i);
    }
    find_erased(differing, io);
    find_unsolvable();
}

bool SegmentDecoder::any_erased() const {
    return std::ranges::count(erased_, 0) != std::ssize(erased_);
}

void SegmentDecoder::find_erased(const PathSet& differing, const IoOptions& io) {
    std::vector<std::pair<std::size_t, std::size_t>> runs;  // pieces of one file
    for (std::size_t i = 0; i < segment_.pieces.size();) {
        std::size_t end = i + 1;
        while (end < segment_.pieces.size() && segment_.pieces[end].file == segment_.pieces[i].file) ++end;
        if (differing.contains(segment_.files[segment_.pieces[i].file].path)) runs.emplace_back(i, end);
        i = end;
    }
    parallel_for(std::ssize(runs), io, [&](std::int64_t n) {
        const auto [begin, end] = runs[static_cast<std::size_t>(n)];
        std::fill(erased_.begin() + static_cast<std::ptrdiff_t>(begin),
                  erased_.begin() + static_cast<std::ptrdiff_t>(end), char{1});
        std::unique_ptr<ByteSource> source;
        try {
            source = store_.open(join_key(prefix_, segment_.files[segment_.pieces[begin].file].path));
        } catch (const Error&) {
            return;  // no file, or one that cannot be read
        }
        Buffer bytes;
        for (std::size_t i = begin; source != nullptr && i < end; ++i) {
            const Piece& piece = segment_.pieces[i];
            if (piece.offset + piece.length > source->size()) continue;
            bytes.reset(piece.length);
            if (read_intact(*source, piece.offset, bytes, piece.crc)) erased_[i] = 0;
        }
    });
}

void SegmentDecoder::find_unsolvable() {
    for (std::uint32_t g = 0; g < segment_.groups; ++g) {
        const std::size_t good = good_rows(g).size();
        for (const Interval& interval : intervals(g)) {
            if (interval.rows.size() <= good) continue;
            for (const std::uint32_t i : by_group_[g]) {
                const Piece& piece = segment_.pieces[i];
                const bool within = piece.place < interval.end && interval.begin < piece.place + piece.length;
                if (erased_[i] != 0 && within) unsolvable_[i] = 1;
            }
        }
    }
}

PathSet SegmentDecoder::unsolvable() const {
    PathSet paths;
    for (std::size_t i = 0; i < unsolvable_.size(); ++i) {
        if (unsolvable_[i] != 0) paths.insert(segment_.files[segment_.pieces[i].file].path);
    }
    return paths;
}

std::vector<SegmentDecoder::Interval> SegmentDecoder::intervals(std::uint32_t group) const {
    struct Change {
        std::uint32_t at = 0;
        std::uint32_t row = 0;
        bool begins = false;
    };
    std::vector<Change> changes;
    for (const std::uint32_t i : by_group_[group]) {
        if (erased_[i] == 0) continue;
        const Piece& piece = segment_.pieces[i];
        const std::uint32_t row = segment_.row_of(piece);
        changes.push_back({piece.place, row, true});
        changes.push_back({piece.place + piece.length, row, false});
    }
    // If one piece of a block ends where another begins, the end comes first.
    std::ranges::sort(changes, {}, [](const Change& c) { return std::pair(c.at, c.begins); });
    std::vector<Interval> found;
    std::set<std::uint32_t> rows;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].begins) {
            rows.insert(changes[i].row);
        } else {
            rows.erase(changes[i].row);
        }
        if (rows.empty() || i + 1 == changes.size() || changes[i + 1].at == changes[i].at) continue;
        found.push_back({changes[i].at, changes[i + 1].at, {rows.begin(), rows.end()}});
    }
    return found;
}

std::vector<std::uint32_t> SegmentDecoder::good_rows(std::uint32_t group) const {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t i = 0; i < segment_.parity; ++i) {
        if (state_.good[std::size_t{i} * segment_.groups + group] != 0) rows.push_back(i);
    }
    return rows;
}

std::vector<std::uint32_t> SegmentDecoder::groups_with(const PathSet& files) const {
    std::set<std::uint32_t> groups;
    for (std::size_t i = 0; i < erased_.size(); ++i) {
        const Piece& piece = segment_.pieces[i];
        if (erased_[i] != 0 && unsolvable_[i] == 0 && files.contains(segment_.files[piece.file].path)) {
            groups.insert(segment_.group_of(piece));
        }
    }
    return {groups.begin(), groups.end()};
}

Buffer SegmentDecoder::load_blocks(std::uint32_t group) const {
    Buffer blocks(std::size_t{segment_.rows} * segment_.block_size);
    std::ranges::fill(blocks.span(), std::byte{0});
    for (const std::uint32_t i : by_group_[group]) {
        if (erased_[i] != 0) continue;
        const Piece& piece = segment_.pieces[i];
        const std::string key = join_key(prefix_, segment_.files[piece.file].path);
        const auto source = store_.open(key);
        if (source == nullptr) throw not_found(store_.name_of(key) + ": gone while others were restored");
        const std::size_t at = std::size_t{segment_.row_of(piece)} * segment_.block_size + piece.place;
        source->read(piece.offset, blocks.span().subspan(at, piece.length));
    }
    return blocks;
}

Buffer SegmentDecoder::load_syndromes(std::uint32_t group, const std::vector<std::uint32_t>& good,
                                      const Buffer& blocks) const {
    const std::size_t size = segment_.block_size;
    Buffer syndromes(segment_.parity * size);
    std::ranges::fill(syndromes.span(), std::byte{0});
    for (const std::uint32_t row : good) {
        const auto file = store_.open(join_key(prefix_, parity_key(state_.named.name.sum, row)));
        if (file == nullptr) throw not_found("a parity file is gone while it was used");
        file->read(parity_offset(segment_, state_.named.name.index_size, group),
                   syndromes.span().subspan(row * size, size));
    }
    std::vector<unsigned char*> rows(segment_.parity);
    for (std::uint32_t i = 0; i < segment_.parity; ++i) {
        rows[i] = reinterpret_cast<unsigned char*>(syndromes.data() + i * size);
    }
    for (std::uint32_t j = 0; j < segment_.rows; ++j) code_.add(j, blocks.span().subspan(j * size, size), rows);
    return syndromes;
}

void SegmentDecoder::decode(std::uint32_t group, const PathSet& files,
                            const std::function<void(const Piece&, ByteSpan)>& each) const {
    const std::vector<std::uint32_t> good = good_rows(group);
    Buffer blocks = load_blocks(group);
    Buffer syndromes = load_syndromes(group, good, blocks);
    const std::size_t size = segment_.block_size;
    std::map<std::vector<std::uint32_t>, std::vector<unsigned char>> inverses;
    for (const Interval& interval : intervals(group)) {
        const std::size_t count = interval.rows.size();
        if (count > good.size()) continue;
        auto& tables = inverses[interval.rows];
        if (tables.empty()) tables = code_.inverse(interval.rows, std::span(good).first(count));
        std::vector<unsigned char*> from;
        std::vector<unsigned char*> to;
        for (std::size_t i = 0; i < count; ++i) {
            from.push_back(reinterpret_cast<unsigned char*>(syndromes.data() + good[i] * size + interval.begin));
            to.push_back(reinterpret_cast<unsigned char*>(blocks.data() + interval.rows[i] * size + interval.begin));
        }
        CauchyCode::solve(tables, interval.end - interval.begin, from, to);
    }
    for (const std::uint32_t i : by_group_[group]) {
        const Piece& piece = segment_.pieces[i];
        if (erased_[i] == 0 || unsolvable_[i] != 0 || !files.contains(segment_.files[piece.file].path)) continue;
        const std::size_t at = segment_.row_of(piece) * size + piece.place;
        each(piece, blocks.span().subspan(at, piece.length));
    }
}

}  // namespace tessera
