// Smooths a grid of any size with all cores: each element becomes the mean of the 3 × 3 elements round it.
//
//     stencil FROM TO        FROM: a float32 array of two dimensions
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main(int argc, char** argv) try {
    if (argc != 3) throw invalid_argument("usage: stencil FROM TO");
    const Array from = Array::open(argv[1]);
    Array to = Array::create(argv[2], {.shape = from.shape(), .chunks = from.chunks(), .dtype = "<f4"});

    const Blocks blocks = from.blocks({1, 1});  // chunks with one more element on each side
    parallel_for(blocks.count(), {}, [&](std::int64_t i) {
        const Block block = blocks[i];
        const NDArray elements = from.read(block.with_halo);
        const auto in = elements.view().typed<float>();
        std::vector<float> smooth;
        for (std::int64_t n = 0; n < block.region.count(); ++n) {
            const Index at = index_in(block.in_halo, n);
            const Region window = intersection(Region::whole(in.shape()), {{at[0] - 1, at[1] - 1}, {3, 3}});
            float sum = 0;
            for (std::int64_t k = 0; k < window.count(); ++k) {
                const Index near = index_in(window, k);
                sum += in(near[0], near[1]);
            }
            smooth.push_back(sum / static_cast<float>(window.count()));
        }
        to.write(block.region, smooth);
    });
    std::cout << "smoothed " << to.shape() << " in " << blocks.count() << " blocks\n";
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
