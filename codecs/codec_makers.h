// The makers of each codec file, for the table in codec_table.cpp.
#pragma once

#include <memory>

#include <tessera/codec.h>

namespace tessera {

[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_bytes_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_blosc_codec(const Value& configuration, std::int64_t item_size);

/// Throws invalid_argument naming the first member of a codec's configuration that is not among `known`.
void require_known_members(const Value& configuration, std::initializer_list<std::string_view> known);

}  // namespace tessera
