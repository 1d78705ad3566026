// The tutorial (tools/docs/tutorial.md) in C++: from a NumPy file to an edited, converted, verified and sealed array.
// Run it in a folder that holds jacksboro_fault_dem.npz and no dem.zarr.
#include <tessera/place.h>
#include <tessera/tessera.h>

#include <filesystem>
#include <iostream>

using namespace tessera;

void convert_and_keep(const Array& dem, const Shape& shape, const DType& dtype);

int main() try {
    // 1. Look
    const auto model = open_source("jacksboro_fault_dem.npz::elevation");
    const Shape shape = model->info().shape;
    const DType dtype = model->info().dtype;
    std::cout << shape << ' ' << dtype.str() << '\n';

    // 2. Import
    NewArray made("dem.zarr",
                  {.shape = shape,
                   .chunks = {64, 64},
                   .dtype = dtype,
                   .codec = "zstd:5",
                   .format = "v3",
                   .dimension_names = {"y", "x"},
                   .attributes = {{"units", "m"}}},
                  {}, model->name());
    copy_array(*model, made.array());
    Array dem = made.commit();  // until here there is no dem.zarr

    // 3. Read
    const NDArray corner = dem.read("98:102, 148:152");
    const auto rows = corner.view().typed<std::int16_t>();
    std::cout << rows(0, 0) << ' ' << rows(3, 3) << '\n';

    // 4. Edit
    dem.write("100:180, 150:300", 250);
    std::cout << digest(dem) << '\n';

    // 5. Edit as a batch, and take it back
    {
        Edit batch(dem);
        batch->write("0:10, :", 0);
        batch->attributes().set("note", "a mistake");
        batch.commit();  // all of it takes effect, or nothing
    }
    undo(dem);
    std::cout << digest(dem) << '\n';

    // 6. Compare
    std::cout << difference(*model, dem).different << " elements differ\n";
    convert_and_keep(dem, shape, dtype);
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}

void convert_and_keep(const Array& dem, const Shape& shape, const DType& dtype) {
    // 7. Convert
    NewArray older("dem-v2.zarr",
                   {.shape = shape,
                    .chunks = {128, 128},
                    .dtype = dtype,
                    .codec = "zlib:6",
                    .format = "v2",
                    .dimension_names = {"y", "x"},
                    .attributes = dem.attributes().all()},
                   {}, dem.name());
    copy_array(dem, older.array());
    std::cout << difference(dem, older.commit()).different << " elements differ\n";

    // 8. Export
    const auto npy = create_array_file({"dem.npy"}, dtype, shape);
    copy_array(dem, *npy);

    // 9. Verify
    const VerifyReport report = verify("dem.zarr");
    std::cout << report.chunks << " chunks, " << (report.sound() ? "sound" : "damaged") << '\n';

    // 10. Seal
    const Place place = find_place("dem.zarr");
    std::cout << seal(place).files << " files sealed\n";

    // 11. Lose something, and get it back
    seal(place, {.parity = parse_redundancy("2")});
    std::filesystem::remove("dem.zarr/c/0/0");
    std::cout << repair(place).done << " file restored\n";
}
