// Shared libraries that are loaded when they are first used: a program that does not use them starts without them.
#pragma once

#include <string>

namespace tessera {

/// Stays loaded. Thread rule: any thread may call find().
class LoadedLibrary {
public:
    /// `file`: "libcurl.so.4", by the system's rules. Throws unsupported, saying why and what `needs` it.
    LoadedLibrary(std::string file, std::string needs);
    /// Sets `function` to the one of this name. Throws unsupported if the library has none.
    template <class Function>
    void find(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(address(name));
    }

private:
    [[nodiscard]] void* address(const char* name) const;

    std::string file_, needs_;
    void* library_;
};

}  // namespace tessera
