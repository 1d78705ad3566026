// The program tessera-grib: see helper_process.h.
#include "server.h"

int main(int argc, char** argv) {
#ifdef TESSERA_GRIB
    return tessera::serve_foreign(argc, argv, {tessera::grib_tasks()});
#else
    return tessera::serve_foreign(argc, argv, {});
#endif
}
