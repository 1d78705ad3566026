// A program that is its own helper, as the program in one file is: says how many elements an array file has.
//
//   own_helper FILE.h5::NAME
#include <iostream>

#include <tessera/array_file.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>
#include <tessera/own_helper.h>

int main(int argc, char** argv) {
    using namespace tessera;
    if (is_helper(argc, argv)) return serve_as_helper(argc, argv);
    be_own_helper();
    try {
        const auto array = open_array_file(split_array_path(argv[1]));
        NDArray elements(array->info().dtype, array->info().shape);
        array->read_into(Region::whole(array->info().shape), elements.view(), {});
        std::cout << elements.count() << '\n';
        return 0;
    } catch (const Error& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
