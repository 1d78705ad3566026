// How much faster several threads are than one: import, export and full read of a float32 cube in chunks of 64³.
// A measurement, not a test: it asserts nothing.
//
//   scaling [SIDE [THREADS [FOLDER]]]      512, 2, and a new folder below the one for temporary files
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <tessera/tessera.h>

namespace {

/// The least of three runs, in seconds.
double seconds(const std::function<void()>& run) {
    double best = INFINITY;
    for (int i = 0; i < 3; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

/// Smooth with some noise, as measured grids are: compressible, but not for nothing.
void make_cube(const std::filesystem::path& path, std::int64_t side) {
    auto file = tessera::MappedNpy::create(path, "<f4", {side, side, side});
    const auto cube = file.mutable_view().typed<float>();
    std::mt19937 random(1);
    std::normal_distribution<float> noise(0, 0.001F);
    for (std::int64_t i = 0; i < side; ++i) {
        for (std::int64_t j = 0; j < side; ++j) {
            const float wave = std::sin(0.04F * static_cast<float>(i + j));
            for (std::int64_t k = 0; k < side; ++k) {
                cube(i, j, k) = wave * std::cos(0.04F * static_cast<float>(k)) + noise(random);
            }
        }
    }
}

void measure(std::int64_t side, int threads, const std::filesystem::path& folder) {
    const auto cube = folder / "cube.npy";
    const auto zarr = folder / "cube.zarr";
    const auto back = folder / "back.npy";
    const tessera::ArrayOptions options{.shape = {side, side, side}, .chunks = {64, 64, 64}, .dtype = "<f4"};
    make_cube(cube, side);
    const auto import_cube = [&](int n) {
        std::filesystem::remove_all(zarr);
        auto array = tessera::Array::create(zarr, options);
        tessera::copy_array(*tessera::open_source(cube.string()), array, {.io = {.threads = n}});
    };
    const auto export_cube = [&](int n) {
        std::filesystem::remove(back);
        const auto sink = tessera::create_array_file({back, {}}, options.dtype, options.shape);
        tessera::copy_array(*tessera::open_source(zarr.string()), *sink, {.io = {.threads = n}});
    };
    tessera::NDArray memory(options.dtype, options.shape);
    const auto read_all = [&](int n) {
        tessera::Array::open(zarr).read_into(tessera::Region::whole(options.shape), memory, {.threads = n});
    };
    const std::vector<std::pair<std::string, std::function<void(int)>>> cases{
        {"import", import_cube}, {"export", export_cube}, {"read all", read_all}};
    std::cout << fmt::format("{0}³ float32, {1} MiB\n", side, side * side * side * 4 >> 20);
    for (const auto& [name, run] : cases) {
        const double one = seconds([&] { run(1); });
        const double many = seconds([&] { run(threads); });
        std::cout << fmt::format("{:10} 1 thread {:6.2f} s   {} threads {:6.2f} s   ratio {:.2f}\n", name, one, threads,
                                 many, many / one);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::int64_t side = argc > 1 ? std::atoll(argv[1]) : 512;
        const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
        const auto folder = (argc > 3 ? std::filesystem::path(argv[3]) : std::filesystem::temp_directory_path()) /
                            fmt::format("tessera-scaling-{}", std::random_device()());
        std::filesystem::create_directories(folder);
        measure(side, threads, folder);
        std::filesystem::remove_all(folder);
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
