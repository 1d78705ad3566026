#include <tessera/tessera.h>
#include <iostream>

int main() {
    auto grid = tessera::Array::create(
        "grid.zarr", {.shape = {1'000'000, 1'000}, .chunks = {10'000, 100}, .dtype = "<i4", .fill_value = 42});
    std::vector<std::int32_t> sevens(100, 7);
    grid.write({{0, 0}, {10, 10}}, sevens);            // a region: start and extent
    grid.write("-1, :5", std::vector{1, 2, 3, 4, 5});  // or NumPy's slices
    grid.attributes().set("units", "m");
    tessera::NDArray part = grid.read("8:12, ::5");
    for (std::int32_t v : part.values<std::int32_t>().first(4)) std::cout << v << ' ';
}
