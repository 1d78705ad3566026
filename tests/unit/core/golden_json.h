// The tables that NumPy wrote: tests/golden/numpy/make_dtypes.py.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <tessera/value.h>

namespace tessera {

/// The rows of tests/golden/numpy/`name`.
inline Value::Array numpy_rows(const std::string& name) {
    std::ifstream file(std::string(TESSERA_GOLDEN "/numpy/") + name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return Value::parse(text).at("rows").as_array();
}

}  // namespace tessera
