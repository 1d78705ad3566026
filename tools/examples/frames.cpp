// Joins frames to one array and computes from it: stacks files, and writes their change from the first to the last.
//
//     frames FRAME… CHANGE     FRAME: array files or arrays of one shape and dtype; CHANGE: a new array
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main(int argc, char** argv) try {
    if (argc < 4) throw invalid_argument("usage: frames FRAME FRAME… CHANGE");
    const std::vector<std::string> names(argv + 1, argv + argc - 1);

    // As one array, (frames, height, width): nothing is copied, each region is read from the files that it touches.
    const auto open = [](const std::string& name) { return open_source(name); };
    const std::unique_ptr<ArraySource> movie = join_sources(names, open, {.axis = 0, .new_axis = true});
    std::cout << "stacked " << movie->info().shape << ' ' << movie->info().dtype << '\n';

    // Reduced along the frames, block by block.
    const auto largest = reduce_source(join_sources(names, open, {.new_axis = true}),
                                       {.with = Reduction::max, .axes = {0}, .skip_nan = true});
    const NDArray corner = read_selection(*largest, Selection::parse("0, 0", largest->info().shape));
    std::cout << "largest at the corner " << corner.values<float>()[0] << '\n';

    // An expression is an array, too, which copy_hierarchy writes anywhere: a directory, a zip, an array file.
    const auto change = calc_source("abs(last - first)", {{.name = "first", .array = open(names.front())},
                                                          {.name = "last", .array = open(names.back())}});
    const HierarchyOptions like{.arrays = {.codec = "zstd:3", .format = "v3"}};
    const CopiedHierarchy made = copy_hierarchy(*change, argv[argc - 1], like);
    std::cout << "wrote " << made.path << ", " << made.made.front().chunks << " chunks\n";
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
