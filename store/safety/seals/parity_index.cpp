#include "parity_index.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "keys.h"

namespace tessera {

namespace {

constexpr std::array<unsigned char, 8> index_magic{0x89, 'T', 'S', 'P', '\r', '\n', 0x1A, '\n'};
constexpr std::array<unsigned char, 8> root_magic{0x89, 'T', 'S', 'R', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t major_version = 1;
constexpr std::size_t index_header = 64;
constexpr std::size_t root_header = 128;
constexpr std::size_t file_record = 64;
constexpr std::size_t piece_record = 32;
constexpr std::size_t segment_record = 48;
constexpr std::size_t hash_size = 32;
constexpr std::uint64_t size_limit = std::uint64_t{1} << 30;  ///< of an index, of a root

template <class T>
T number(const std::byte* p) {
    return load_little<T>(p);
}

Sha256 hash_of(ByteSpan bytes) {
    Hasher hasher;
    hasher.add(bytes.data(), bytes.size());
    return hasher.finish();
}

Sha256 load_sum(const std::byte* p) {
    Sha256 sum{};
    std::memcpy(sum.data(), p, sum.size());
    return sum;
}

void store_sum(std::byte* p, const Sha256& sum) {
    std::memcpy(p, sum.data(), sum.size());
}

std::size_t padded(std::size_t n) {
    return (n + 7) / 8 * 8;
}

void write_header(std::byte* p, const std::array<unsigned char, 8>& magic, std::size_t header, std::uint64_t size) {
    std::memcpy(p, magic.data(), magic.size());
    store_little<std::uint16_t>(p + 8, major_version);
    store_little<std::uint32_t>(p + 12, static_cast<std::uint32_t>(header));
    store_little<std::uint64_t>(p + 16, size);
}

void write_hash(Buffer& bytes) {
    const std::size_t end = bytes.size() - hash_size;
    store_sum(bytes.data() + end, hash_of(bytes.span().first(end)));
}

void require(bool right, std::string_view what) {
    if (!right) throw corrupt(std::string(what));
}

/// The content of a root or an index, after its SHA-256 was compared.
Buffer read_checked(const ByteSource& file, const std::array<unsigned char, 8>& magic, std::size_t header) {
    if (file.size() < header + hash_size) {
        throw corrupt("{} bytes are too few, expected at least {}", file.size(), header + hash_size);
    }
    std::array<std::byte, 24> head{};
    file.read(0, head);
    require(std::memcmp(head.data(), magic.data(), magic.size()) == 0, "does not begin as Tessera's parity does");
    const auto size = number<std::uint64_t>(&head[16]);
    if (size < header + hash_size || size > file.size() || size > size_limit) {
        throw corrupt("claims {} bytes, but {} are there", size, file.size());
    }
    Buffer bytes = read_range(file, 0, size);
    const std::size_t end = bytes.size() - hash_size;
    require(load_sum(bytes.data() + end) == hash_of(bytes.span().first(end)), "its SHA-256 is not that of its bytes");
    // Only after the SHA-256: a damaged number is no newer version.
    if (const auto major = number<std::uint16_t>(&head[8]); major != major_version) {
        throw unsupported("has major version {}, expected {}: a newer Tessera reads it", major, major_version);
    }
    require(number<std::uint32_t>(&head[12]) == header, "has a header of another size");
    return bytes;
}

// ---- checks of an index

void check_numbers(const Segment& s) {
    require(s.block_size >= 512 && s.block_size <= (1U << 20) && s.block_size % 8 == 0,
            "has blocks of an impossible size");
    require(s.groups >= 1 && s.parity >= 1 && s.rows >= 1, "has no groups or no parity");
    require(std::uint64_t{s.rows} + s.parity <= 255, "has more than 255 blocks in a group");
    const std::uint64_t rows = std::max<std::uint64_t>(1, (std::uint64_t{s.blocks} + s.groups - 1) / s.groups);
    require(rows == s.rows, "its blocks and groups do not agree");
    require(s.groups <= std::max(1U, s.blocks), "has more groups than blocks");
}

/// Throws unless a seal can have the path: none of Tessera's own, and none that leads out of the root.
void check_path(const std::string& path) {
    require_key(path);
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        if (is_own_name(std::string_view(path).substr(begin, end - begin))) {
            throw corrupt("names {}, which no seal covers", path);
        }
        begin = end + 1;
    }
}

void check_distinct(const std::vector<SealedFile>& files) {
    std::vector<std::string_view> paths(files.size());
    std::ranges::transform(files, paths.begin(), &SealedFile::path);
    if (!std::ranges::is_sorted(paths)) std::ranges::sort(paths);
    require(std::ranges::adjacent_find(paths) == paths.end(), "names a file twice");
}

void check_pieces(const Segment& s) {
    const Piece* before = nullptr;
    for (const Piece& piece : s.pieces) {
        require(piece.file < s.files.size() && piece.block < s.blocks, "a piece is of no file or no block");
        require(piece.length > 0 && piece.place % 8 == 0 && std::uint64_t{piece.place} + piece.length <= s.block_size,
                "a piece does not fit into its block");
        const std::uint64_t size = s.files[piece.file].size;
        require(piece.offset <= size && piece.length <= size - piece.offset, "a piece lies beyond its file");
        if (before != nullptr) {
            require(before->file <= piece.file, "pieces are not sorted");
            require(before->file < piece.file || before->offset + before->length <= piece.offset,
                    "pieces of one file overlap");
        }
        before = &piece;
    }
    std::vector<std::uint32_t> order(s.pieces.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {},
                      [&](std::uint32_t i) { return std::uint64_t{s.pieces[i].block} << 32U | s.pieces[i].place; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const Piece& a = s.pieces[order[i - 1]];
        const Piece& b = s.pieces[order[i]];
        require(a.block < b.block || a.place + a.length <= b.place, "pieces overlap in a block");
    }
}

SealedFile load_file(const std::byte* p, ByteSpan names) {
    SealedFile file;
    file.size = number<std::uint64_t>(p);
    file.modified = number<std::int64_t>(p + 8);
    file.mode = number<std::uint32_t>(p + 16) & 07777U;
    const std::uint64_t length = number<std::uint32_t>(p + 20);
    const auto at = number<std::uint64_t>(p + 24);
    require(at <= names.size() && length <= names.size() - at, "a name lies beyond the names");
    file.path.assign(reinterpret_cast<const char*>(names.data() + at), length);
    file.sum = load_sum(p + 32);
    return file;
}

std::vector<SealedFile> load_files(const std::byte* p, std::uint64_t count, ByteSpan names) {
    std::vector<SealedFile> files;
    files.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i, p += file_record) {
        files.push_back(load_file(p, names));
        check_path(files.back().path);
    }
    check_distinct(files);
    return files;
}

std::vector<Piece> load_pieces(const std::byte* p, std::uint64_t count) {
    std::vector<Piece> pieces;
    pieces.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i, p += piece_record) {
        pieces.push_back({number<std::uint32_t>(p), number<std::uint32_t>(p + 4), number<std::uint64_t>(p + 8),
                          number<std::uint32_t>(p + 16), number<std::uint32_t>(p + 20), number<std::uint32_t>(p + 24)});
    }
    return pieces;
}

}  // namespace

