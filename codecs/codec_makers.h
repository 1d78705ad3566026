// The makers of each codec file, for the table in codec_table.cpp.
#pragma once

#include <memory>

#include <tessera/codec.h>

#include "codec_members.h"

namespace tessera {

// array → array
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_transpose_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_delta_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_fixedscaleoffset_codec(const Value& configuration,
                                                                             const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_quantize_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_bitround_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_astype_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_scale_offset_codec(const Value& configuration,
                                                                         const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_packbits_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToArrayCodec> make_categorize_codec(const Value& configuration, const ChunkSpec& in);

// array → bytes
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_json2_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_bytes_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_sharding_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_vlen_utf8_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_vlen_bytes_codec(const Value& configuration, const ChunkSpec& in);
[[nodiscard]] std::unique_ptr<ArrayToBytesCodec> make_vlen_array_codec(const Value& configuration, const ChunkSpec& in);

// bytes → bytes
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_blosc_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_numcodecs_blosc_codec(const Value& configuration,
                                                                            std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_gzip_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_zlib_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_zstd_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_lz4_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_bz2_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_lzma_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_shuffle_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_crc32c_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_numcodecs_crc32c_codec(const Value& configuration,
                                                                             std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_crc32_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_adler32_codec(const Value& configuration, std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_fletcher32_codec(const Value& configuration,
                                                                       std::int64_t item_size);
[[nodiscard]] std::unique_ptr<BytesToBytesCodec> make_jenkins_lookup3_codec(const Value& configuration,
                                                                            std::int64_t item_size);

/// Dimension k of the result is dimension axes[k] of `dims`; without axes they stay as they are.
[[nodiscard]] Dims permuted(const Dims& dims, const Dims& axes);

}  // namespace tessera
