// What lies at a path of a mounted folder.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::mount {

struct Entry {
    bool folder = false;
    bool writable = false;
    bool changing = false;  ///< its size is only known when it is opened
    std::uint64_t size = 0;
};

/// An entry of a folder.
struct Listed {
    std::string name;
    bool folder = false;
};

}  // namespace tessera::mount
