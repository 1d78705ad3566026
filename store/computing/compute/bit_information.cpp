#include "bit_information.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <tessera/chunk_grid.h>
#include <tessera/ndarray.h>
#include <tessera/round_bits.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

constexpr int most_bits = 64;

/// How often bits of elements and of their next ones along a dimension are set.
struct PairCounts {
    std::int64_t pairs = 0;
    std::array<std::int64_t, most_bits> first{}, second{}, both{};
};

/// Information of the pairs of a bit that may be chance, with a confidence of 99 %.
double chance_information(const PairCounts& counts) {
    constexpr double quantile = 2.5758293035489004;  // of the normal distribution, at 0.995
    const double p = std::min(0.5 + quantile / (2 * std::sqrt(static_cast<double>(counts.pairs))), 1.0);
    return p < 1 ? 1 + p * std::log2(p) + (1 - p) * std::log2(1 - p) : 1;
}

/// Information of the pairs of a bit, in bits.
double shared_information(const PairCounts& counts, std::size_t bit) {
    const auto n = static_cast<double>(counts.pairs);
    const auto first = static_cast<double>(counts.first.at(bit));
    const auto second = static_cast<double>(counts.second.at(bit));
    const auto both = static_cast<double>(counts.both.at(bit));
    const auto part = [&](double joint, double a, double b) {
        return joint > 0 ? joint / n * std::log2(joint * n / (a * b)) : 0;
    };
    return part(both, first, second) + part(first - both, first, n - second) + part(second - both, n - first, second) +
           part(n - first - second + both, n - first, n - second);
}

/// Bits from the highest on that hold nearly all information; 0 if there is none.
int needed_bits(const PairCounts& counts, int bits) {
    std::array<double, most_bits> information{};
    const double chance = chance_information(counts);
    for (int k = 0; k < bits; ++k) {
        const double found = shared_information(counts, static_cast<std::size_t>(bits - 1 - k));
        information.at(static_cast<std::size_t>(k)) = found > chance ? found : 0;
    }
    // What the last bits seem to share is an artefact of rounding and packing.
    constexpr int last = 4;
    constexpr double factor = 1.5, part = 0.99;
    const auto end = information.begin() + bits;
    const double artefact = factor * *std::max_element(end - last, end);
    double total = 0;
    for (int k = 0; k < bits; ++k) {
        double& one = information.at(static_cast<std::size_t>(k));
        if (one <= artefact) one = 0;
        total += one;
    }
    if (total <= bits * chance) return 0;  // one of many bits may seem to share some
    double sum = 0;
    for (int k = 0; k < bits; ++k) {
        sum += information.at(static_cast<std::size_t>(k));
        if (sum >= part * total) return k + 1;
    }
    return bits;
}

template <class Bits>
void count_pairs(const NDArray& block, int dimension, const std::vector<char>& use, PairCounts& counts) {
    const auto* const values = reinterpret_cast<const Bits*>(block.bytes().data());
    const Shape& shape = block.shape();
    std::int64_t step = 1;
    for (int d = shape.rank() - 1; d > dimension; --d) step *= shape[d];
    const std::int64_t run = step * shape[dimension];
    for (std::int64_t i = 0; i < block.count(); ++i) {
        if (i % run >= run - step || use[static_cast<std::size_t>(i)] == 0 ||
            use[static_cast<std::size_t>(i + step)] == 0) {
            continue;
        }
        const Bits a = values[i];
        const Bits b = values[i + step];
        ++counts.pairs;
        for (std::size_t bit = 0; bit < 8 * sizeof(Bits); ++bit) {
            counts.first[bit] += a >> bit & 1;
            counts.second[bit] += b >> bit & 1;
            counts.both[bit] += (a & b) >> bit & 1;
        }
    }
}

/// Some chunks, spread over the array, each cut to an eighth of a million elements.
std::vector<Region> samples_of(const ArrayInfo& info) {
    constexpr std::int64_t most_elements = 1 << 17, most_samples = 8;
    Shape block = info.chunks.empty() ? info.shape : info.chunks;
    for (int d = 0; d < block.rank(); ++d) block[d] = std::clamp<std::int64_t>(block[d], 1, info.shape[d]);
    for (int d = 0; d < block.rank() && element_count(block) > most_elements; ++d) {
        const std::int64_t others = element_count(block) / block[d];
        block[d] = std::max<std::int64_t>(1, most_elements / others);
    }
    const ChunkGrid grid(info.shape, block);
    const std::int64_t count = grid.chunk_count();
    const std::int64_t taken = std::min(count, most_samples);
    std::vector<Region> samples;
    for (std::int64_t k = 0; k < taken; ++k) {
        samples.push_back(grid.chunk_region(grid.index(k * count / taken)));
    }
    return samples;
}

}  // namespace

std::optional<int> informative_bits(const ArraySource& source, const std::function<bool(const std::byte*)>& counts,
                                    const IoOptions& io) {
    const ArrayInfo info = source.info();
    const DType dtype = native_dtype(info.dtype);
    if (element_count(info.shape) == 0) return std::nullopt;
    std::vector<PairCounts> pairs(static_cast<std::size_t>(info.shape.rank()));
    for (const Region& sample : samples_of(info)) {
        NDArray block(dtype, sample.extent);
        source.read_into(sample, block.view(), io);
        std::vector<char> use(static_cast<std::size_t>(block.count()));
        for (std::size_t i = 0; i < use.size(); ++i) {
            use[i] = counts(block.bytes().data() + i * static_cast<std::size_t>(dtype.size())) ? 1 : 0;
        }
        for (int d = 0; d < info.shape.rank(); ++d) {
            PairCounts& found = pairs[static_cast<std::size_t>(d)];
            if (dtype.size() == 2) count_pairs<std::uint16_t>(block, d, use, found);
            if (dtype.size() == 4) count_pairs<std::uint32_t>(block, d, use, found);
            if (dtype.size() == 8) count_pairs<std::uint64_t>(block, d, use, found);
        }
    }
    constexpr std::int64_t fewest = 5'000;  // of fewer, bits that matter seem to be chance
    const int bits = static_cast<int>(dtype.size()) * 8;
    int needed = 0;
    for (const PairCounts& found : pairs) {
        if (found.pairs >= fewest) needed = std::max(needed, needed_bits(found, bits));
    }
    if (needed == 0) return std::nullopt;
    return std::max(0, needed - (bits - fraction_bits(dtype)));
}

}  // namespace tessera