std::string parity_key(const Sha256& sum, std::uint32_t row) {
    return fmt::format("{}/{}.{:03}", parity_folder, hex(sum).substr(0, 16), row);
}

std::string root_key(int copy) {
    return fmt::format("{}/root.{}", parity_folder, copy);
}

bool is_segment_file(std::string_view name) {
    const auto all_of = [](std::string_view part, std::string_view allowed) {
        return part.find_first_not_of(allowed) == part.npos;
    };
    return name.size() == 20 && name[16] == '.' && all_of(name.substr(0, 16), "0123456789abcdef") &&
           all_of(name.substr(17), "0123456789");
}

bool is_parity_file(std::string_view name) {
    if (name == unfinished_parity || is_segment_file(name)) return true;
    const std::string key = join_key(parity_folder, name);
    return key == root_key(0) || key == root_key(1) || key == root_key(2);
}

std::uint64_t parity_offset(const Segment& segment, std::uint64_t index_size, std::uint32_t group) {
    return (index_size + 63) / 64 * 64 + std::uint64_t{group} * segment.block_size;
}

std::uint32_t crc32_of(ByteSpan bytes, std::uint32_t before) {
    return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

bool read_intact(const ByteSource& file, std::uint64_t at, Buffer& bytes, std::uint32_t crc) {
    try {
        file.read(at, bytes.span());
    } catch (const Error& e) {
        if (e.code() == ErrorCode::budget) throw;
        return false;  // a bad sector
    }
    return crc32_of(bytes.span()) == crc;
}

Sha256 index_sum(ByteSpan index) {
    return load_sum(index.data() + index.size() - hash_size);
}

namespace {

std::size_t names_size(const Segment& s) {
    std::size_t names = 0;
    for (const SealedFile& file : s.files) names += file.path.size();
    return names;
}

/// Stores the records of a segment's files from `p` on, and their names from `names` on.
void store_files(std::byte* p, std::byte* names, const std::vector<SealedFile>& files) {
    std::size_t name_at = 0;
    for (const SealedFile& file : files) {
        store_little(p, file.size);
        store_little(p + 8, file.modified);
        store_little(p + 16, file.mode);
        store_little(p + 20, static_cast<std::uint32_t>(file.path.size()));
        store_little<std::uint64_t>(p + 24, name_at);
        store_sum(p + 32, file.sum);
        std::ranges::copy(std::as_bytes(std::span(file.path)), names + name_at);
        name_at += file.path.size();
        p += file_record;
    }
}

void store_pieces(std::byte* p, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
        store_little(p, piece.file);
        store_little(p + 4, piece.block);
        store_little(p + 8, piece.offset);
        store_little(p + 16, piece.length);
        store_little(p + 20, piece.place);
        store_little(p + 24, piece.crc);
        p += piece_record;
    }
}

}  // namespace

