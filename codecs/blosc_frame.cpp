// The format, after c-blosc's README_CHUNK_FORMAT.rst (the document) and what c-blosc 1.21 does. A frame is a header of
// 16 bytes and the blocks, all numbers little-endian:
//
//   |-0-|-1-|-2-|-3-|-4-|-5-|-6-|-7-|-8-|-9-|-A-|-B-|-C-|-D-|-E-|-F-|
//     |   |   |   |  |    nbytes    |   blocksize   |    cbytes     |
//     |   |   |   +--typesize
//     |   |   +------flags: 1 shuffle, 2 stored, 4 bitshuffle, 8 must be zero, 16 blocks are not split, 5–7 compressor
//     |   +----------version of the compressor's format
//     +--------------version of the frame's format: 2
//
// Stored frames: nbytes raw bytes follow, not shuffled, whatever the flags say. All other frames:
//
//   bstarts     one int32 per block: where in the frame it begins (the document says "from the end of this section";
//               c-blosc counts from the start of the frame)
//   blocks      each one or more splits: an int32, the number of bytes that follow, and these bytes. If that number
//               equals the decoded size of the split, the split is not compressed.
//
// A block holds blocksize bytes; the last one may be shorter. It has typesize splits of equal size if flag 16 is clear,
// typesize is at most 16, a split has at least 128 bytes and the block is not a shorter last one. Otherwise it has one.
// The decoded splits, concatenated, are the block. If a flag says so, each block is shuffled by itself: the first bytes
// of all elements, the second bytes, …, and at the end the bytes of an incomplete element.
//
// This file decodes stored frames, and LZ4 without bitshuffle. Any other block is wrapped as a frame of its own for
// c-blosc to decode. Writers store the blocks in order, one after the other. If they lie otherwise, or if a split ends
// beyond its block, c-blosc decodes the whole frame, so that the two decoders never differ.
#include "blosc_frame.h"

#include <blosc.h>
#include <lz4.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "span_source.h"
#include "unshuffle.h"

namespace tessera {

namespace {

constexpr std::size_t header_size = BLOSC_MIN_HEADER_LENGTH;
constexpr std::size_t front_bytes = 4096;  // the first read: header and bstarts, or all of a small frame
constexpr std::size_t short_run = 256;
constexpr std::size_t most_splits = 16;
constexpr std::size_t least_split = 128;
constexpr std::uint32_t stored_piece = 1 << 16;  // a stored frame has no blocks: it is read in such pieces

enum Flag : std::uint8_t { shuffled = 1, stored = 2, bitshuffled = 4, reserved = 8, unsplit = 16 };

/// A decoded block, or a piece of a stored frame. Empty at first.
struct Block {
    std::size_t begin = 0;  ///< in the decoded chunk
    std::size_t end = 0;
    ByteSpan bytes;
    bool shuffle = false;
};

class FrameDecoder {
public:
    FrameDecoder(const ByteSource& frame, CodecScratch& scratch) : source_(frame), scratch_(scratch) {
        have_ = frame.mapped();
        in_memory_ = !have_.empty();
        if (!in_memory_) fetch(0, std::min<std::uint64_t>(frame.size(), front_bytes));
        header_ = read_blosc_header(have_, frame.size());
        if (in_memory_) have_ = have_.first(header_.cbytes);
    }

    [[nodiscard]] const BloscHeader& header() const { return header_; }

    /// Reads where the blocks begin. Returns whether the frame has the expected layout.
    [[nodiscard]] bool read_starts() {
        BloscHeader& h = header_;
        if (h.nbytes == 0 || h.blocksize == 0 || h.blocksize > h.nbytes || h.blocksize > BLOSC_MAX_BLOCKSIZE ||
            h.typesize == 0 || (h.flags & reserved) != 0)
            return false;
        if ((h.flags & stored) != 0) h.blocksize = std::min(h.nbytes, stored_piece);
        const std::size_t blocks = (h.nbytes - 1) / h.blocksize + 1;
        if ((h.flags & stored) != 0) {
            if (h.cbytes != h.nbytes + header_size) return false;
            for (std::size_t k = 0; k < blocks; ++k)
                starts_.push_back(static_cast<std::uint32_t>(header_size + k * h.blocksize));
        } else {
            if (blocks > (h.cbytes - header_size) / 4) return false;
            const std::size_t list_end = header_size + 4 * blocks;
            if (!in_memory_ && have_.size() < list_end) fetch(0, list_end);
            starts_.resize(blocks);
            for (std::size_t k = 0; k < blocks; ++k)
                starts_[k] = load_little<std::uint32_t>(&have_[header_size + 4 * k]);
            if (starts_[0] < list_end) return false;
        }
        starts_.push_back(h.cbytes);
        return std::ranges::adjacent_find(starts_, std::greater_equal<>()) == starts_.end();
    }

