// What CachedArray saves: random boxes that fit no chunk are read, changed and written, one by one and through a cache
// that is flushed at the end, in turn; the median of the ratios.
//
//   bench_cached [BOXES] [ROUNDS]
#include <fmt/format.h>
#include <tessera/measure.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

using namespace tessera;

namespace {

constexpr std::int64_t length = 512;
constexpr std::int64_t edge = 100;
constexpr std::uint64_t memory = std::uint64_t{1} << 30U;  // for all 512 chunks of 1.25 MiB

double seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Adds one to random boxes, the same ones every time.
template <class Target>
void change_boxes(Target& array, int boxes) {
    std::mt19937 random(1);
    NDArray box(DType::of<float>(), {edge, edge, edge});
    for (int i = 0; i < boxes; ++i) {
        const auto place = [&] { return static_cast<std::int64_t>(random() % (length - edge)); };
        const Region region{{place(), place(), place()}, {edge, edge, edge}};
        array.read_into(region, box.view(), {});
        for (float& v : box.values<float>()) v += 1;
        array.write(region, box.view(), {});
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int boxes = argc > 1 ? std::atoi(argv[1]) : 200;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera-bench-cached-{}", ::getpid());
    std::vector<float> field(static_cast<std::size_t>(length * length * length));
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = static_cast<float>(i % length) * 0.25F;
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
        const auto fresh = [&](const char* name) {
            std::filesystem::remove_all(folder / name);
            Array array = Array::create(
                folder / name, {.shape = {length, length, length}, .chunks = {64, 64, 64}, .dtype = DType::of<float>()},
                {.durability = Durability::none});
            array.write(Region::whole(array.shape()), view(field, array.shape()));
            return array;
        };
        Array plain = fresh("plain");
        const double one_by_one = seconds([&] { change_boxes(plain, boxes); });
        const Array stored = fresh("cached");
        const double with_cache = seconds([&] {
            CachedArray cached(stored, memory);
            change_boxes(cached, boxes);
            cached.flush();
        });
        if (digest(plain) != digest(stored)) {
            fmt::print("the two arrays differ\n");
            return 1;
        }
        ratios.push_back(one_by_one / with_cache);
        fmt::print("one by one {:.3f} s, cached {:.3f} s, {:.2f} times as fast\n", one_by_one, with_cache,
                   ratios.back());
    }
    std::filesystem::remove_all(folder);
    std::ranges::sort(ratios);
    fmt::print("{} boxes of {}³: {:.2f} times as fast (median)\n", boxes, edge, ratios[ratios.size() / 2]);
}
