#include "parity_layout.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/number_text.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace tessera {

namespace {

constexpr std::uint64_t largest_segment = std::uint64_t{1} << 30;
constexpr std::uint32_t most_rows = 100;  ///< of a group
constexpr double millionth = 1e-6;
/// Memory for the index entry of a file and everything kept with it while parity is computed.
constexpr std::uint64_t bytes_for_file = 1024;

/// Puts extents into blocks, in order.
class Packer {
public:
    /// Blocks of one file go into different groups, of which there are `groups`, as long as possible. 0: not known yet.
    /// Remainders go into the `most_open` blocks begun last.
    Packer(std::uint32_t block_size, std::uint32_t groups, std::size_t most_open)
        : block_size_(block_size), groups_(groups), most_open_(most_open) {}

    void add(std::uint32_t file, const Extent& extent) {
        if (file != file_) used_.clear();
        file_ = file;
        std::uint64_t done = 0;
        for (; extent.length - done >= block_size_; done += block_size_) {
            put(extent.offset + done, blocks_++, 0, block_size_);
        }
        if (done < extent.length) add_end(extent.offset + done, static_cast<std::uint32_t>(extent.length - done));
    }

    [[nodiscard]] std::uint32_t blocks() const { return blocks_; }
    [[nodiscard]] std::vector<Piece>& pieces() { return pieces_; }

private:
    struct Shared {
        std::uint32_t block = 0;
        std::uint32_t used = 0;
    };

    void put(std::uint64_t offset, std::uint32_t block, std::uint32_t place, std::uint32_t length) {
        pieces_.push_back({file_, block, offset, length, place, 0});
        if (groups_ > 0) used_.insert(block % groups_);
    }

    void add_end(std::uint64_t offset, std::uint32_t length) {
        const auto fits = [&](const Shared& s) {
            return block_size_ - s.used >= length && (groups_ == 0 || !used_.contains(s.block % groups_));
        };
        auto best = open_.end();
        for (auto s = open_.begin(); s != open_.end(); ++s) {
            if (fits(*s) && (best == open_.end() || s->used > best->used)) best = s;
        }
        if (best == open_.end()) {
            if (open_.size() == most_open_) open_.erase(std::ranges::max_element(open_, {}, &Shared::used));
            open_.push_back({blocks_++, 0});
            best = open_.end() - 1;
        }
        put(offset, best->block, best->used, length);
        best->used = std::min(block_size_, (best->used + length + 7) / 8 * 8);
    }

    std::uint32_t block_size_;
    std::uint32_t groups_;
    std::size_t most_open_;
    std::uint32_t blocks_ = 0;
    std::uint32_t file_ = UINT32_MAX;
    std::set<std::uint32_t> used_;  ///< groups of the file
    std::vector<Shared> open_;
    std::vector<Piece> pieces_;
};

Packer pack(std::span<const Extent> extents, std::uint32_t block_size, std::uint32_t groups, std::size_t most_open) {
    Packer packer(block_size, groups, most_open);
    for (const Extent& extent : extents) packer.add(extent.file, extent);
    return packer;
}

/// The most blocks that one file has in one group. Pieces are sorted by file.
std::uint32_t most_blocks(const std::vector<Piece>& pieces, std::uint32_t groups) {
    std::map<std::uint32_t, std::uint32_t> counts;  // of the file, by group
    std::uint32_t file = UINT32_MAX;
    std::uint32_t most = 0;
    for (const Piece& piece : pieces) {
        if (piece.file != file) counts.clear();
        file = piece.file;
        most = std::max(most, ++counts[piece.block % groups]);
    }
    return most;
}

std::uint32_t rows_of(std::uint32_t blocks, std::uint32_t groups) {
    return std::max(1U, (blocks + groups - 1) / groups);
}

/// A part of the archive's bytes, put one after another, and where it lies among the blocks.
struct Stretch {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t block = 0;     ///< first counter of its block
    std::size_t group = 0;     ///< first counter of its group
    std::uint32_t number = 0;  ///< of its group
    std::uint32_t first = 0;   ///< cells of the block that it touches
    std::uint32_t end_cell = 0;
};

/// The blocks erased by a moving window over the archive's bytes. Blocks are looked at in cells, because a piece erases
/// its own bytes only.
class Window {
public:
    static constexpr std::uint32_t cells = 32;

    /// The stretches of a segment in the order of the bytes. Counters are for blocks and groups that have pieces.
    Window(const Segment& s, std::span<const std::uint64_t> begins) {
        const std::vector<std::uint32_t> blocks = numbers_in_use(s, [](const Piece& p) { return p.block; });
        const std::vector<std::uint32_t> groups = numbers_in_use(s, [&](const Piece& p) { return s.group_of(p); });
        const auto counter = [](const std::vector<std::uint32_t>& of, std::uint32_t number) {
            return static_cast<std::size_t>(std::ranges::lower_bound(of, number) - of.begin()) * cells;
        };
        const std::uint32_t cell = std::max(1U, s.block_size / cells);
        for (std::size_t i = 0; i < s.pieces.size(); ++i) {
            const Piece& piece = s.pieces[i];
            stretches_.push_back({.begin = begins[i],
                                  .end = begins[i] + piece.length,
                                  .block = counter(blocks, piece.block),
                                  .group = counter(groups, s.group_of(piece)),
                                  .number = s.group_of(piece),
                                  .first = std::min(piece.place / cell, cells - 1),
                                  .end_cell = std::min((piece.place + piece.length + cell - 1) / cell, cells)});
        }
        std::ranges::sort(stretches_, {}, &Stretch::begin);
        touched_.resize(blocks.size() * cells);
        lost_.resize(groups.size() * cells);
    }

