// libzarr as a peer of the benchmark: https://github.com/kharchenkolab/libzarr, 1.0. It knows one thread, and neither
// asks the disk whether what it wrote is there nor renames it.
#include <libzarr/adapters/filesystem_store.hpp>
#include <libzarr/libzarr.hpp>

#include <stdexcept>
#include <utility>

#include "peer.h"

namespace {

namespace fs = std::filesystem;

class Stored : public bench::PeerArray {
public:
    explicit Stored(zarr::Array array) : array_(std::move(array)) {}

    [[nodiscard]] std::vector<std::int64_t> shape() const override {
        return {array_.meta().shape.begin(), array_.meta().shape.end()};
    }
    [[nodiscard]] std::size_t item_size() const override { return array_.meta().dtype.itemsize; }

    void read(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& extent, void* out) override {
        std::size_t size = item_size();
        for (const auto n : extent) size *= static_cast<std::size_t>(n);
        array_.read_region({start.begin(), start.end()}, {extent.begin(), extent.end()}, out, size);
    }
    void write(const void* elements) override { array_.write(elements, array_.nbytes()); }

private:
    zarr::Array array_;
};

class Libzarr : public bench::PeerLibrary {
public:
    [[nodiscard]] std::string name() const override {
        return "libzarr " + std::to_string(LIBZARR_VERSION_MAJOR) + '.' + std::to_string(LIBZARR_VERSION_MINOR) + '.' +
               std::to_string(LIBZARR_VERSION_PATCH);
    }

    std::unique_ptr<bench::PeerArray> open(const fs::path& array, int threads) override {
        if (threads != 1) throw std::runtime_error("it knows one thread");
        const auto store = std::make_shared<zarr::FilesystemStore>(array, false);
        return std::make_unique<Stored>(zarr::Array::open(store, ""));
    }
    std::unique_ptr<bench::PeerArray> create(const fs::path& array, const fs::path& like, int threads) override {
        fs::create_directory(array);
        fs::copy_file(like / ".zarray", array / ".zarray");
        return open(array, threads);
    }
};

}  // namespace

int main() {
    Libzarr library;
    bench::answer_requests(library);
}
