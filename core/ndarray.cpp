#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include <cstring>
#include <utility>

namespace tessera {

NDArray::NDArray(const DType& dtype, const Shape& shape, Order order) : NDArray(dtype, shape, Buffer()) {
    order_ = order;
    view_ = view_bytes(view_.data, dtype, shape, order);
}

NDArray::NDArray(const DType& dtype, const Shape& shape, Buffer memory) : buffer_(std::move(memory)) {
    buffer_.reset(static_cast<std::size_t>(byte_count(shape, dtype.size())));
    if (dtype.is_variable()) {
        if (!buffer_.empty()) std::memset(buffer_.data(), 0, buffer_.size());
        arena_ = std::make_unique<Arena>();
    }
    view_ = view_bytes(std::as_const(buffer_).data(), dtype, shape);
}

NDArray::NDArray(NDArray&& other) noexcept
    : view_(std::exchange(other.view_, {})),
      order_(other.order_),
      buffer_(std::move(other.buffer_)),
      arena_(std::move(other.arena_)) {}

NDArray& NDArray::operator=(NDArray&& other) noexcept {
    view_ = std::exchange(other.view_, {});
    order_ = other.order_;
    buffer_ = std::move(other.buffer_);
    arena_ = std::move(other.arena_);
    return *this;
}

MutableArrayView NDArray::view() & {
    return {buffer_.data(), view_.dtype, view_.shape, view_.strides, arena_.get()};
}

NDArray NDArray::reshaped(const Shape& shape) && {
    if (element_count(shape) != count()) {
        throw invalid_argument("shape {} cannot become {}", view_.shape.to_string(), shape.to_string());
    }
    view_ = view_bytes(view_.data, view_.dtype, shape, order_);
    return std::move(*this);
}

}  // namespace tessera
