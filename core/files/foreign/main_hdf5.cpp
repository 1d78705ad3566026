// The program tessera-hdf5: see helper_process.h.
#include "server.h"

int main(int argc, char** argv) {
#ifdef TESSERA_HDF5
    return tessera::serve_foreign(argc, argv, {tessera::hdf5_tasks(), tessera::hdf5_writing_tasks()});
#else
    return tessera::serve_foreign(argc, argv, {});
#endif
}
