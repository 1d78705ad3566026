// Layout of a journal, all numbers little-endian, every field at a multiple of its size:
//
//   0   8 bytes  89 54 53 4A 0D 0A 1A 0A: "\x89TSJ\r\n\x1a\n", which text modes and 7-bit lines damage visibly
//   8   u16      major version, 2: a newer one is refused. In version 1 the names of staged values were only their
//                numbers, which the next batch had again
//   10  u16      minor version, 0: a newer one is read
//   12  u32      size of this header, 64: where the entries begin
//   16  u64      id of the batch
//   24  u64      number of entries
//   32  u64      bytes of all entries
//   40  u32      flags; bit 0: old values are kept in .tessera/undo; bit 1: it reverts a batch that was given up; bit
//   2:
//                it lies in a group
//   44  u32      in an array of a batch over a group: how many folders above the array the group is; otherwise 0
//   48  16 bytes zeros
//   64           the entries
//   …   32 bytes SHA-256 of all that stands before it
//
// An entry, its length a multiple of 8:
//
//   0   u32      1 a value is put, 2 a key is erased, 3 an array of the group has a journal of the same id
//   4   u32      flags; bit 0: the key was there before; bit 1: the value is identified by its bytes, because
//                the file system's times are too coarse
//   8   u64      number of the staged value: its name in .tessera/batch is ID.NUMBER, the id of 16 hexadecimal digits
//   16  u64      its size in bytes
//   24  i64      its time of modification, nanoseconds since 1970
//   32  u64      its inode; if identified by its bytes, the first 8 bytes of their SHA-256, big-endian
//   40  u32      bytes of the key, or of the array's path
//   44  u32      zero
//   48           the key, UTF-8, then zeros up to a multiple of 8
#include "journal.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "copy_bytes.h"
#include "keys.h"
#include "sha256.h"

