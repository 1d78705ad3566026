// The properties of a new array that differ from its source's.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/array_plan.h>

namespace tessera::python {

/// By Python's names: chunks, shards, codec, order, format, separator, structures, fill_value, dims.
[[nodiscard]] ArrayWishes wishes_of(const pybind11::dict& options);

}  // namespace tessera::python
