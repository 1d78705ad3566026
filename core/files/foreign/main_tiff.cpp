// The program tessera-tiff: see helper_process.h.
#include "server.h"

int main(int argc, char** argv) {
#ifdef TESSERA_TIFF
    return tessera::serve_foreign(argc, argv, {tessera::tiff_tasks()});
#else
    return tessera::serve_foreign(argc, argv, {});
#endif
}
