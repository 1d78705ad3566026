// Layout of a journal, all numbers little-endian, every field at a multiple of its size:
//
//   0   8 bytes  89 54 53 4A 0D 0A 1A 0A: "\x89TSJ\r\n\x1a\n", which text modes and 7-bit lines damage visibly
//   8   u16      major version, 1: another one is refused
//   10  u16      minor version, 0: a newer one is read
//   12  u32      size of this header, 64: where the entries begin
//   16  u64      id of the batch
//   24  u64      number of entries
//   32  u64      bytes of all entries
//   40  u32      flags; bit 0: old values are kept in .tessera/undo; bit 1: it takes a batch back that was given up
//   44  20 bytes zeros
//   64           the entries
//   …   32 bytes SHA-256 of all that stands before it
//
// An entry, its length a multiple of 8:
//
//   0   u32      1 a value is put, 2 a key is erased
//   4   u32      flags; bit 0: the key was there before; bit 1: the value is told by its bytes, as where the file
//                system's times are too coarse
//   8   u64      number of the staged value (its name in .tessera/batch)
//   16  u64      its size in bytes
//   24  i64      its time of modification, nanoseconds since 1970
//   32  u64      its inode; told by its bytes: the first 8 bytes of their SHA-256, the first one the most significant
//   40  u32      bytes of the key
//   44  u32      zero
//   48           the key, UTF-8, then zeros up to a multiple of 8
#include "journal.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "keys.h"
#include "sha256.h"

namespace tessera {

namespace {

constexpr std::array<unsigned char, 8> magic{0x89, 'T', 'S', 'J', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t major_version = 1;
constexpr std::size_t header_size = 64;
constexpr std::size_t entry_size = 48;  // without the key
constexpr std::size_t hash_size = 32;

std::size_t padded(std::size_t n) {
    return (n + 7) / 8 * 8;
}

Sha256 hash_of(ByteSpan bytes) {
    Hasher hasher;
    hasher.add(bytes.data(), bytes.size());
    return hasher.finish();
}

[[noreturn]] void damaged(std::string_view name, std::string_view what) {
    throw corrupt(fmt::format(
        "{}: the journal of a batch of edits is damaged: {}; `tessera repair` sets the batch aside, and the array "
        "stays as it is",
        name, what));
}

Journal::Entry decode_entry(ByteSpan& rest, std::string_view name) {
    if (rest.size() < entry_size) damaged(name, "an entry is cut short");
    const std::byte* p = rest.data();
    Journal::Entry entry;
    const auto kind = load_little<std::uint32_t>(p);
    if (kind != 1 && kind != 2) damaged(name, fmt::format("an entry of kind {}, expected 1 or 2", kind));
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

}  // namespace

Buffer encode_journal(const Journal& journal) {
    std::size_t size = header_size;
    for (const Journal::Entry& entry : journal.entries) size += entry_size + padded(entry.key.size());
    Buffer bytes(size);
    std::byte* p = bytes.data();
    std::memset(p, 0, size);
    std::memcpy(p, magic.data(), magic.size());
    store_little(p + 8, major_version);
    store_little(p + 12, static_cast<std::uint32_t>(header_size));
    store_little(p + 16, journal.id);
    store_little(p + 24, static_cast<std::uint64_t>(journal.entries.size()));
    store_little(p + 32, static_cast<std::uint64_t>(size - header_size));
    store_little(p + 40, std::uint32_t{journal.keeps_old} | std::uint32_t{journal.gives_up} << 1U);
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
    if (bytes.size() < header_size + hash_size) {
        damaged(name, fmt::format("{} bytes, expected at least {}", bytes.size(), header_size + hash_size));
    }
    const std::byte* p = bytes.data();
    if (std::memcmp(p, magic.data(), magic.size()) != 0) damaged(name, "its first 8 bytes are not a journal's");
    if (const auto major = load_little<std::uint16_t>(p + 8); major != major_version) {
        throw unsupported(fmt::format(
            "{}: the journal of a batch of edits has version {}, this program knows version {}; finish the batch with "
            "the program that began it, or `tessera repair --give-up-batches` sets it aside",
            name, major, major_version));
    }
    const ByteSpan hashed = bytes.first(bytes.size() - hash_size);
    const Sha256 hash = hash_of(hashed);
    if (std::memcmp(hash.data(), bytes.data() + hashed.size(), hash_size) != 0) damaged(name, "its SHA-256 differs");
    const std::size_t entries_at = load_little<std::uint32_t>(p + 12);
    const auto count = load_little<std::uint64_t>(p + 24);
    const auto entries_size = load_little<std::uint64_t>(p + 32);
    if (entries_at < header_size || entries_at > hashed.size() || entries_size != hashed.size() - entries_at ||
        count > entries_size / entry_size) {
        damaged(name, "its sizes do not add up");
    }
    Journal journal{.id = load_little<std::uint64_t>(p + 16),
                    .keeps_old = (load_little<std::uint32_t>(p + 40) & 1U) != 0,
                    .gives_up = (load_little<std::uint32_t>(p + 40) & 2U) != 0,
                    .entries = {}};
    ByteSpan rest = hashed.subspan(entries_at);
    journal.entries.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) journal.entries.push_back(decode_entry(rest, name));
    if (!rest.empty()) damaged(name, "bytes are left after its entries");
    return journal;
}

}  // namespace tessera
