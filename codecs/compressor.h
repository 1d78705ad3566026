// Base of bytes→bytes codecs whose engines decode into memory of a given size: compressors, checksums, shuffles.
#pragma once

#include <optional>

#include <tessera/codec.h>

namespace tessera {

/// Implements both ways to decode by one primitive: decode into given memory, or report that it is too small. Allocates
/// a size that the data claim only if the data are long enough to make it likely.
class Compressor : public BytesToBytesCodec {
public:
    void decode(ByteSpan in, MutableByteSpan out) const final;
    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const final;

protected:
    /// Decodes all of `in` to the start of `out`. Returns the number of bytes, or nullopt if they do not fit. Throws
    /// corrupt.
    [[nodiscard]] virtual std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const = 0;
    /// The decoded size that `in` claims, if any. Only a hint.
    [[nodiscard]] virtual std::optional<std::uint64_t> claimed_size(ByteSpan /*in*/) const { return std::nullopt; }
};

}  // namespace tessera
