#include <tessera/loaded_library.h>

#include <dlfcn.h>

#include <utility>

#include <tessera/error_text.h>

namespace tessera {

LoadedLibrary::LoadedLibrary(std::string file, std::string needs)
    : file_(std::move(file)), needs_(std::move(needs)), library_(::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
        throw unsupported("{} needs the library {}, which cannot be loaded: {}; install it", needs_, file_,
                          ::dlerror());
    }
}

void* LoadedLibrary::address(const char* name) const {
    void* const found = ::dlsym(library_, name);
    if (found == nullptr) {
        throw unsupported("{} needs the library {} with a function {}; this one is too old", needs_, file_, name);
    }
    return found;
}

}  // namespace tessera