    /// The encoded bytes; only for a frame in memory.
    [[nodiscard]] ByteSpan bytes() const { return have_; }

    /// The memory of block `k`: decoded, or indeterminate if `keep` is false. Valid until the next call. Empty if
    /// decoding fails.
    [[nodiscard]] MutableByteSpan whole_block(std::size_t k, bool keep) {
        if (!keep) {
            scratch_.block.reset(block_size(k));
            return scratch_.block.span();
        }
        unshuffle_blocks_ = true;
        if (!decode_block(k)) return {};
        const bool in_front = block_.bytes.data() == scratch_.block.data();
        const MutableByteSpan memory = scratch_.block.span();
        return in_front ? memory.first(block_.bytes.size()) : memory.last(block_.bytes.size());
    }
    [[nodiscard]] std::span<const std::uint32_t> starts() const { return starts_; }
    [[nodiscard]] std::size_t block_of(std::size_t offset) const { return offset / header_.blocksize; }
    [[nodiscard]] std::size_t block_size(std::size_t k) const {
        return std::min<std::size_t>(header_.blocksize, header_.nbytes - k * header_.blocksize);
    }

    /// Decodes the bytes of the runs.
    [[nodiscard]] bool decode(const ByteRuns& runs) {
        swapped_ = runs.swapped() != 0;
        if (swapped_ && !has_shuffled(runs.swapped())) return false;
        if (!in_memory_) plan(runs);
        const std::size_t n = runs.size();
        const RunStores stores(runs);
        streaming_ = stores.streaming();
        unshuffle_blocks_ = !streaming_ && n < short_run && unshuffling_pays(runs);
        if (stores.plain() && n < short_run) {
            const RowCopy copy(runs, false);
            RowWriter writer(runs, stores);
            const bool done = runs.for_each_row([&](const RunRow& row) {
                if (block_.shuffle || row.from < block_.begin || row.end(n) > block_.end)
                    return deliver_row(row, n, copy, writer);
                writer.write(row, [&](const RunRow& r) { copy(r, block_.bytes.data(), block_.begin); });
                return true;
            });
            writer.finish();
            return done;
        }
        const bool done = stores.for_each([&](std::size_t from, std::byte* to) {
            if (block_.shuffle || streaming_ || from < block_.begin || from + n > block_.end)
                return deliver(from, to, n);
            std::memcpy(to, block_.bytes.data() + (from - block_.begin), n);
            return true;
        });
        if (streaming_) finish_stores();
        return done;
    }

private:
    /// Whether the blocks hold shuffled elements of `number` bytes, whose byte order can be swapped while unshuffling.
    [[nodiscard]] bool has_shuffled(std::size_t number) const {
        return header_.flags >> 5 == BLOSC_LZ4_FORMAT && (header_.flags & (stored | shuffled)) == shuffled &&
               header_.typesize == number && header_.blocksize % number == 0 && header_.nbytes % number == 0;
    }

    /// Whether unshuffling whole blocks first, and then copying short runs, takes less time than unshuffling run by
    /// run. Besides, the stores of short runs stall on memory, and plain copies leave few other stores to wait behind
    /// them.
    [[nodiscard]] bool unshuffling_pays(const ByteRuns& runs) const {
        // Bytes of a block that are unshuffled in the time that one run takes.
        const std::size_t worth = runs.size() == header_.typesize ? 8 * runs.size() : short_run;
        const std::size_t touched =
            needed_.empty() ? runs.span() + header_.blocksize : needed_.size() * std::size_t{header_.blocksize};
        return runs.count() >= std::min<std::size_t>(touched, header_.nbytes) / worth;
    }

