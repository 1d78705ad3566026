#include <tessera/error_text.h>
#include <tessera/view.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace tessera {

// Small strings are packed into blocks, so that a million of them are not a million allocations.
struct Arena::State {
    static constexpr std::size_t block_size = std::size_t{64} << 10;
    std::mutex mutex;
    std::vector<Buffer> blocks;
    std::byte* free = nullptr;  // the rest of the current block
    std::size_t left = 0;
    std::size_t total = 0;
};

Arena::Arena() : state_(std::make_unique<State>()) {}
Arena::~Arena() = default;

VariableSlot Arena::add(std::string_view bytes) {
    if (bytes.empty()) return {};
    const std::lock_guard lock(state_->mutex);
    std::byte* place = nullptr;
    if (bytes.size() > State::block_size / 4) {
        place = state_->blocks.emplace_back(bytes.size()).data();
        state_->total += bytes.size();
    } else {
        if (bytes.size() > state_->left) {
            state_->free = state_->blocks.emplace_back(State::block_size).data();
            state_->left = State::block_size;
            state_->total += State::block_size;
        }
        place = state_->free;
        state_->free += bytes.size();
        state_->left -= bytes.size();
    }
    std::memcpy(place, bytes.data(), bytes.size());
    return {reinterpret_cast<const char*>(place), bytes.size()};
}

std::span<const std::byte> Arena::adopt(Buffer buffer) {
    const std::lock_guard lock(state_->mutex);
    state_->total += buffer.size();
    return state_->blocks.emplace_back(std::move(buffer)).span();
}

std::size_t Arena::bytes() const {
    const std::lock_guard lock(state_->mutex);
    return state_->total;
}

bool ArrayView::contiguous(Order order) const {
    std::int64_t step = dtype.size();
    if (count() == 0) return true;
    for (int k = 0; k < shape.rank(); ++k) {
        const int d = order == Order::C ? shape.rank() - 1 - k : k;
        if (shape[d] == 1) continue;
        if (strides[d] != step) return false;
        step *= shape[d];
    }
    return true;
}

ArrayView ArrayView::part(const Region& region) const {
    require_inside(region, shape);
    ArrayView v{data, dtype, region.extent, strides};
    if (region.empty()) return v;  // no element to point at, so no pointer is moved
    for (int d = 0; d < shape.rank(); ++d) v.data += region.start[d] * strides[d];
    return v;
}

MutableArrayView MutableArrayView::part(const Region& region) const {
    const ArrayView v = ArrayView(*this).part(region);
    return {const_cast<std::byte*>(v.data), v.dtype, v.shape, v.strides, arena};
}

ArrayView ArrayView::transposed(const Dims& order) const {
    ArrayView v{data, dtype, Shape::filled(shape.rank(), 0), Strides::filled(shape.rank(), 0)};
    Dims seen = Dims::filled(shape.rank(), 0);
    if (order.rank() != shape.rank()) {
        throw invalid_argument("transpose order {} does not fit shape {}", order.to_string(), shape.to_string());
    }
    for (int k = 0; k < shape.rank(); ++k) {
        const std::int64_t d = order[k];
        if (d < 0 || d >= shape.rank() || seen[static_cast<int>(d)]++ > 0) {
            throw invalid_argument("transpose order {} is no permutation", order.to_string());
        }
        v.shape[k] = shape[static_cast<int>(d)];
        v.strides[k] = strides[static_cast<int>(d)];
    }
    return v;
}

MutableArrayView MutableArrayView::transposed(const Dims& order) const {
    const ArrayView v = ArrayView(*this).transposed(order);
    return {const_cast<std::byte*>(v.data), v.dtype, v.shape, v.strides, arena};
}

ArrayView view_bytes(const std::byte* data, const DType& dtype, const Shape& shape, Order order) {
    return {data, dtype, shape, contiguous_strides(shape, dtype.size(), order)};
}

MutableArrayView view_bytes(std::byte* data, const DType& dtype, const Shape& shape, Order order) {
    return {data, dtype, shape, contiguous_strides(shape, dtype.size(), order), nullptr};
}

namespace detail {

void require_count(std::int64_t elements, const Shape& shape) {
    if (element_count(shape) != elements) {
        throw invalid_argument("{} elements cannot be viewed as shape {}, which has {}", elements, shape.to_string(),
                               element_count(shape));
    }
}

void require_typed(const ArrayView& v, const DType& wanted, std::size_t alignment) {
    // zarr 0.4 turns padding into fields of that size; the bytes are the same.
    if (!(v.dtype == wanted) && !(v.dtype.kind() == Kind::structure && v.dtype == wanted.with_padding_named())) {
        throw invalid_argument("the elements are {}, not {}; copy them into an array of that dtype first",
                               v.dtype.to_string(), wanted.to_string());
    }
    const auto misaligned = [&](std::int64_t n) { return static_cast<std::uint64_t>(n) % alignment != 0; };
    if (v.count() > 0 && (reinterpret_cast<std::uintptr_t>(v.data) % alignment != 0 ||
                          std::any_of(v.strides.begin(), v.strides.end(), misaligned))) {
        throw invalid_argument("the elements are not aligned in memory; copy them into an NDArray first");
    }
}

}  // namespace detail

}  // namespace tessera
