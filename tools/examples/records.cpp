// Converts records: reads a table of structs, block by block, and writes another with a column computed from others.
//
//     records FROM TO        FROM: the fields time (int64), x, y (float32); TO gets time and distance (float64)
#include <tessera/tessera.h>

#include <cmath>
#include <iostream>

struct Position {
    std::int64_t time;
    float x, y;
};
TESSERA_STRUCTURE(Position, time, x, y);

struct Distance {
    std::int64_t time;
    double distance;
};
TESSERA_STRUCTURE(Distance, time, distance);

using namespace tessera;

int main(int argc, char** argv) try {
    if (argc != 3) throw invalid_argument("usage: records FROM TO");
    const Array from = Array::open(argv[1]);
    Array to = Array::create(argv[2], {.shape = from.shape(), .chunks = from.chunks(), .dtype = DType::of<Distance>()});
    for (const Block& block : from.blocks()) {
        std::vector<Distance> converted;
        for (const Position& p : from.read(block.region).values<Position>())
            converted.push_back({p.time, std::hypot(double{p.x}, double{p.y})});
        to.write(block.region, converted);
    }
    std::cout << "converted " << from.dtype() << " to " << to.dtype() << '\n';
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