    /// have_ becomes bytes [offset, offset + size) of the source.
    void fetch(std::uint64_t offset, std::uint64_t size) {
        scratch_.encoded.reset(static_cast<std::size_t>(size));
        source_.read(offset, scratch_.encoded.span());
        have_ = scratch_.encoded.span();
        have_at_ = offset;
    }

    /// Lists the blocks that will be needed, in order.
    void plan(const ByteRuns& runs) {
        const std::size_t n = runs.size();
        std::size_t end = 0;  // of the last block in the list
        (void)runs.for_each_row([&](RunRow row) {
            while (row.end(n) > end) {
                if (row.from + n <= end) row.skip((end - n - row.from) / row.from_step + 1);
                while (row.from + n > end) {
                    needed_.push_back(block_of(std::max(row.from, end)));
                    end = (needed_.back() + 1) * header_.blocksize;
                }
            }
            return true;
        });
        if (needed_.size() > 1 && is_far(source_)) ask_together();
    }

    /// Asks for the needed blocks at once, unless these are very many bytes.
    void ask_together() const {
        constexpr std::uint64_t most = std::uint64_t{8} << 20;
        std::vector<ByteSource::Extent> extents;
        std::uint64_t bytes = 0;
        for (const std::size_t block : needed_) {
            const ByteSource::Extent next{starts_[block], starts_[block + 1]};
            bytes += next.end - next.begin;
            if (!extents.empty() && extents.back().end == next.begin) {
                extents.back().end = next.end;
            } else {
                extents.push_back(next);
            }
        }
        if (bytes <= most) source_.expect(extents);
    }

    /// The encoded bytes of a block. Reads them together with the needed blocks that directly follow.
    [[nodiscard]] ByteSpan encoded(std::size_t block) {
        const std::uint64_t begin = starts_[block];
        const std::uint64_t end = starts_[block + 1];
        if (begin < have_at_ || end > have_at_ + have_.size()) {
            auto next = std::ranges::lower_bound(needed_, block);
            std::size_t last = block;
            while (++next != needed_.end() && *next == last + 1) ++last;
            fetch(begin, starts_[last + 1] - begin);
        }
        return have_.subspan(static_cast<std::size_t>(begin - have_at_), static_cast<std::size_t>(end - begin));
    }

    bool deliver(std::size_t from, std::byte* to, std::size_t n) {
        for (;;) {
            if (from < block_.begin || from >= block_.end) {
                if (!decode_block(block_of(from))) return false;
            }
            const std::size_t piece = std::min(n, block_.end - from);
            const std::size_t first = from - block_.begin;
            if (block_.shuffle) {
                unshuffle({block_.bytes, header_.typesize, swapped_}, first, piece, to, streaming_);
            } else if (streaming_) {
                stream_copy(to, block_.bytes.data() + first, piece);
            } else {
                std::memcpy(to, block_.bytes.data() + first, piece);
            }
            n -= piece;
            if (n == 0) return true;
            from += piece;
            to += piece;
        }
    }

    /// Delivers runs of `n` bytes, those in one block by one loop.
    bool deliver_row(RunRow row, std::size_t n, const RowCopy& copy, RowWriter& writer) {
        while (row.n > 0) {
            if (row.from < block_.begin || row.from + n > block_.end) {
                if (row.from < block_.begin || row.from >= block_.end) {
                    if (!decode_block(block_of(row.from))) return false;
                }
                if (row.from + n > block_.end) {
                    if (!deliver(row.from, row.to, n)) return false;
                    row.skip(1);
                    continue;
                }
            }
            RunRow here = row;
            if (row.end(n) > block_.end) here.n = (block_.end - n - row.from) / row.from_step + 1;
            row.skip(here.n);
            if (block_.shuffle) {
                writer.write(here, [&](const RunRow& r) { unshuffle_row(r, n); });
            } else {
                writer.write(here, [&](const RunRow& r) { copy(r, block_.bytes.data(), block_.begin); });
            }
        }
        return true;
    }

    void unshuffle_row(RunRow row, std::size_t n) const {
        row.from -= block_.begin;
        const ShuffledBlock block{block_.bytes, header_.typesize, swapped_};
        const std::size_t size = block.typesize;
        const bool elements = n == size && row.from % size == 0 && row.from_step % size == 0 &&
                              row.end(n) <= block.bytes.size() / size * size;
        if (elements) return unshuffle_each(block, row.from, row.from_step, row.n, row.to, row.to_step);
        for (; row.n > 0; row.skip(1)) unshuffle(block, row.from, n, row.to, false);
    }

