// A program that needs the core alone.
#include <iostream>

#include <tessera/dtype.h>

int main() {
    std::cout << tessera::DType("float64").str() << '\n';
    return tessera::DType("float64").size() == 8 ? 0 : 1;
}