namespace tessera {

namespace {

constexpr std::array<unsigned char, 8> magic{0x89, 'T', 'S', 'J', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t major_version = 2;
constexpr std::size_t header_size = 64;
constexpr std::size_t entry_size = 48;  // without the key
constexpr std::size_t hash_size = 32;
constexpr std::uint32_t most_above = 1024;  // folders; a path has no more

std::size_t padded(std::size_t n) {
    return (n + 7) / 8 * 8;
}

Sha256 hash_of(ByteSpan bytes) {
    Hasher hasher;
    hasher.add(bytes.data(), bytes.size());
    return hasher.finish();
}

[[noreturn]] void damaged(std::string_view name, std::string_view what) {
    throw corrupt("{}: the journal of a batch of edits is damaged: {}", name, what)
        .advising(Action::repair, "sets the batch aside, and the array stays as it is");
}

Journal::Entry decode_entry(ByteSpan& rest, bool of_group, std::string_view name) {
    if (rest.size() < entry_size) damaged(name, "an entry is cut short");
    const std::byte* p = rest.data();
    Journal::Entry entry;
    const auto kind = load_little<std::uint32_t>(p);
    if ((kind == 3) != of_group || kind < 1 || kind > 3) {
        damaged(name, fmt::format("an entry of kind {}, expected {}", kind, of_group ? "3" : "1 or 2"));
    }
    entry.kind = static_cast<Journal::Entry::Kind>(kind);
    const auto flags = load_little<std::uint32_t>(p + 4);
    entry.had_old = (flags & 1U) != 0;
    entry.number = load_little<std::uint64_t>(p + 8);
    entry.stamp = {load_little<std::uint64_t>(p + 16), load_little<std::int64_t>(p + 24),
                   load_little<std::uint64_t>(p + 32), (flags & 2U) != 0};
    const std::size_t key_size = load_little<std::uint32_t>(p + 40);
    rest = rest.subspan(entry_size);
    if (padded(key_size) > rest.size()) damaged(name, "a key is cut short");
    entry.key.assign(reinterpret_cast<const char*>(rest.data()), key_size);
    rest = rest.subspan(padded(key_size));
    try {
        require_key(entry.key);
    } catch (const Error& e) {
        damaged(name, e.what());
    }
    return entry;
}

void require_hash(const Sha256& hash, ByteSpan stored, std::string_view name) {
    if (std::memcmp(hash.data(), stored.data(), hash_size) != 0) damaged(name, "its SHA-256 differs");
}

struct Header {
    std::size_t entries_at = 0;
    std::uint64_t count = 0;
    std::uint64_t id = 0;
    std::uint32_t flags = 0;
    std::uint16_t version = 0;
    std::uint32_t group_above = 0;
};

/// Decodes the header at the start of `first`. Requires that the size in it is `size`.
Header decode_header(ByteSpan first, std::uint64_t size, std::string_view name) {
    if (size < header_size + hash_size) {
        damaged(name, fmt::format("{} bytes, expected at least {}", size, header_size + hash_size));
    }
    const std::byte* p = first.data();
    if (std::memcmp(p, magic.data(), magic.size()) != 0) damaged(name, "its first 8 bytes are not a journal's");
    const auto major = load_little<std::uint16_t>(p + 8);
    if (major < 1 || major > major_version) {
        throw unsupported(
            "{}: the journal of a batch of edits has version {}, this program knows 1 to {}; finish the batch with "
            "the program that began it",
            name, major, major_version)
            .advising(Action::give_up_batches, "sets it aside");
    }
    const Header header{.entries_at = load_little<std::uint32_t>(p + 12),
                        .count = load_little<std::uint64_t>(p + 24),
                        .id = load_little<std::uint64_t>(p + 16),
                        .flags = load_little<std::uint32_t>(p + 40),
                        .version = major,
                        .group_above = major == 1 ? 0 : load_little<std::uint32_t>(p + 44)};
    if (header.group_above > most_above) damaged(name, fmt::format("{} folders above the array", header.group_above));
    const auto entries_size = load_little<std::uint64_t>(p + 32);
    const std::uint64_t hashed = size - hash_size;
    if (header.entries_at < header_size || header.entries_at > hashed || entries_size != hashed - header.entries_at ||
        header.count > entries_size / entry_size) {
        damaged(name, "its sizes do not add up");
    }
    return header;
}

Journal decode_entries(const Header& header, ByteSpan entries, std::string_view name) {
    Journal journal{.id = header.id,
                    .keeps_old = (header.flags & 1U) != 0,
                    .gives_up = (header.flags & 2U) != 0,
                    .bare_names = header.version == 1,
                    .group_above = header.group_above,
                    .of_group = header.version > 1 && (header.flags & 4U) != 0,
                    .entries = {}};
    journal.entries.reserve(header.count);
    for (std::uint64_t i = 0; i < header.count; ++i) {
        journal.entries.push_back(decode_entry(entries, journal.of_group, name));
    }
    if (!entries.empty()) damaged(name, "bytes are left after its entries");
    return journal;
}

}  // namespace

std::string staged_name(std::uint64_t batch, std::uint64_t number) {
    return fmt::format("{:016x}.{}", batch, number);
}

std::string Journal::staged_name(const Entry& entry) const {
    return bare_names ? std::to_string(entry.number) : tessera::staged_name(id, entry.number);
}

bool may_be_recorded(const ValueStamp& recorded, const ValueStamp& found) {
    if (recorded.size != found.size) return false;
    if (recorded.by_content != found.by_content) return true;
    return recorded.by_content ? recorded.id == found.id : recorded.id != found.id || recorded == found;
}

Buffer encode_journal(const Journal& journal) {
    std::size_t size = header_size;
    for (const Journal::Entry& entry : journal.entries) size += entry_size + padded(entry.key.size());
    Buffer bytes(size);
    std::byte* p = bytes.data();
    std::memset(p, 0, size);
    std::memcpy(p, magic.data(), magic.size());
    store_little(p + 8, journal.bare_names ? std::uint16_t{1} : major_version);
    store_little(p + 12, static_cast<std::uint32_t>(header_size));
    store_little(p + 16, journal.id);
    store_little(p + 24, static_cast<std::uint64_t>(journal.entries.size()));
    store_little(p + 32, static_cast<std::uint64_t>(size - header_size));
    store_little(p + 40, std::uint32_t{journal.keeps_old} | std::uint32_t{journal.gives_up} << 1U |
                             std::uint32_t{journal.of_group} << 2U);
    store_little(p + 44, journal.group_above);
    p += header_size;
    for (const Journal::Entry& entry : journal.entries) {
        store_little(p, static_cast<std::uint32_t>(entry.kind));
        store_little(p + 4, std::uint32_t{entry.had_old} | std::uint32_t{entry.stamp.by_content} << 1U);
        store_little(p + 8, entry.number);
        store_little(p + 16, entry.stamp.size);
        store_little(p + 24, entry.stamp.modified);
        store_little(p + 32, entry.stamp.id);
        store_little(p + 40, static_cast<std::uint32_t>(entry.key.size()));
        std::memcpy(p + entry_size, entry.key.data(), entry.key.size());
        p += entry_size + padded(entry.key.size());
    }
    const Sha256 hash = hash_of(bytes);
    bytes.append(std::as_bytes(std::span(hash)));
    return bytes;
}

Journal decode_journal(ByteSpan bytes, std::string_view name) {
    const Header header = decode_header(bytes, bytes.size(), name);
    const ByteSpan hashed = bytes.first(bytes.size() - hash_size);
    const Sha256 hash = hash_of(hashed);
    require_hash(hash, bytes.last(hash_size), name);
    return decode_entries(header, hashed.subspan(header.entries_at), name);
}

Journal read_journal(const ByteSource& file, std::string_view name) {
    require_size(name, file.size(), journal_limit);
    const Buffer first = read_range(file, 0, std::min<std::uint64_t>(file.size(), header_size));
    const Header header = decode_header(first, file.size(), name);
    const std::uint64_t hashed = file.size() - hash_size;
    Hasher hasher;
    std::uint64_t left = hashed;
    for_each_piece(file, [&](ByteSpan piece) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
        hasher.add(piece.data(), part);
        left -= part;
    });
    const Sha256 hash = hasher.finish();
    require_hash(hash, read_range(file, hashed, hash_size), name);
    return decode_entries(header, read_range(file, header.entries_at, hashed - header.entries_at), name);
}

std::optional<std::uint64_t> journal_id(const ByteSource& file) {
    constexpr std::size_t up_to_id = 24;
    if (file.size() < up_to_id) return std::nullopt;
    const Buffer first = read_range(file, 0, up_to_id);
    if (std::memcmp(first.data(), magic.data(), magic.size()) != 0) return std::nullopt;
    return load_little<std::uint64_t>(first.data() + 16);
}

}  // namespace tessera
