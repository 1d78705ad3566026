#include "element_mask.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

constexpr std::int64_t word_bits = 64;
constexpr std::uint64_t all_bits = ~std::uint64_t{0};

/// The bits of elements from `begin` to `end` - 1 that lie in word `w`, which must hold some of them.
std::uint64_t bits_in(std::int64_t w, std::int64_t begin, std::int64_t end) {
    const std::int64_t first = std::max(begin - w * word_bits, std::int64_t{0});
    const std::int64_t last = std::min(end - w * word_bits, word_bits);
    return all_bits >> (word_bits - (last - first)) << first;
}

}  // namespace

ElementMask::ElementMask(const Shape& shape)
    : shape_(shape),
      count_(element_count(shape)),
      words_(static_cast<std::size_t>(count_ / word_bits + 1)) {}  // never without one

std::uint64_t ElementMask::bytes(std::int64_t elements) {
    return static_cast<std::uint64_t>(ceil_div(elements, std::int64_t{8}));
}

template <class Row>
bool ElementMask::each_row(const Region& region, const Row& row) const {
    if (region.empty()) return true;
    const int rank = region.rank();
    // Dimensions that are covered as a whole, from the last one on, make one row with the one before them.
    int inner = rank;
    std::int64_t length = 1;
    for (bool whole = true; inner > 0 && whole; --inner) {
        length *= region.extent[inner - 1];
        whole = region.extent[inner - 1] == shape_[inner - 1];
    }
    Index place = region.start;
    for (;;) {
        std::int64_t begin = 0;
        for (int d = 0; d < rank; ++d) begin = begin * shape_[d] + place[d];
        if (!row(begin, length)) return false;
        int d = inner - 1;
        while (d >= 0 && ++place[d] == region.start[d] + region.extent[d]) {
            place[d] = region.start[d];
            --d;
        }
        if (d < 0) return true;
    }
}

void ElementMask::mark(const Region& region) {
    each_row(region, [&](std::int64_t begin, std::int64_t count) {
        const std::int64_t end = begin + count;
        for (std::int64_t w = begin / word_bits; w * word_bits < end; ++w) {
            words_[static_cast<std::size_t>(w)] |= bits_in(w, begin, end);
        }
        return true;
    });
}

bool ElementMask::covers(const Region& region) const {
    return each_row(region,
                    [&](std::int64_t begin, std::int64_t count) { return next(begin, false) >= begin + count; });
}

std::int64_t ElementMask::next(std::int64_t from, bool marked) const {
    while (from < count_) {
        const std::uint64_t word = words_[static_cast<std::size_t>(from / word_bits)];
        const std::uint64_t wanted = (marked ? word : ~word) >> (from % word_bits);
        if (wanted != 0) return std::min(from + std::countr_zero(wanted), count_);
        from = (from / word_bits + 1) * word_bits;
    }
    return count_;
}

void ElementMask::for_each_run(const std::function<void(std::int64_t begin, std::int64_t count)>& each) const {
    for (std::int64_t begin = next(0, true); begin < count_;) {
        const std::int64_t end = next(begin, false);
        each(begin, end - begin);
        begin = next(end, true);
    }
}

}  // namespace tessera
