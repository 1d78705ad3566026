// By the HDF5 File Format Specification, version 3.0. Numbers are little-endian. A chunk is listed by one of: a B-tree
// of version 1 or 2, a fixed or an extensible array, no list at all (chunks in a row), or a single entry.
#include "hdf5_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include <tessera/chunk_grid.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/lookup3.h>
#include <tessera/parallel.h>

namespace tessera {

namespace {

constexpr std::uint64_t no_address = UINT64_MAX;
constexpr std::size_t word = 8;  // bytes of addresses and lengths; other sizes are left to libhdf5
constexpr std::size_t checksum_bytes = 4;

/// A piece of the file, read from its start to its end.
class Hdf5Piece {
public:
    enum class Sum { none, follows };
    /// With Sum::follows, compares the checksum after it. Throws corrupt.
    Hdf5Piece(const ByteSource& file, std::uint64_t offset, std::uint64_t length, Sum sum = Sum::none) {
        const std::uint64_t more = sum == Sum::none ? 0 : checksum_bytes;
        if (offset > file.size() || length > file.size() || length + more > file.size() - offset) {
            throw corrupt("its index leads to byte {}, beyond the end of {} bytes", offset, file.size());
        }
        bytes_ = read_range(file, offset, length + more);
        if (sum == Sum::none) return;
        const auto stored = load_little<std::uint32_t>(bytes_.data() + length);
        bytes_.resize(static_cast<std::size_t>(length));
        const std::uint32_t computed = jenkins_lookup3(bytes_, 0);
        if (stored != computed) {
            throw corrupt("the checksum of its index at byte {} is {:#010x}, but should be {:#010x}", offset, stored,
                          computed);
        }
    }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
    std::uint64_t number(std::size_t size) {
        if (size > left()) throw corrupt("its index ends too early");
        std::uint64_t n = 0;
        for (std::size_t i = size; i-- > 0;) n = n << 8 | std::to_integer<unsigned>(bytes_.data()[at_ + i]);
        at_ += size;
        return n;
    }
    void skip(std::size_t size) {
        if (size > left()) throw corrupt("its index ends too early");
        at_ += size;
    }
    [[nodiscard]] std::size_t at() const { return at_; }
    void go_to(std::size_t at) { at_ = at; }
    [[nodiscard]] bool bit(std::size_t start, std::size_t n) const {
        return (std::to_integer<unsigned>(bytes_.data()[start + n / 8]) << n % 8 & 0x80U) != 0;
    }
    void expect(std::string_view mark) {
        if (mark.size() > left() || std::memcmp(bytes_.data() + at_, mark.data(), mark.size()) != 0) {
            throw corrupt("its index has no {} where one is expected", mark);
        }
        at_ += mark.size();
    }

private:
    Buffer bytes_;
    std::size_t at_ = 0;
};

class IndexReader {
    using Sum = Hdf5Piece::Sum;

public:
    IndexReader(const ByteSource& file, const Shape& shape, const Shape& longest, const Shape& chunks,
                std::int64_t chunk_bytes, bool filtered)
        : file_(file),
          grid_(shape, chunks),
          chunk_bytes_(static_cast<std::uint64_t>(chunk_bytes)),
          filtered_(filtered) {
        for (int d = 0; d < shape.rank(); ++d) {
            most_.push_back(longest[d] < 0 ? -1 : ceil_div(longest[d], chunks[d]));
        }
    }

    Hdf5Chunks read(std::uint64_t header) {
        require_words();
        find_layout(header);
        return std::move(found_);
    }

private:
    void require_words() {
        Hdf5Piece start(file_, 0, std::min<std::uint64_t>(file_.size(), 64));
        start.skip(8);
        const std::uint64_t version = start.number(1);
        start.skip(version < 2 ? 4 : 0);
        const bool plain = version <= 3 && start.number(1) == word && start.number(1) == word;
        if (!plain) throw unsupported("addresses of another size");
    }

    // ---- the object header

