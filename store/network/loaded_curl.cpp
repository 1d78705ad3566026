#include "loaded_curl.h"

#include <tessera/loaded_library.h>

namespace tessera {

const Curl& curl() {
    static const Curl functions = [] {
        Curl made;
#ifdef TESSERA_LINKED
#define TESSERA_CURL_FIND(name) made.name = &::curl_##name;
#else
        const LoadedLibrary library("libcurl.so.4", "an array behind HTTP or in S3");
#define TESSERA_CURL_FIND(name) library.find(made.name, "curl_" #name);
#endif
        TESSERA_CURL_FUNCTIONS(TESSERA_CURL_FIND)
#undef TESSERA_CURL_FIND
        return made;
    }();
    return functions;
}

}  // namespace tessera