std::uint64_t segment_index_size(const Segment& s) {
    return index_header + s.files.size() * file_record + s.pieces.size() * piece_record +
           padded(std::size_t{s.parity} * s.groups * 4) + padded(names_size(s)) + hash_size;
}

Buffer encode_segment_index(const Segment& s) {
    const std::size_t names = names_size(s);
    const std::size_t pieces_at = index_header + s.files.size() * file_record;
    const std::size_t crcs_at = pieces_at + s.pieces.size() * piece_record;
    const std::size_t names_at = crcs_at + padded(s.parity_crc.size() * 4);
    Buffer bytes(segment_index_size(s));
    std::ranges::fill(bytes.span(), std::byte{0});
    std::byte* p = bytes.data();
    write_header(p, index_magic, index_header, bytes.size());
    const std::array<std::uint32_t, 7> numbers{s.block_size,
                                               s.rows,
                                               s.parity,
                                               s.groups,
                                               s.blocks,
                                               static_cast<std::uint32_t>(s.files.size()),
                                               static_cast<std::uint32_t>(s.pieces.size())};
    for (std::size_t i = 0; i < numbers.size(); ++i) store_little(p + 24 + 4 * i, numbers[i]);
    store_little<std::uint64_t>(p + 56, padded(names));
    store_files(bytes.data() + index_header, bytes.data() + names_at, s.files);
    store_pieces(bytes.data() + pieces_at, s.pieces);
    p = bytes.data() + crcs_at;
    for (const std::uint32_t crc : s.parity_crc) {
        store_little(p, crc);
        p += 4;
    }
    write_hash(bytes);
    return bytes;
}