    void find_layout(std::uint64_t header) {
        Hdf5Piece start(file_, header, std::min<std::uint64_t>(64, file_.size() - std::min(header, file_.size())));
        const bool old = start.number(1) == 1;
        if (old) {
            start.skip(7);
            const std::uint64_t size = start.number(4);
            require_header(size, 0);
            Hdf5Piece block(file_, header + 16, size);
            messages(block, true, false, 0);
        } else {
            start.go_to(0);
            start.expect("OHDR");
            if (start.number(1) != 2) throw unsupported("an object header of another version");
            const std::uint64_t flags = start.number(1);
            if ((flags & 0x20U) != 0) start.skip(16);
            if ((flags & 0x10U) != 0) start.skip(4);
            const std::uint64_t size = start.number(std::size_t{1} << (flags & 3U));
            require_header(size, 0);
            Hdf5Piece block(file_, header, start.at() + size, Sum::follows);
            block.skip(start.at());
            messages(block, false, (flags & 4U) != 0, 0);
        }
        if (!has_layout_) throw corrupt("its object header has no layout");
    }

    static void require_header(std::uint64_t size, int depth) {
        constexpr int most_blocks = 1000;
        constexpr std::uint64_t most_bytes = 64 << 20;
        if (depth > most_blocks || size > most_bytes) throw corrupt("its object header goes on too long");
    }

    void messages(Hdf5Piece& block, bool old, bool ordered, int depth) {
        const std::size_t prefix = old ? 8 : ordered ? 6 : 4;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> more;
        while (block.left() >= prefix && !has_layout_) {
            const std::uint64_t type = block.number(old ? 2 : 1);
            const std::uint64_t length = block.number(2);
            const std::uint64_t flags = block.number(1);
            block.skip(old ? 3 : ordered ? 2 : 0);
            if (length > block.left()) break;
            const std::size_t end = block.at() + length;
            constexpr std::uint64_t layout_message = 8, continuation = 16;
            if (type == layout_message) {
                if ((flags & 2U) != 0) throw unsupported("a layout that lies elsewhere");
                has_layout_ = true;
                layout(block);
                return;
            }
            if (type == continuation && length >= 2 * word) {
                const std::uint64_t at = block.number(word);
                more.emplace_back(at, block.number(word));
            }
            block.skip(end - block.at());
        }
        for (const auto& [at, length] : more) {
            if (has_layout_) return;
            require_header(length, depth + 1);
            if (!old && length < 8) throw corrupt("its object header goes on with {} bytes", length);
            Hdf5Piece next(file_, at, old ? length : length - checksum_bytes, old ? Sum::none : Sum::follows);
            if (!old) next.expect("OCHK");
            messages(next, old, ordered, depth + 1);
        }
    }

    void layout(Hdf5Piece& message) {
        const std::uint64_t version = message.number(1);
        constexpr std::uint64_t chunked = 2;
        const auto rank = static_cast<std::uint64_t>(grid_.shape().rank());
        if (version == 1 || version == 2) {
            message.skip(1);
            if (message.number(1) != chunked) throw corrupt("its layout is not chunked");
            message.skip(5);
            return old_tree(message.number(word));
        }
        if (message.number(1) != chunked) throw corrupt("its layout is not chunked");
        if (version == 3) {
            if (message.number(1) != rank + 1) throw corrupt("its layout has another number of dimensions");
            return old_tree(message.number(word));
        }
        if (version != 4) throw unsupported("a layout of version {}", version);
        newest_layout(message, rank);
    }

    /// After the version and the class.
    void newest_layout(Hdf5Piece& message, std::uint64_t rank) {
        const std::uint64_t flags = message.number(1);
        found_.edges_unfiltered = (flags & 1U) != 0;
        if (message.number(1) != rank + 1) throw corrupt("its layout has another number of dimensions");
        message.skip((rank + 1) * message.number(1));
        switch (message.number(1)) {
            case 1: {
                const bool has_size = (flags & 2U) != 0;
                const std::uint64_t size = has_size ? message.number(word) : chunk_bytes_;
                const auto mask = static_cast<std::uint32_t>(has_size ? message.number(4) : 0);
                return add(Index::filled(grid_.shape().rank(), 0), message.number(word), size, mask);
            }
            case 2:
                return in_a_row(message.number(word));
            case 3:
                message.skip(1);
                return fixed_array(message.number(word));
            case 4:
                message.skip(5);
                return extensible_array(message.number(word));
            case 5:
                message.skip(6);
                return new_tree(message.number(word));
            default:
                throw unsupported("an unknown index of chunks");
        }
    }

    // ---- entries

