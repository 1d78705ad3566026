// A program that needs the core alone: says a dtype, and the elements of an array in a file.
//
//   core_only [FILE.h5::NAME]
#include <iostream>

#include <tessera/array_file.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cout << tessera::DType("float64").str() << '\n';
        return tessera::DType("float64").size() == 8 ? 0 : 1;
    }
    try {
        const auto array = tessera::open_array_file(tessera::split_array_path(argv[1]));
        tessera::NDArray elements(array->info().dtype, array->info().shape);
        array->read_into(tessera::Region::whole(array->info().shape), elements.view(), {});
        std::cout << elements.count() << " elements of " << array->name() << '\n';
        return 0;
    } catch (const tessera::Error& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
