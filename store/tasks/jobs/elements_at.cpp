#include <tessera/elements_at.h>

#include <fmt/format.h>

#include <tessera/array_io.h>
#include <tessera/copy_elements.h>
#include <tessera/dialect.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

namespace {

class ElementsAt final : public ArraySource {
public:
    ElementsAt(std::unique_ptr<ArraySource> array, std::unique_ptr<ArraySource> places)
        : array_(std::move(array)), places_(std::move(places)), from_(array_->info()) {
        const ArrayInfo listed = places_->info();
        const int rank = from_.shape.rank();
        const bool integers = listed.dtype.kind() == Kind::integer || listed.dtype.kind() == Kind::unsigned_integer;
        const bool rows = listed.shape.rank() == 2 && listed.shape[1] == rank;
        if (!integers || !(rows || (listed.shape.rank() == 1 && rank == 1))) {
            throw invalid_argument(
                "{}: expected integers of shape (n, {}), a row of indices for each element of {}, found {} of "
                "shape {}",
                places_->name(), rank, array_->name(), listed.dtype.to_string(), listed.shape.to_string());
        }
        info_ = {.dtype = from_.dtype, .shape = {listed.shape[0]}, .chunks = {}};
        name_ = fmt::format("{} at {}", array_->name(), places_->name());
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override {
        Value attributes = meaning_of(*array_).attributes;  // they say what the elements stand for
        attributes.erase(dimensions_attribute);
        return attributes;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        // An Index has room for 32 dimensions: limit them to some MiB.
        constexpr std::int64_t most = 1 << 16;
        for (std::int64_t done = 0; done < region.extent[0]; done += most) {
            const std::int64_t n = std::min(most, region.extent[0] - done);
            const std::vector<Index> places = read_places(region.start[0] + done, n, io);
            const NDArray elements = array_->read_points(places, io);
            copy_elements(elements.view(), out.part({{done}, {n}}));
        }
    }

private:
    [[nodiscard]] std::vector<Index> read_places(std::int64_t first, std::int64_t n, const IoOptions& io) const {
        const ArrayInfo listed = places_->info();
        Region rows = Region::whole(listed.shape);
        rows.start[0] = first;
        rows.extent[0] = n;
        NDArray numbers(listed.dtype, rows.extent);
        places_->read_into(rows, numbers.view(), io);
        std::vector<Index> places;
        const std::byte* p = numbers.bytes().data();
        for (std::int64_t i = 0; i < n; ++i) {
            Index place;
            for (int d = 0; d < from_.shape.rank(); ++d, p += listed.dtype.size()) {
                const std::int64_t k = element_to_value(listed.dtype, p).as_int64();
                place.push_back(k < 0 ? k + from_.shape[d] : k);
                if (place[d] >= 0 && place[d] < from_.shape[d]) continue;
                throw Error(ErrorCode::out_of_bounds,
                            fmt::format("{}: row {} has the index {} along dimension {}, where {} has {} elements",
                                        places_->name(), first + i, k, d, array_->name(), from_.shape[d]));
            }
            places.push_back(place);
        }
        return places;
    }

    std::unique_ptr<ArraySource> array_;
    std::unique_ptr<ArraySource> places_;
    ArrayInfo from_;
    ArrayInfo info_;
    std::string name_;
};

}  // namespace

std::unique_ptr<ArraySource> elements_at(std::unique_ptr<ArraySource> array, std::unique_ptr<ArraySource> places) {
    return std::make_unique<ElementsAt>(std::move(array), std::move(places));
}

}  // namespace tessera