    void add(const Index& at, std::uint64_t offset, std::uint64_t size, std::uint32_t mask) {
        if (offset == no_address || !in_grid(grid_, at)) return;  // a chunk that was cut off may still be listed
        const std::int64_t number = grid_.linear(at);
        if (in_order_ && !found_.chunks.empty() && number <= found_.chunks.back().number) {
            throw corrupt("its index has chunk {} more than once, or in the wrong place", at.to_string());
        }
        if (offset > file_.size() || size > file_.size() - offset) {
            throw corrupt("chunk {} is said to have {} bytes at byte {}, beyond the end of {} bytes", at.to_string(),
                          size, offset, file_.size());
        }
        constexpr std::size_t step = 4096;
        if (found_.chunks.size() % step == 0) {
            require_not_stopped();
            found_.held.add(step * sizeof(Hdf5Chunk) * 2);
        }
        found_.chunks.push_back({number, offset, size, mask});
    }

    /// An element of an array of chunks: its address, and if filtered its size and mask.
    void element(Hdf5Piece& piece, std::size_t bytes, const Index& at) {
        const std::uint64_t offset = piece.number(word);
        if (!filtered_) return add(at, offset, chunk_bytes_, 0);
        const std::uint64_t size = piece.number(bytes - word - 4);
        add(at, offset, size, static_cast<std::uint32_t>(piece.number(4)));
    }

    void require_element(std::size_t bytes) const {
        if (filtered_ ? bytes <= word + 4 || bytes > word + 4 + word : bytes != word) {
            throw corrupt("its index has entries of {} bytes", bytes);
        }
    }

    void count_node() {
        constexpr std::uint64_t least = 16;
        if (++nodes_ > file_.size() / least + 1) throw corrupt("its index leads back to itself");
    }

    /// The place of element `n` of an array whose slowest axis is `first`, and the others follow in order.
    [[nodiscard]] Index place(std::uint64_t n, int first) const {
        const int rank = grid_.shape().rank();
        Index at = Index::filled(rank, 0);
        for (int i = rank; i-- > 0;) {
            const int d = i == 0 ? first : i <= first ? i - 1 : i;
            const std::int64_t length = most_[d];
            if (i == 0 || length <= 0) {
                at[d] = static_cast<std::int64_t>(std::min<std::uint64_t>(n, INT64_MAX));
                break;
            }
            at[d] = static_cast<std::int64_t>(n % static_cast<std::uint64_t>(length));
            n /= static_cast<std::uint64_t>(length);
        }
        return at;
    }

    // ---- indices

    void old_tree(std::uint64_t root) {
        if (root != no_address) old_node(root, -1);
    }

    void old_node(std::uint64_t offset, int expected) {
        count_node();
        const int rank = grid_.shape().rank();
        Hdf5Piece head(file_, offset, 8);
        head.expect("TREE");
        const std::uint64_t type = head.number(1);
        const auto level = static_cast<int>(head.number(1));
        const std::uint64_t entries = head.number(2);
        if (type != 1 || (expected >= 0 && level != expected)) throw corrupt("its index has a node of another kind");
        const std::uint64_t key = 8 + 8 * (static_cast<std::uint64_t>(rank) + 1);
        Hdf5Piece node(file_, offset + 8 + 2 * word, entries * (key + word));
        for (std::uint64_t i = 0; i < entries; ++i) {
            const std::uint64_t size = node.number(4);
            const auto mask = static_cast<std::uint32_t>(node.number(4));
            Index at = Index::filled(rank, 0);
            for (int d = 0; d < rank; ++d) {
                const std::uint64_t first = node.number(8);
                const auto length = static_cast<std::uint64_t>(grid_.chunks()[d]);
                if (level == 0 && first % length != 0) {
                    throw corrupt("its index has a chunk at {} of dimension {}, which is no multiple of {}", first, d,
                                  length);
                }
                at[d] = static_cast<std::int64_t>(first / length);
            }
            if (node.number(8) != 0 && level == 0) throw corrupt("its index has a chunk within an element");
            const std::uint64_t child = node.number(word);
            if (level > 0) {
                old_node(child, level - 1);
            } else {
                add(at, child, size, mask);
            }
        }
    }

    /// Bytes of a number up to `most`.
    static std::size_t bytes_for(std::uint64_t most) {
        return (static_cast<std::size_t>(std::bit_width(most) - (most > 0 ? 1 : 0))) / 8 + 1;
    }

    struct Level {
        std::uint64_t most = 0, in_all = 0;  ///< records in a node, and below it
        std::size_t in_all_bytes = 0;
    };

