// z5 as a peer of the benchmark: https://github.com/constantinpape/z5, 2 (which takes arrays of xtensor) or 3. It
// neither asks the disk whether what it wrote is there nor renames it.
#include <z5/factory.hxx>
#include <z5/z5.hxx>
#if __has_include(<z5/multiarray/array_access.hxx>)
#include <z5/multiarray/array_access.hxx>
#else
#include <z5/multiarray/xtensor_access.hxx>
#endif

#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "peer.h"

namespace {

namespace fs = std::filesystem;
using Shape = z5::types::ShapeType;

/// Elements in memory, as z5 wants to be given them.
template <class T>
auto view_of(T* elements, const Shape& shape) {
#if __has_include(<z5/multiarray/array_access.hxx>)
    return z5::multiarray::makeView(elements, shape);
#else
    const auto count = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
    // Moved: of a pointer that stays it would keep a reference.
    return xt::adapt(std::move(elements), count, xt::no_ownership(), shape);
#endif
}

template <class T>
class Stored : public bench::PeerArray {
public:
    Stored(std::unique_ptr<z5::Dataset> dataset, int threads) : dataset_(std::move(dataset)), threads_(threads) {}

    [[nodiscard]] std::vector<std::int64_t> shape() const override {
        return {dataset_->shape().begin(), dataset_->shape().end()};
    }
    [[nodiscard]] std::size_t item_size() const override { return sizeof(T); }

    void read(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& extent, void* out) override {
        const Shape from(start.begin(), start.end());
        auto view = view_of(static_cast<T*>(out), Shape(extent.begin(), extent.end()));
        z5::multiarray::readSubarray<T>(*dataset_, view, from.begin(), threads_);
    }
    void write(const void* elements) override {
        const Shape from(dataset_->shape().size());
        const auto view = view_of(static_cast<const T*>(elements), dataset_->shape());
        z5::multiarray::writeSubarray<T>(*dataset_, view, from.begin(), threads_);
    }

private:
    std::unique_ptr<z5::Dataset> dataset_;
    int threads_;
};

class Z5 : public bench::PeerLibrary {
public:
    [[nodiscard]] std::string name() const override {
        return "z5 " + std::to_string(Z5_VERSION_MAJOR) + '.' + std::to_string(Z5_VERSION_MINOR) + '.' +
               std::to_string(Z5_VERSION_PATCH);
    }

    std::unique_ptr<bench::PeerArray> open(const fs::path& array, int threads) override {
        return stored(z5::openDataset(folder_of(array), array.filename().string()), threads);
    }
    std::unique_ptr<bench::PeerArray> create(const fs::path& array, const fs::path& like, int threads) override {
        z5::DatasetMetadata metadata;
        z5::filesystem::readMetadata({folder_of(like), like.filename().string()}, metadata);
        return stored(z5::createDataset(folder_of(array), array.filename().string(), metadata), threads);
    }

private:
    static z5::filesystem::handle::File folder_of(const fs::path& array) {
        return z5::filesystem::handle::File(array.parent_path());
    }

    /// The types of the workloads.
    static std::unique_ptr<bench::PeerArray> stored(std::unique_ptr<z5::Dataset> dataset, int threads) {
        switch (dataset->getDtype()) {
            case z5::types::float32:
                return std::make_unique<Stored<float>>(std::move(dataset), threads);
            case z5::types::int32:
                return std::make_unique<Stored<std::int32_t>>(std::move(dataset), threads);
            case z5::types::uint16:
                return std::make_unique<Stored<std::uint16_t>>(std::move(dataset), threads);
            default:
                throw std::runtime_error("no workload has this type");
        }
    }
};

}  // namespace

int main() {
    Z5 library;
    bench::answer_requests(library);
}