    [[nodiscard]] bool decode_block(std::size_t k) {
        const ByteSpan in = encoded(k);
        const std::size_t size = block_size(k);
        block_.begin = k * header_.blocksize;
        block_.end = block_.begin + size;
        block_.shuffle = false;
        if ((header_.flags & stored) != 0) {
            block_.bytes = in;
            return in.size() == size;
        }
        const bool whole = size == header_.blocksize;
        const bool shuffle = (header_.flags & shuffled) != 0 && header_.typesize > 1;
        const bool bits = !shuffle && (header_.flags & bitshuffled) != 0;
        scratch_.block.reset(unshuffle_blocks_ ? 2 * size : size);
        const MutableByteSpan out = scratch_.block.span().first(size);
        block_.bytes = out;
        if (header_.flags >> 5 != BLOSC_LZ4_FORMAT || bits) return decode_by_blosc(in, whole, out);
        const bool split = whole && (header_.flags & unsplit) == 0 && header_.typesize <= most_splits &&
                           size / header_.typesize >= least_split;
        if (!decode_splits(in, split ? header_.typesize : 1, out)) return false;
        block_.shuffle = shuffle && !unshuffle_blocks_;
        if (shuffle && unshuffle_blocks_) {
            const MutableByteSpan ordered = scratch_.block.span().last(size);
            unshuffle({out, header_.typesize, swapped_}, 0, size, ordered.data(), false);
            block_.bytes = ordered;
        }
        return true;
    }

    [[nodiscard]] bool decode_splits(ByteSpan in, std::size_t splits, MutableByteSpan out) const {
        if (header_.compressor_version != BLOSC_LZ4_VERSION_FORMAT) return false;
        if (out.size() % splits != 0) return false;
        const std::size_t size = out.size() / splits;
        for (; !out.empty(); out = out.subspan(size)) {
            if (in.size() < 4) return false;
            const std::size_t n = load_little<std::uint32_t>(in.data());
            in = in.subspan(4);
            if (n > in.size()) return false;
            if (n == size) {
                std::memcpy(out.data(), in.data(), size);
            } else if (LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                           reinterpret_cast<char*>(out.data()), static_cast<int>(n),
                                           static_cast<int>(size)) != static_cast<int>(size)) {
                return false;
            }
            in = in.subspan(n);
        }
        return true;
    }

    /// Decodes the block by wrapping it as a frame of one block.
    [[nodiscard]] bool decode_by_blosc(ByteSpan in, bool whole, MutableByteSpan out) {
        Buffer& frame = scratch_.other;
        frame.reset(header_size + 4 + in.size());
        std::byte* p = frame.data();
        p[0] = std::byte{BLOSC_VERSION_FORMAT};
        p[1] = std::byte{header_.compressor_version};
        p[2] = std::byte{static_cast<std::uint8_t>(header_.flags | (whole ? 0 : unsplit))};
        p[3] = static_cast<std::byte>(header_.typesize);
        store_little<std::uint32_t>(p + 4, static_cast<std::uint32_t>(out.size()));
        store_little<std::uint32_t>(p + 8, static_cast<std::uint32_t>(out.size()));
        store_little<std::uint32_t>(p + 12, static_cast<std::uint32_t>(frame.size()));
        store_little<std::uint32_t>(p + header_size, header_size + 4);
        std::memcpy(p + header_size + 4, in.data(), in.size());
        return blosc_decompress_ctx(p, out.data(), out.size(), 1) == static_cast<int>(out.size());
    }