    void new_tree(std::uint64_t offset) {
        if (offset == no_address) return;
        Hdf5Piece head(file_, offset, 4 + 2 + 4 + 2 + 2 + 2 + word + 2 + word, Sum::follows);
        head.expect("BTHD");
        head.skip(1);
        constexpr std::uint64_t plain_records = 10, filtered_records = 11;
        const std::uint64_t type = head.number(1);
        if (type != (filtered_ ? filtered_records : plain_records)) throw corrupt("its index has other records");
        node_bytes_ = head.number(4);
        record_bytes_ = head.number(2);
        const std::uint64_t depth = head.number(2);
        head.skip(2);
        const std::uint64_t root = head.number(word);
        const std::uint64_t records = head.number(2);
        const std::uint64_t offsets = 8 * static_cast<std::uint64_t>(grid_.shape().rank());
        constexpr std::uint64_t prefix = 10, deepest = 32;
        if (record_bytes_ <= offsets || node_bytes_ <= prefix + record_bytes_ || depth > deepest) {
            throw corrupt("its index says sizes that cannot be");
        }
        require_element(record_bytes_ - offsets);
        levels_ = {{.most = (node_bytes_ - prefix) / record_bytes_}};
        levels_[0].in_all = levels_[0].most;
        count_bytes_ = bytes_for(levels_[0].most);
        for (std::uint64_t u = 1; u <= depth; ++u) {
            const Level& below = levels_.back();
            const std::uint64_t pointer = word + count_bytes_ + below.in_all_bytes;
            if (node_bytes_ <= prefix + pointer) throw corrupt("its index says sizes that cannot be");
            Level level{.most = (node_bytes_ - prefix - pointer) / (record_bytes_ + pointer)};
            level.in_all = (level.most + 1) * std::min(below.in_all, UINT64_MAX / (node_bytes_ + 1)) + level.most;
            level.in_all_bytes = bytes_for(level.in_all);
            levels_.push_back(level);
        }
        if (root != no_address) new_node(root, depth, records);
    }

    void new_node(std::uint64_t offset, std::uint64_t depth, std::uint64_t records) {
        count_node();
        if (records > levels_[depth].most) throw corrupt("its index has a node of {} records", records);
        constexpr std::size_t prefix = 6;
        const std::size_t entries = prefix + records * record_bytes_;
        const std::size_t below = depth > 1 ? levels_[depth - 1].in_all_bytes : 0;
        const std::size_t pointers = depth == 0 ? 0 : (records + 1) * (word + count_bytes_ + below);
        if (entries + pointers + checksum_bytes > node_bytes_) throw corrupt("its index says sizes that cannot be");
        Hdf5Piece node(file_, offset, entries + pointers, Sum::follows);
        node.expect(depth == 0 ? "BTLF" : "BTIN");
        node.skip(2);
        for (std::uint64_t i = 0; i <= records; ++i) {
            if (depth > 0) {
                const std::size_t here = node.at();
                node.go_to(entries + i * (word + count_bytes_ + below));
                const std::uint64_t child = node.number(word);
                new_node(child, depth - 1, node.number(count_bytes_));
                node.go_to(here);
            }
            if (i < records) record(node);
        }
    }

    void record(Hdf5Piece& node) {
        Index index = Index::filled(grid_.shape().rank(), 0);
        const std::size_t bytes = record_bytes_ - 8 * static_cast<std::size_t>(index.rank());
        const std::uint64_t at = node.number(word);
        const std::uint64_t size = filtered_ ? node.number(bytes - word - 4) : chunk_bytes_;
        const auto mask = static_cast<std::uint32_t>(filtered_ ? node.number(4) : 0);
        for (int d = 0; d < index.rank(); ++d) {
            index[d] = static_cast<std::int64_t>(std::min<std::uint64_t>(node.number(8), INT64_MAX));
        }
        add(index, at, size, mask);
    }

    void in_a_row(std::uint64_t offset) {
        if (offset == no_address) return;
        if (filtered_) throw corrupt("its chunks are said to have one size, and filters");
        for (std::int64_t n = 0; n < grid_.chunk_count(); ++n) {
            const Index at = grid_.index(n);
            std::uint64_t place = 0;
            for (int d = 0; d < at.rank(); ++d) {
                place = place * static_cast<std::uint64_t>(most_[d]) + static_cast<std::uint64_t>(at[d]);
            }
            add(at, offset + place * chunk_bytes_, chunk_bytes_, 0);
        }
    }

