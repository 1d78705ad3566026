// The Cauchy code over GF(256) of tools/docs/parity.md, through ISA-L. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tessera/buffer.h>

namespace tessera {

/// Parity of groups of `rows` blocks. Thread rule: const members may be called from several threads at once.
class CauchyCode {
public:
    CauchyCode(std::uint32_t rows, std::uint32_t parity);

    /// Adds what `bytes` of the block in row `row` contribute to the same bytes of each parity block.
    void add(std::uint32_t row, ByteSpan bytes, std::span<unsigned char*> parity) const;

    /// The tables that turn the syndromes of parity rows `good` into the bytes of the blocks in rows `erased`, as many.
    [[nodiscard]] std::vector<unsigned char> inverse(std::span<const std::uint32_t> erased,
                                                     std::span<const std::uint32_t> good) const;
    /// Applies them to `length` bytes: `blocks` get sums of `syndromes`.
    static void solve(std::vector<unsigned char>& tables, std::size_t length, std::span<unsigned char*> syndromes,
                      std::span<unsigned char*> blocks);

private:
    [[nodiscard]] unsigned char coefficient(std::uint32_t parity, std::uint32_t row) const;

    std::uint32_t rows_;
    std::uint32_t parity_;
    std::vector<unsigned char> tables_;
};

}  // namespace tessera