    [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }

    void add(const Stretch& s) {
        for (std::uint32_t c = s.first; c < s.end_cell; ++c) {
            if (touched_[s.block + c]++ == 0) ++lost_[s.group + c];
        }
    }
    void remove(const Stretch& s) {
        for (std::uint32_t c = s.first; c < s.end_cell; ++c) {
            if (--touched_[s.block + c] == 0) --lost_[s.group + c];
        }
    }
    /// The most blocks of its group that are erased at once somewhere in its cells.
    [[nodiscard]] std::uint32_t most_lost(const Stretch& s) const {
        const auto begin = lost_.begin() + static_cast<std::ptrdiff_t>(s.group);
        return *std::max_element(begin + s.first, begin + s.end_cell);
    }

private:
    template <class Number>
    static std::vector<std::uint32_t> numbers_in_use(const Segment& s, const Number& number) {
        std::vector<std::uint32_t> found;
        for (const Piece& piece : s.pieces) found.push_back(number(piece));
        std::ranges::sort(found);
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    std::vector<Stretch> stretches_;
    std::vector<std::uint16_t> touched_;  ///< pieces of the window, by block and cell
    std::vector<std::uint16_t> lost_;     ///< blocks of the window, by group and cell
};

/// The bytes of a segment that four fifths of a share of the whole archive in a row take, at most: extents are dealt in
/// turn, so that such a run takes whole rounds, and of the rest one extent.
std::uint64_t run_in(std::span<const Extent> extents, double share, std::uint64_t total) {
    double bytes = 0;
    double largest = 0;
    for (const Extent& extent : extents) {
        bytes += static_cast<double>(extent.length);
        largest = std::max(largest, static_cast<double>(extent.length));
    }
    if (bytes == 0) return 1;
    const double run = 0.8 * share * static_cast<double>(total);
    const double round = largest * std::max(1.0, static_cast<double>(total) / bytes);
    const double rounds = std::floor(run / round);
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(rounds * largest + std::min(run - rounds * round, largest)));
}

/// The parity blocks that a group needs for a share: so many of its blocks, and a run of `run` bytes, wherever the
/// remainders of files lie. At most half as many again as the first, because memory for parity was counted by that.
std::uint64_t parity_of_share(const Segment& s, double share, std::uint64_t run) {
    std::vector<std::uint64_t> begins;
    std::uint64_t bytes = 0;
    for (const Piece& piece : s.pieces) {
        begins.push_back(bytes);
        bytes += piece.length;
    }
    Window window(s, begins);
    std::uint32_t lost = 0;
    std::size_t first = 0;
    for (const Stretch& last : window.stretches()) {
        // A run that touches both holds the last byte of the one and the first of the other.
        while (window.stretches()[first].end + run < last.begin + 2) window.remove(window.stretches()[first++]);
        window.add(last);
        lost = std::max(lost, window.most_lost(last));
    }
    const std::uint64_t parity = std::max<std::uint64_t>(2, static_cast<std::uint64_t>(std::ceil(s.rows * share)));
    const std::uint64_t most = std::min<std::uint64_t>(255 - std::min(254U, s.rows), parity + parity / 2 + 1);
    return std::max(parity, std::min<std::uint64_t>(lost, most));
}

/// The segment without its files, with so many shared blocks that are not full yet.
Segment lay_out_pieces(std::span<const Extent> extents, std::uint32_t block_size, const Redundancy& redundancy,
                       std::uint64_t total, std::size_t most_open) {
    Packer first = pack(extents, block_size, 0, most_open);
    const bool share = redundancy.kind == Redundancy::Kind::share;
    std::uint32_t groups = rows_of(first.blocks(), most_rows);
    if (!share) groups = std::max(groups, most_blocks(first.pieces(), 1));
    Packer packed = pack(extents, block_size, groups, most_open);
    Segment s;
    s.block_size = block_size;
    s.blocks = packed.blocks();
    s.groups = groups;
    s.rows = rows_of(s.blocks, groups);
    s.pieces = std::move(packed.pieces());
    const std::uint64_t parity =
        share ? parity_of_share(s, redundancy.amount * millionth, run_in(extents, redundancy.amount * millionth, total))
              : std::uint64_t{redundancy.amount} * std::max(1U, most_blocks(s.pieces, groups));
    if (s.rows + parity > 255) {
        throw invalid_argument(
            "parity of {}: a group of {} blocks would need {} parity blocks, and both together are at most "
            "255; ask for less",
            redundancy_text(redundancy), s.rows, parity);
    }
    s.parity = static_cast<std::uint32_t>(parity);
    return s;
}

}  // namespace