    const ByteSource& source_;
    CodecScratch& scratch_;
    BloscHeader header_;
    bool in_memory_ = false;
    ByteSpan have_;  ///< bytes of the frame, from have_at_ on
    std::uint64_t have_at_ = 0;
    std::vector<std::uint32_t> starts_;  ///< of each block, and the end of the frame
    std::vector<std::size_t> needed_;
    Block block_;
    bool streaming_ = false;
    bool swapped_ = false;           ///< elements come out in the other byte order
    bool unshuffle_blocks_ = false;  ///< unshuffle whole blocks before rows are copied from them
};

/// Assembles a frame from blocks of an old frame and new blocks. c-blosc encodes each block by itself, so a block comes
/// out as in the whole frame. Two exceptions are left to c-blosc: a shorter last block in a frame whose other blocks
/// are split, and a frame hardly smaller than its content, where a block may find less room than it needs.
class FrameEditor {
public:
    FrameEditor(FrameDecoder& old, const EncodeBlock& encode, CodecScratch& scratch, Buffer& out)
        : old_(old), header_(old.header()), encode_(encode), scratch_(scratch), out_(out) {}

    [[nodiscard]] bool edit(const ByteRuns& runs) {
        const std::size_t blocks = old_.starts().size() - 1;
        out_.reset(header_.nbytes + BLOSC_MAX_OVERHEAD);
        end_ = header_size + 4 * blocks;
        if (end_ > out_.size() || end_ != old_.starts()[0]) return false;
        replaced_.resize(blocks);
        const RunLoop copy = run_loop(runs.size());
        const auto count = [&](std::size_t k, const RunRow& row, std::size_t size) {
            replaced_[k] += row.n * size;
            return true;
        };
        const auto replace = [&](std::size_t k, const RunRow& row, std::size_t size) {
            const bool is_open = !block_.empty() && k == put_;
            if (!is_open && !(close() && keep_until(k) && open(k))) return false;
            const RunLoop loop = size == runs.size() ? copy : run_loop(size);
            loop(block_.data() + row.from, static_cast<std::int64_t>(row.from_step), row.to, row.to_step, row.n, size);
            return true;
        };
        (void)each_piece(runs, count);
        // Decoding and encoding all blocks at once copies less than doing both block by block.
        std::size_t k = 0;
        const auto in_part = [&](std::size_t n) { return n > 0 && n < old_.block_size(k++); };
        if (std::ranges::all_of(replaced_, in_part)) return false;
        if (!each_piece(runs, replace) || !close() || !keep_until(blocks)) return false;
        std::memcpy(out_.data(), old_.bytes().data(), header_size);
        store_little<std::uint32_t>(out_.data() + 12, static_cast<std::uint32_t>(end_));
        out_.resize(end_);
        return true;
    }

private:
    /// Calls each(block, row of runs relative to the block, bytes of a run) for every piece of the runs, until it
    /// returns false. A run that ends beyond its block comes in pieces.
    template <class Each>
    bool each_piece(const ByteRuns& runs, const Each& each) const {
        const std::size_t size = runs.size();
        return runs.for_each_row([&](RunRow row) {
            while (row.n > 0) {
                const std::size_t k = row.from / header_.blocksize;
                const std::size_t begin = k * header_.blocksize;
                const std::size_t end = begin + header_.blocksize;
                RunRow here = row;
                here.from -= begin;
                if (row.from + size > end) {
                    row.skip(1);
                    if (!each_part(k, here, size, each)) return false;
                    continue;
                }
                if (row.end(size) > end) here.n = (end - size - row.from) / row.from_step + 1;
                row.skip(here.n);
                if (!each(k, here, size)) return false;
            }
            return true;
        });
    }
    /// The same for the first run of the row, which begins in block `k` and ends in a later one.
    template <class Each>
    bool each_part(std::size_t k, RunRow row, std::size_t size, const Each& each) const {
        for (row.n = 1; size > 0; ++k) {
            const std::size_t n = std::min(size, header_.blocksize - row.from);
            if (!each(k, row, n)) return false;
            row.from = 0;
            row.to += n;
            size -= n;
        }
        return true;
    }

    /// Opens block `k`, which must be the next one, for new bytes.
    [[nodiscard]] bool open(std::size_t k) {
        block_ = old_.whole_block(k, replaced_[k] < old_.block_size(k));
        return !block_.empty();
    }

    /// Encodes and appends the open block, if any.
    [[nodiscard]] bool close() {
        if (block_.empty()) return true;
        const bool whole = block_.size() == header_.blocksize;
        if (!whole && (header_.flags & unsplit) == 0) return false;
        Buffer& frame = scratch_.other;
        encode_(block_, frame);
        block_ = {};
        const BloscHeader made = read_blosc_header(frame, frame.size());
        constexpr std::size_t body = header_size + 4;
        return made.flags == header_.flags && made.typesize == header_.typesize &&
               made.blocksize == old_.block_size(put_) && frame.size() > body &&
               load_little<std::uint32_t>(&frame.data()[header_size]) == body && put(frame.span().subspan(body));
    }