NamedSegment read_named_segment(const ByteSource& source) {
    const Buffer bytes = read_checked(source, index_magic, index_header);
    const std::byte* p = bytes.data();
    NamedSegment named;
    Segment& s = named.segment;
    std::array<std::uint32_t, 7> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number<std::uint32_t>(p + 24 + 4 * i);
    s.block_size = numbers[0];
    s.rows = numbers[1];
    s.parity = numbers[2];
    s.groups = numbers[3];
    s.blocks = numbers[4];
    const std::uint64_t files = numbers[5];
    const std::uint64_t pieces = numbers[6];
    const auto names = number<std::uint64_t>(p + 56);
    check_numbers(s);
    const std::uint64_t crcs = std::uint64_t{s.parity} * s.groups;
    const std::uint64_t crcs_at = index_header + files * file_record + pieces * piece_record;
    const std::uint64_t names_at = crcs_at + padded(crcs * 4);
    require(names <= size_limit && names_at + names + hash_size == bytes.size(), "its tables do not fill it exactly");
    s.files = load_files(p + index_header, files, bytes.span().subspan(names_at, names));
    s.pieces = load_pieces(p + index_header + files * file_record, pieces);
    p += crcs_at;
    s.parity_crc.reserve(crcs);
    for (std::uint64_t i = 0; i < crcs; ++i, p += 4) s.parity_crc.push_back(number<std::uint32_t>(p));
    check_pieces(s);
    named.name = {index_sum(bytes), bytes.size(), s.parity};
    return named;
}

// ---- the root

Buffer encode_root(const ParityRoot& root) {
    Buffer bytes(root_header + root.segments.size() * segment_record + hash_size);
    std::ranges::fill(bytes.span(), std::byte{0});
    std::byte* p = bytes.data();
    write_header(p, root_magic, root_header, bytes.size());
    store_little(p + 24, static_cast<std::uint32_t>(root.segments.size()));
    store_little(p + 28, static_cast<std::uint32_t>(root.redundancy.kind));
    store_little(p + 32, root.redundancy.amount);
    store_little(p + 40, root.files);
    store_little(p + 48, root.bytes);
    store_little(p + 56, root.sealed);
    store_sum(p + 64, root.manifest);
    p += root_header;
    for (const SegmentName& segment : root.segments) {
        store_sum(p, segment.sum);
        store_little(p + 32, segment.index_size);
        store_little(p + 40, segment.parity);
        p += segment_record;
    }
    write_hash(bytes);
    return bytes;
}

ParityRoot read_root(const ByteSource& source) {
    const Buffer bytes = read_checked(source, root_magic, root_header);
    const std::byte* p = bytes.data();
    ParityRoot root;
    const std::uint64_t segments = number<std::uint32_t>(p + 24);
    require(bytes.size() == root_header + segments * segment_record + hash_size, "its segments do not fill it exactly");
    const auto kind = number<std::uint32_t>(p + 28);
    require(kind == 1 || kind == 2, "asks for a redundancy of an unknown kind");
    root.redundancy = {static_cast<Redundancy::Kind>(kind), number<std::uint32_t>(p + 32)};
    root.files = number<std::uint64_t>(p + 40);
    root.bytes = number<std::uint64_t>(p + 48);
    root.sealed = number<std::int64_t>(p + 56);
    root.manifest = load_sum(p + 64);
    p += root_header;
    for (std::uint64_t i = 0; i < segments; ++i, p += segment_record) {
        root.segments.push_back({load_sum(p), number<std::uint64_t>(p + 32), number<std::uint32_t>(p + 40)});
        require(root.segments.back().parity >= 1 && root.segments.back().parity <= 254, "has a segment without parity");
    }
    return root;
}

}  // namespace tessera