    void fixed_array(std::uint64_t offset) {
        if (offset == no_address) return;
        Hdf5Piece head(file_, offset, 4 + 4 + word + word, Sum::follows);
        head.expect("FAHD");
        head.skip(2);
        const std::size_t bytes = head.number(1);
        const std::uint64_t page_bits = head.number(1);
        const std::uint64_t count = head.number(word);
        const std::uint64_t block = head.number(word);
        require_element(bytes);
        if (block == no_address) return;
        if (page_bits > 32 || count > file_.size() / bytes + (std::uint64_t{1} << 32)) {
            throw corrupt("its index says sizes that cannot be");
        }
        const std::uint64_t page = std::uint64_t{1} << page_bits;
        const std::uint64_t pages = count > page ? (count + page - 1) / page : 0;
        const std::uint64_t bitmap = (pages + 7) / 8;
        const std::uint64_t prefix = 4 + 2 + word;
        Hdf5Piece start(file_, block, prefix + bitmap + (pages == 0 ? count * bytes : 0), Sum::follows);
        start.expect("FADB");
        start.skip(2 + word);
        if (pages == 0) return elements(start, bytes, 0, count, 0);
        std::uint64_t at = block + prefix + bitmap + checksum_bytes;
        for (std::uint64_t p = 0; p < pages; ++p) {
            const std::uint64_t here = std::min(page, count - p * page);
            if (start.bit(prefix, p)) {
                Hdf5Piece piece(file_, at, here * bytes, Sum::follows);
                elements(piece, bytes, p * page, here, 0);
            }
            at += page * bytes + checksum_bytes;
        }
    }

    void elements(Hdf5Piece& piece, std::size_t bytes, std::uint64_t first, std::uint64_t count, int axis) {
        for (std::uint64_t i = 0; i < count; ++i) element(piece, bytes, place(first + i, axis));
    }

    /// How the elements of an extensible array lie in its blocks, by its header.
    struct Extensible {
        std::size_t bytes = 0;  ///< of an element
        std::uint64_t most_bits = 0;
        std::uint64_t direct = 0;  ///< elements in the index block
        std::uint64_t least_elements = 0;
        std::uint64_t least_pointers = 0;
        std::uint64_t page_bits = 0;
        std::uint64_t end = 0;  ///< above the largest element that was ever set
        std::uint64_t index = 0;
        int axis = 0;  ///< the unlimited dimension, which is the slowest

        [[nodiscard]] std::uint64_t blocks() const {
            return 1 + most_bits - static_cast<unsigned>(std::countr_zero(least_elements));
        }
        /// Blocks whose data blocks the index block names.
        [[nodiscard]] std::uint64_t near() const { return 2 * static_cast<unsigned>(std::countr_zero(least_pointers)); }
        [[nodiscard]] std::size_t offset_bytes() const { return (most_bits + 7) / 8; }
    };

    Extensible read_extensible(std::uint64_t offset) {
        Hdf5Piece head(file_, offset, 4 + 8 + 6 * word + word, Sum::follows);
        head.expect("EAHD");
        head.skip(2);
        Extensible e;
        e.bytes = head.number(1);
        e.most_bits = head.number(1);
        e.direct = head.number(1);
        e.least_elements = head.number(1);
        e.least_pointers = head.number(1);
        e.page_bits = head.number(1);
        head.skip(4 * word);
        e.end = head.number(word);
        head.skip(word);
        e.index = head.number(word);
        require_element(e.bytes);
        if (e.index == no_address) return e;
        if (!std::has_single_bit(e.least_elements) || !std::has_single_bit(e.least_pointers) || e.most_bits > 63 ||
            e.page_bits > 63 || e.most_bits < static_cast<unsigned>(std::countr_zero(e.least_elements))) {
            throw corrupt("its index says sizes that cannot be");
        }
        while (e.axis + 1 < grid_.shape().rank() && most_[e.axis] >= 0) ++e.axis;
        return e;
    }

    void extensible_array(std::uint64_t offset) {
        if (offset == no_address) return;
        const Extensible e = read_extensible(offset);
        if (e.index == no_address) return;
        in_order_ = e.axis == 0;
        const std::uint64_t pointers = 2 * (e.least_pointers - 1);
        const std::uint64_t far = e.blocks() - std::min(e.near(), e.blocks());
        Hdf5Piece start(file_, e.index, 4 + 2 + word + e.direct * e.bytes + (pointers + far) * word, Sum::follows);
        start.expect("EAIB");
        start.skip(2 + word);
        elements(start, e.bytes, 0, e.direct, e.axis);
        std::uint64_t first = e.direct;
        for (std::uint64_t b = 0; b < e.blocks() && first < e.end; ++b) super_block(start, e, b, first);
    }

