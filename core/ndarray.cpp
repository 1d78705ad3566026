#include <tessera/ndarray.h>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <cstring>

namespace tessera {

NDArray::NDArray(const DType& dtype, const Shape& shape, Order order) : NDArray(dtype, shape, Buffer()) {
    order_ = order;
}

NDArray::NDArray(const DType& dtype, const Shape& shape, Buffer memory)
    : dtype_(dtype), shape_(shape), buffer_(std::move(memory)) {
    buffer_.reset(static_cast<std::size_t>(byte_count(shape, dtype.size())));
    if (dtype.is_variable()) {
        if (!buffer_.empty()) std::memset(buffer_.data(), 0, buffer_.size());
        arena_ = std::make_unique<Arena>();
    }
}

NDArray NDArray::copy_of(const ArrayView& v) {
    NDArray a(v.dtype, v.shape);
    copy_elements(v, a.view());
    return a;
}

ArrayView NDArray::view() const {
    return view_bytes(buffer_.data(), dtype_, shape_, order_);
}

MutableArrayView NDArray::view() {
    MutableArrayView v = view_bytes(buffer_.data(), dtype_, shape_, order_);
    v.arena = arena_.get();
    return v;
}

NDArray NDArray::reshaped(const Shape& shape) && {
    if (element_count(shape) != count()) {
        throw invalid_argument(fmt::format("shape {} cannot become {}", shape_.to_string(), shape.to_string()));
    }
    shape_ = shape;
    return std::move(*this);
}

}  // namespace tessera