Redundancy parse_redundancy(std::string_view text) {
    const bool share = text.ends_with('%');
    const std::string_view digits = share ? text.substr(0, text.size() - 1) : text;
    double amount = 0;
    const auto [end, error] = number_from_text(digits.data(), digits.data() + digits.size(), amount);
    const bool read = error == std::errc() && end == digits.data() + digits.size();
    if (read && share && amount >= 0.01 && amount <= 100) {
        return {Redundancy::Kind::share, static_cast<std::uint32_t>(std::lround(amount * 1e4))};
    }
    if (read && !share && amount >= 1 && amount <= 100 && amount == std::floor(amount)) {
        return {Redundancy::Kind::files, static_cast<std::uint32_t>(amount)};
    }
    throw invalid_argument(
        "'{}' is no redundancy: expected a share from 0.01% to 100%, as 5%, or from 1 to 100 files that "
        "may vanish, as 2",
        text);
}

std::string redundancy_text(const Redundancy& redundancy) {
    if (redundancy.kind == Redundancy::Kind::share) return fmt::format("{:.6g}%", redundancy.amount * 1e-4);
    return fmt::format("{} file{}", redundancy.amount, redundancy.amount == 1 ? "" : "s");
}

std::uint32_t parity_block_size(std::uint64_t total) {
    constexpr std::uint64_t large = std::uint64_t{64} << 20;
    constexpr std::uint64_t least = 512;
    if (total >= large) return 64U << 10U;
    const std::uint64_t wanted = std::max(least, total / 1024);
    const std::uint64_t below = std::bit_floor(wanted);
    return static_cast<std::uint32_t>(wanted - below < 2 * below - wanted ? below : 2 * below);
}

std::uint64_t extents_in(std::uint64_t size) {
    return size == 0 ? 1 : (size - 1) / extent_size + 1;
}

std::uint64_t extent_length(std::uint64_t size, std::uint64_t number) {
    return std::min(extent_size, size - number * extent_size);
}

Dealer::Dealer(const Extents& extents, const Redundancy& redundancy, std::uint64_t memory)
    : most_extents_(std::clamp<std::uint64_t>(memory / bytes_for_file, 1024, 65536)) {
    std::uint64_t count = extents.bytes / largest_segment + 1;
    if (redundancy.kind == Redundancy::Kind::share) {
        const double parity = static_cast<double>(extents.bytes) * redundancy.amount * millionth;
        count = std::max(count, static_cast<std::uint64_t>(parity / static_cast<double>(memory)) + 1);
    } else {
        // As many groups as a file has blocks, and a parity block in each for every file that may vanish.
        count = std::max(count, extents.largest * redundancy.amount / memory + 1);
        count = std::max(count, extents.bytes / most_rows * redundancy.amount / memory + 1);
    }
    count = std::max(count, extents.count / most_extents_ + 1);
    fills_.resize(std::min(count, extents.count));
    for (std::uint32_t i = 0; i < fills_.size(); ++i) fills_[i].segment = i;
}

std::uint32_t Dealer::deal(std::uint64_t length) {
    std::ranges::pop_heap(fills_, is_fuller);
    Fill& fill = fills_.back();
    const std::uint32_t segment = fill.segment;
    fill.bytes += length;
    if (++fill.extents < most_extents_) {
        std::ranges::push_heap(fills_, is_fuller);
    } else {
        fills_.pop_back();
    }
    return segment;
}

Segment lay_out(std::vector<SealedFile> files, std::span<const Extent> extents, std::uint32_t block_size,
                const Redundancy& redundancy, std::uint64_t total) {
    Segment best = lay_out_pieces(extents, block_size, redundancy, total, 16);
    if (redundancy.kind == Redundancy::Kind::share) {
        // More open blocks waste less room, and scatter neighbours, so that a run of bytes takes more of one group.
        for (const std::size_t most_open : {4, 1}) {
            Segment other = lay_out_pieces(extents, block_size, redundancy, total, most_open);
            const auto parity_blocks = [](const Segment& s) { return std::uint64_t{s.parity} * s.groups; };
            if (parity_blocks(other) < parity_blocks(best)) best = std::move(other);
        }
    }
    best.files = std::move(files);
    return best;
}

std::uint64_t safe_run(const Segment& s, std::span<const std::uint64_t> begins, std::span<const std::uint32_t> good,
                       std::uint64_t total) {
    Window window(s, begins);
    std::uint64_t run = total;
    std::size_t first = 0;
    for (const Stretch& last : window.stretches()) {
        window.add(last);
        while (window.most_lost(last) > good[last.number]) {
            const Stretch& out = window.stretches()[first++];
            // From the last byte of the one to the first of the other is one byte too many.
            run = std::min(run, last.begin + 1 > out.end ? last.begin + 1 - out.end : 0);
            window.remove(out);
        }
    }
    return run;
}

}  // namespace tessera
