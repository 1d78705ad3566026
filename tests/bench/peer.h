// Another C++ library as a peer of the benchmark: what it has to do for that. The protocol, which peers.py describes,
// is spoken for it. C++17, as all that TensorStore is linked with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace bench {

namespace fs = std::filesystem;

/// A Zarr v2 array that a library has open. What fails throws a std::exception.
class PeerArray {
public:
    PeerArray() = default;
    virtual ~PeerArray() = default;
    PeerArray(const PeerArray&) = delete;
    PeerArray& operator=(const PeerArray&) = delete;

    [[nodiscard]] virtual std::vector<std::int64_t> shape() const = 0;
    [[nodiscard]] virtual std::size_t item_size() const = 0;
    /// The elements of a box to memory, and of the whole array from memory; in C order.
    virtual void read(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& extent, void* out) = 0;
    virtual void write(const void* elements) = 0;
};

class PeerLibrary {
public:
    PeerLibrary() = default;
    virtual ~PeerLibrary() = default;
    PeerLibrary(const PeerLibrary&) = delete;
    PeerLibrary& operator=(const PeerLibrary&) = delete;

    [[nodiscard]] virtual std::string name() const = 0;
    virtual std::unique_ptr<PeerArray> open(const fs::path& array, int threads) = 0;
    /// A new array like another one, in a folder that is there but for its last name.
    virtual std::unique_ptr<PeerArray> create(const fs::path& array, const fs::path& like, int threads) = 0;
};

/// Says the library's name and answers requests on stdin until there are no more; what it cannot do, with "-".
void answer_requests(PeerLibrary& library);

}  // namespace bench
