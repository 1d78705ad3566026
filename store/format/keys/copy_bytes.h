// Values of any size, piece by piece. Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/key_value_store.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera {

/// Announces the pieces from `at` on, as far as memory has room for them; returns where those begin that were not.
inline std::uint64_t expect_pieces(const ByteSource& value, std::uint64_t at, std::uint64_t piece) {
    constexpr std::uint64_t most = std::uint64_t{32} << 20;
    const std::uint64_t end = at + std::min(value.size() - at, std::clamp(memory_left() / 8, piece, most));
    std::vector<ByteSource::Extent> pieces;
    for (std::uint64_t begin = at; begin < end; begin += piece) pieces.push_back({begin, std::min(end, begin + piece)});
    value.expect(pieces);
    return end;
}

/// Calls each(bytes) for the whole content in order, in pieces that take little memory. Throws cancelled between them
/// if this thread's work is to stop (StopScope).
template <class Each>
void for_each_piece(const ByteSource& value, const Each& each) {
    constexpr std::uint64_t piece = std::uint64_t{1} << 20;
    Buffer bytes;
    for (std::uint64_t at = 0, expected = 0; at < value.size(); at += bytes.size()) {
        require_not_stopped();
        if (at >= expected) expected = expect_pieces(value, at, piece);
        bytes.reset(static_cast<std::size_t>(std::min(piece, value.size() - at)));
        value.read(at, bytes.span());
        each(bytes.span());
    }
}

/// Puts the content of `value` at `key`; each(bytes) is called for every piece.
template <class Each>
void copy_bytes(const ByteSource& value, KeyValueStore& store, std::string_view key, const Each& each) {
    const auto sink = store.create(key);
    for_each_piece(value, [&](ByteSpan bytes) {
        sink->append(bytes);
        each(bytes);
    });
    sink->finish();
}

/// Likewise; holes of a large file stay holes if the store can leave some.
inline void copy_bytes(const ByteSource& value, KeyValueStore& store, std::string_view key) {
    constexpr std::uint64_t large = std::uint64_t{1} << 20;
    const auto sink = store.create(key);
    const auto append = [&](ByteSpan bytes) { sink->append(bytes); };
    if (value.size() <= large || !sink->random_access()) {
        for_each_piece(value, append);
        return sink->finish();
    }
    Buffer bytes;
    for (std::uint64_t at = 0, expected = 0; at < value.size(); at += bytes.size()) {
        require_not_stopped();
        if (at >= expected) expected = expect_pieces(value, at, large);
        const ByteSource::Extent stored = value.next_stored(at);
        at = std::min(stored.begin, value.size() - 1);  // the last byte gives the copy its length
        bytes.reset(
            static_cast<std::size_t>(std::clamp<std::uint64_t>(stored.end - std::min(at, stored.end), 1, large)));
        value.read(at, bytes.span());
        sink->write_at(at, bytes.span());
    }
    sink->finish();
}

}  // namespace tessera
