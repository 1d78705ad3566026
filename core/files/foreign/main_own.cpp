// For programs that are their own helper: all tasks.
#include <tessera/own_helper.h>

#include "server.h"

namespace tessera {

int serve_as_helper(int argc, const char* const* argv) {
    return serve_foreign(argc, argv,
                         {
#ifdef TESSERA_HDF5
                             hdf5_tasks(), hdf5_writing_tasks(),
#endif
#ifdef TESSERA_TIFF
                             tiff_tasks(),
#endif
#ifdef TESSERA_GRIB
                             grib_tasks()
#endif
                         });
}

}  // namespace tessera
