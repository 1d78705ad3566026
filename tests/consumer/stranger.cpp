// What a stranger's program does: makes an array in the working directory, edits it and reads it back.
#include <cstdint>
#include <iostream>
#include <vector>

#include <tessera/tessera.h>

int main() {
    try {
        auto grid = tessera::Array::create("stranger.zarr", {.shape = {100, 100}, .chunks = {30, 30}, .dtype = "<i4"});
        grid.write({{25, 25}, {10, 10}}, tessera::view(std::vector<std::int32_t>(100, 7), {10, 10}));
        const tessera::NDArray all = tessera::Array::open("stranger.zarr").read();
        std::int64_t sum = 0;
        for (const std::int32_t v : all.values<std::int32_t>()) sum += v;
        std::cout << sum << '\n';
        return sum == 700 ? 0 : 1;
    } catch (const tessera::Error& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
