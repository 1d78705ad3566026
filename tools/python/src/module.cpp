// tessera._tessera: the library's interface for the package `tessera`. Nothing else imports it.
#include "handle.h"
#include "pictures.h"

PYBIND11_MODULE(_tessera, module) {
    module.doc() = "What the package tessera calls of the C++ library.";
    module.attr("version") = TESSERA_VERSION;
    tessera::python::bind_errors(module);
    tessera::python::bind_extensions(module);
    tessera::python::bind_arrays(module);
    tessera::python::bind_batches(module);
    tessera::python::bind_groups(module);
    tessera::python::bind_open(module);
    tessera::python::bind_copies(module);
    tessera::python::bind_computed(module);
    tessera::python::bind_jobs(module);
    tessera::python::bind_checks(module);
    tessera::python::bind_keys(module);
    tessera::python::bind_chunks(module);
    tessera::python::bind_pictures(module);
    tessera::python::bind_servers(module);
    tessera::python::bind_arrow(module);
    tessera::python::bind_zarr(module);
}
