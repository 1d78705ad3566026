// TensorStore as a peer of the benchmark: https://github.com/google/tensorstore. It keeps no chunks in memory, does not
// ask the disk whether what it wrote is there (but renames it), and has only as many cores as there may be threads.
#include <absl/status/status.h>
#include <sched.h>
#include <tensorstore/array.h>
#include <tensorstore/box.h>
#include <tensorstore/index.h>
#include <tensorstore/index_space/dim_expression.h>
#include <tensorstore/open.h>
#include <tensorstore/open_mode.h>
#include <tensorstore/tensorstore.h>
#include <tensorstore/util/element_pointer.h>
#include <tensorstore/util/result.h>

#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "peer.h"

namespace {

namespace fs = std::filesystem;
namespace ts = tensorstore;

using Indices = std::vector<ts::Index>;

void check(const absl::Status& status) {
    if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

/// Its limits hold for copying and for files apart, and threads that it has are used for whatever it has open. So all
/// of them get only so many cores.
void pin(int threads) {
    static const cpu_set_t all = [] {
        cpu_set_t cores;
        ::sched_getaffinity(0, sizeof cores, &cores);
        return cores;
    }();
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&some) < threads; ++core) {
        if (CPU_ISSET(core, &all)) CPU_SET(core, &some);
    }
    for (const auto& thread : fs::directory_iterator("/proc/self/task")) {
        ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof some, &some);
    }
}

class Stored : public bench::PeerArray {
public:
    explicit Stored(ts::TensorStore<> store) : store_(std::move(store)) {}

    [[nodiscard]] Indices shape() const override {
        const auto domain = store_.domain();
        return {domain.shape().begin(), domain.shape().end()};
    }
    [[nodiscard]] std::size_t item_size() const override { return static_cast<std::size_t>(store_.dtype().size()); }

    void read(const Indices& start, const Indices& extent, void* out) override {
        const ts::Box<> box(start, extent);
        check(ts::Read(store_ | ts::AllDims().BoxSlice(box), in_memory(out, extent)).status());
    }
    void write(const void* elements) override {
        check(ts::Write(in_memory(const_cast<void*>(elements), shape()), store_).commit_future.status());
    }

private:
    [[nodiscard]] ts::SharedArray<void> in_memory(void* elements, const Indices& extent) const {
        return ts::SharedArray<void>(ts::UnownedToShared(ts::ElementPointer<void>(elements, store_.dtype())), extent);
    }

    ts::TensorStore<> store_;
};

class TensorStore : public bench::PeerLibrary {
public:
    [[nodiscard]] std::string name() const override { return "TensorStore"; }

    std::unique_ptr<bench::PeerArray> open(const fs::path& array, int threads) override {
        return stored(spec(array, threads), ts::OpenMode::open, threads);
    }
    std::unique_ptr<bench::PeerArray> create(const fs::path& array, const fs::path& like, int threads) override {
        nlohmann::json json = spec(array, threads);
        std::ifstream file(like / ".zarray");
        json["metadata"] = nlohmann::json::parse(file);
        return stored(json, ts::OpenMode::create, threads);
    }

private:
    static nlohmann::json spec(const fs::path& array, int threads) {
        return {{"driver", "zarr"},
                {"kvstore", {{"driver", "file"}, {"path", array.string() + '/'}}},
                {"context",
                 {{"cache_pool", {{"total_bytes_limit", 0}}},
                  {"data_copy_concurrency", {{"limit", threads}}},
                  {"file_io_concurrency", {{"limit", threads}}},
                  {"file_io_sync", false}}}};
    }

    static std::unique_ptr<bench::PeerArray> stored(const nlohmann::json& spec, ts::OpenMode mode, int threads) {
        pin(threads);
        auto store = ts::Open(spec, mode, ts::ReadWriteMode::read_write).result();
        check(store.status());
        return std::make_unique<Stored>(*std::move(store));
    }
};

}  // namespace

int main() {
    TensorStore library;
    bench::answer_requests(library);
}