    /// Reads what block `b` holds, from element `first` on, and moves that on.
    void super_block(Hdf5Piece& start, const Extensible& e, std::uint64_t b, std::uint64_t& first) {
        const std::uint64_t many = std::uint64_t{1} << b / 2;
        const std::uint64_t each = (std::uint64_t{1} << (b + 1) / 2) * e.least_elements;
        const std::uint64_t page = std::uint64_t{1} << e.page_bits;
        const std::uint64_t pages = each > page ? each / page : 0;
        if (b < e.near()) {
            if (pages != 0) throw unsupported("an index of chunks with small pages");
            for (std::uint64_t i = 0; i < many; ++i, first += each) {
                data_block(start.number(word), e, first, each, 0);
            }
            return;
        }
        const std::uint64_t super = start.number(word);
        if (super == no_address) {
            first += many * each;
            return;
        }
        count_node();
        const std::uint64_t bitmap = (pages + 7) / 8;
        const std::uint64_t prefix = 4 + 2 + word + e.offset_bytes();
        if (many > file_.size() / word || bitmap > file_.size()) throw corrupt("its index says sizes that cannot be");
        Hdf5Piece block(file_, super, prefix + many * (bitmap + word), Sum::follows);
        block.expect("EASB");
        block.skip(prefix - 4 + many * bitmap);
        for (std::uint64_t i = 0; i < many && first < e.end; ++i, first += each) {
            data_block(block.number(word), e, first, each, pages, &block, prefix + i * bitmap);
        }
    }

    void data_block(std::uint64_t offset, const Extensible& e, std::uint64_t first, std::uint64_t count,
                    std::uint64_t pages, const Hdf5Piece* super = nullptr, std::size_t bitmap = 0) {
        if (offset == no_address) return;
        count_node();
        const std::uint64_t prefix = 4 + 2 + word + e.offset_bytes();
        if (count > file_.size() / e.bytes) throw corrupt("its index says sizes that cannot be");
        Hdf5Piece start(file_, offset, prefix + (pages == 0 ? count * e.bytes : 0), Sum::follows);
        start.expect("EADB");
        start.skip(2 + word + e.offset_bytes());
        if (pages == 0) return elements(start, e.bytes, first, count, e.axis);
        const std::uint64_t page = count / pages;
        std::uint64_t at = offset + prefix + checksum_bytes;
        for (std::uint64_t p = 0; p < pages; ++p, at += page * e.bytes + checksum_bytes) {
            if (!super->bit(bitmap, p)) continue;
            Hdf5Piece piece(file_, at, page * e.bytes, Sum::follows);
            elements(piece, e.bytes, first + p * page, page, e.axis);
        }
    }

    const ByteSource& file_;
    ChunkGrid grid_;
    std::uint64_t chunk_bytes_;
    bool filtered_;
    Shape most_;  ///< chunks along each dimension at its largest length; -1: unlimited
    Hdf5Chunks found_;
    bool has_layout_ = false;
    bool in_order_ = true;  ///< the index lists chunks in C order, each once
    std::uint64_t nodes_ = 0, node_bytes_ = 0, record_bytes_ = 0;
    std::size_t count_bytes_ = 0;
    std::vector<Level> levels_;
};

}  // namespace

std::optional<std::uint64_t> find_hdf5(const ByteSource& file) {
    constexpr std::string_view mark = "\x89HDF\r\n\x1a\n";
    for (std::uint64_t at = 0; at + mark.size() <= file.size(); at = at == 0 ? 512 : 2 * at) {
        const Buffer found = read_range(file, at, mark.size());
        if (std::memcmp(found.data(), mark.data(), mark.size()) == 0) return at;
    }
    return std::nullopt;
}

Hdf5Chunks read_hdf5_index(const ByteSource& file, std::uint64_t header, const Shape& shape, const Shape& longest,
                           const Shape& chunks, std::int64_t chunk_bytes, bool filtered) {
    const std::uint64_t base = find_hdf5(file).value_or(0);
    const auto inner = slice_source({std::shared_ptr<void>(), &file}, base, file.size() - base, file.name());
    Hdf5Chunks found = IndexReader(*inner, shape, longest, chunks, chunk_bytes, filtered).read(header);
    for (Hdf5Chunk& chunk : found.chunks) chunk.offset += base;
    return found;
}

}  // namespace tessera