    [[nodiscard]] bool keep_until(std::size_t k) {
        while (put_ < k) {
            const std::size_t start = old_.starts()[put_];
            if (!has_room(start) || !put(old_.bytes().subspan(start, old_.starts()[put_ + 1] - start))) return false;
        }
        return true;
    }

    /// The most bytes of the next encoded block: its splits uncompressed, with their sizes.
    [[nodiscard]] std::size_t most_bytes() const { return 4 * most_splits + old_.block_size(put_); }
    [[nodiscard]] bool has_room(std::size_t at) const {
        return at + most_bytes() <= header_.nbytes + BLOSC_MAX_OVERHEAD;
    }

    [[nodiscard]] bool put(ByteSpan bytes) {
        if (!has_room(end_) || bytes.size() > most_bytes()) return false;
        store_little<std::uint32_t>(out_.data() + header_size + 4 * put_, static_cast<std::uint32_t>(end_));
        std::memcpy(out_.data() + end_, bytes.data(), bytes.size());
        end_ += bytes.size();
        ++put_;
        return true;
    }

    FrameDecoder& old_;
    const BloscHeader& header_;
    const EncodeBlock& encode_;
    CodecScratch& scratch_;
    Buffer& out_;
    std::vector<std::size_t> replaced_;  ///< new bytes per block
    MutableByteSpan block_;              ///< the open block, of number put_
    std::size_t put_ = 0;                ///< blocks appended so far
    std::size_t end_ = 0;
};

}  // namespace

BloscHeader read_blosc_header(ByteSpan front, std::uint64_t available) {
    if (front.size() < header_size) {
        throw corrupt("{} bytes are too few for a blosc frame, whose header alone has {}", front.size(), header_size);
    }
    const auto version = std::to_integer<int>(front[0]);
    if (version != BLOSC_VERSION_FORMAT) {
        throw corrupt("no blosc frame: its first byte, the format version, is {} instead of {}", version,
                      BLOSC_VERSION_FORMAT);
    }
    const BloscHeader header{.compressor_version = std::to_integer<std::uint8_t>(front[1]),
                             .flags = std::to_integer<std::uint8_t>(front[2]),
                             .typesize = std::to_integer<std::uint32_t>(front[3]),
                             .nbytes = load_little<std::uint32_t>(&front[4]),
                             .blocksize = load_little<std::uint32_t>(&front[8]),
                             .cbytes = load_little<std::uint32_t>(&front[12])};
    if (header.cbytes < header_size || header.cbytes > available) {
        throw corrupt("the header says that the frame has {} bytes, but there are {}", header.cbytes, available);
    }
    if (header.nbytes > BLOSC_MAX_BUFFERSIZE) throw corrupt("the sizes in the header are not those of a blosc frame");
    return header;
}

bool edit_blosc_frame(ByteSpan frame, const BloscHeader& ours, const ByteRuns& runs, const EncodeBlock& encode,
                      CodecScratch& scratch, Buffer& out) {
    const SpanSource source(frame, "frame");
    FrameDecoder old(source, scratch);
    const BloscHeader& h = old.header();
    const bool same = h.compressor_version == ours.compressor_version && h.flags == ours.flags &&
                      h.typesize == ours.typesize && h.nbytes == ours.nbytes && h.blocksize == ours.blocksize;
    return same && (h.flags & stored) == 0 && old.read_starts() && FrameEditor(old, encode, scratch, out).edit(runs);
}

bool decode_blosc_runs(const ByteSource& frame, std::uint64_t decoded_size, const ByteRuns& runs,
                       CodecScratch& scratch) {
    FrameDecoder decoder(frame, scratch);
    if (decoder.header().nbytes != decoded_size) {
        throw corrupt("the header says that the frame decodes to {} bytes, expected {}", decoder.header().nbytes,
                      decoded_size);
    }
    return decoder.read_starts() && decoder.decode(runs);
}

}  // namespace tessera
