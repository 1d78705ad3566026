// What bytes→bytes codecs share whose engines decode into memory of a given size: compressors, checksums, shuffles.
#pragma once

#include <optional>

#include <tessera/codec.h>

namespace tessera {

/// Turns "decode into this memory, or say that it is too small" into the two ways of decoding that a codec has.
/// No size that the data claim is ever allocated unless the data are long enough for it to be likely.
class Compressor : public BytesToBytesCodec {
public:
    void decode(ByteSpan in, MutableByteSpan out) const final;
    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const final;

protected:
    /// Decodes all of `in` to the start of `out`; returns the number of bytes, or nothing when they are more than fit.
    /// Throws corrupt.
    [[nodiscard]] virtual std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const = 0;
    /// How many bytes `in` claims to decode to, where it says so. Only a hint.
    [[nodiscard]] virtual std::optional<std::uint64_t> claimed_size(ByteSpan /*in*/) const { return std::nullopt; }
};

}  // namespace tessera
