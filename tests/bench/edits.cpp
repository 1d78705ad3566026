// What a batch costs: the same random edits one by one and as one batch, without fsync, in turn; the median of the
// ratios.
//
//   bench_edits [EDITS] [ROUNDS]
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

double seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Writes random 16×16 boxes, the same ones every time.
void edit_all(Array& array, int edits) {
    std::mt19937 random(1);
    std::vector<std::int32_t> box(256);
    for (int i = 0; i < edits; ++i) {
        for (auto& v : box) v = static_cast<std::int32_t>(random());
        const auto place = [&] { return static_cast<std::int64_t>(random() % 1984); };
        const Index at{place(), place()};
        array.write(Region{at, {16, 16}}, view(box, {16, 16}), {.threads = 1});
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int edits = argc > 1 ? std::atoi(argv[1]) : 10'000;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera-bench-edits-{}", ::getpid());
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
        const auto fresh = [&](const char* name) {
            std::filesystem::remove_all(folder / name);
            return Array::create(folder / name,
                                 {.shape = {2000, 2000}, .chunks = {100, 100}, .dtype = DType::parse("<i4")},
                                 {.durability = Durability::none});
        };
        Array plain = fresh("plain");
        const double one_by_one = seconds([&] { edit_all(plain, edits); });
        Array batched = fresh("batched");
        const double batch = seconds([&] {
            Edit edit(batched);
            edit_all(edit.array(), edits);
            edit.commit();
        });
        if (digest(plain) != digest(batched)) {
            fmt::print("the two arrays differ\n");
            return 1;
        }
        ratios.push_back(batch / one_by_one);
        fmt::print("one by one {:.3f} s, one batch {:.3f} s, ratio {:.2f}\n", one_by_one, batch, ratios.back());
    }
    std::filesystem::remove_all(folder);
    std::ranges::sort(ratios);
    fmt::print("median ratio of {} edits: {:.2f} (to reach: at most 1.5)\n", edits, ratios[ratios.size() / 2]);
}
