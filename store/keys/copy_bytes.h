// Values of any size, piece by piece. Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/key_value_store.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

/// Calls each(bytes) for the whole content in order, in pieces that take little memory.
template <class Each>
void for_each_piece(const ByteSource& value, const Each& each) {
    constexpr std::uint64_t piece = std::uint64_t{1} << 20;
    Buffer bytes;
    for (std::uint64_t at = 0; at < value.size(); at += bytes.size()) {
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

inline void copy_bytes(const ByteSource& value, KeyValueStore& store, std::string_view key) {
    copy_bytes(value, store, key, [](ByteSpan) {});
}

}  // namespace tessera
