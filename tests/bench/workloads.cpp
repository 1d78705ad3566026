#include "workloads.h"

#include <cmath>

namespace workloads {

namespace {

/// SplitMix64 of a position: noise that depends on nothing but where it is.
std::uint64_t noise(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Sines of i × step. From integers by a polynomial, so that no library's sine changes the bytes.
std::vector<double> waves(std::int64_t n, double period) {
    std::vector<double> table(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        double t = static_cast<double>(i) / period;
        t = 4 * (t - std::floor(t)) - 2;  // one period is [-2, 2)
        table[static_cast<std::size_t>(i)] = t * (2 - std::abs(t));
    }
    return table;
}

template <class T>
void fill_grid(tessera::NDArray& a, double amplitude, unsigned noise_steps, double step) {
    auto* p = reinterpret_cast<T*>(a.bytes().data());
    const tessera::Shape& shape = a.shape();
    const auto x = waves(shape.rank() == 3 ? shape[0] : 1, 311);
    const auto y = waves(shape[shape.rank() - 2], 173);
    const auto z = waves(shape.back(), 97);
    std::uint64_t n = 0;
    for (const double u : x) {
        for (const double v : y) {
            for (const double w : z) {
                const double smooth = amplitude * (1 + (u * v + v * w + w * u) / 3);
                const auto jitter = static_cast<double>(noise(n++) % noise_steps);
                *p++ = static_cast<T>(std::round(smooth / step + jitter) * step);
            }
        }
    }
}

}  // namespace

plain::Layout w1() {
    return {.folder = {}, .shape = {512, 512, 512}, .chunks = {64, 64, 64}, .rank = 3, .item = 4};
}
plain::Layout w2() {
    return {.folder = {}, .shape = {1, 20000, 20000}, .chunks = {1, 1000, 1000}, .rank = 2, .item = 4};
}
plain::Layout w3() {
    return {.folder = {}, .shape = {1, 4096, 4096}, .chunks = {1, 64, 64}, .rank = 2, .item = 2};
}
plain::Layout w9() {
    return {.folder = {}, .shape = {509, 500, 511}, .chunks = {64, 64, 64}, .rank = 3, .item = 4};
}
plain::Layout cube(std::int64_t side) {
    return {.folder = {}, .shape = {side, side, side}, .chunks = {64, 64, 64}, .rank = 3, .item = 4};
}
plain::Layout w10_bytes() {
    return {.folder = {}, .shape = {512, 512, 512}, .chunks = {64, 64, 64}, .rank = 3, .item = 1};
}
plain::Layout w10_doubles() {
    return {.folder = {}, .shape = {512, 512, 256}, .chunks = {64, 64, 64}, .rank = 3, .item = 8, .big_endian = true};
}

void fill_w1(tessera::NDArray& a) {
    fill_grid<float>(a, 100, 4, 0.0625);
}
void fill_w2(tessera::NDArray& a) {
    fill_grid<std::int32_t>(a, 100000, 16, 1);
}
void fill_w3(tessera::NDArray& a) {
    fill_grid<std::uint16_t>(a, 1000, 8, 1);
}
void fill_w10_bytes(tessera::NDArray& a) {
    fill_grid<std::uint8_t>(a, 80, 2, 1);
}
void fill_w10_doubles(tessera::NDArray& a) {
    fill_grid<double>(a, 100, 4, 0.0625);
}

std::vector<plain::Box> random_boxes(const plain::Layout& a, int count, std::int64_t side, std::uint64_t seed) {
    std::vector<plain::Box> boxes;
    std::uint64_t n = seed << 32;
    for (int i = 0; i < count; ++i) {
        plain::Box box{};
        for (int d = 0; d < 3; ++d) {
            box.extent[d] = std::min(side, a.shape[d]);
            const auto places = static_cast<std::uint64_t>(a.shape[d] - box.extent[d] + 1);
            box.start[d] = static_cast<std::int64_t>(noise(n++) % places);
        }
        boxes.push_back(box);
    }
    return boxes;
}

}  // namespace workloads
