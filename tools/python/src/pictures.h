// Pictures for notebooks.
#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

void bind_pictures(pybind11::module_& module);

}  // namespace tessera::python
