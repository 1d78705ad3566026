// NDArray: an array that owns its elements, contiguous in C or Fortran order.
#pragma once

#include <memory>
#include <span>

#include <tessera/buffer.h>
#include <tessera/view.h>

namespace tessera {

/// Owned elements and, for variable-length dtypes, their arena. Thread rule: as a std::vector.
class NDArray {
public:
    NDArray() = default;
    /// Elements are indeterminate, except those of variable-length dtypes, which are empty strings.
    /// Throws invalid_argument when the size overflows.
    NDArray(const DType& dtype, const Shape& shape, Order order = Order::C);
    /// The same in memory that is there, C order.
    NDArray(const DType& dtype, const Shape& shape, Buffer memory);
    /// A packed C-order copy of a view.
    [[nodiscard]] static NDArray copy_of(const ArrayView& v);

    [[nodiscard]] const DType& dtype() const { return dtype_; }
    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] Order order() const { return order_; }
    [[nodiscard]] std::int64_t count() const { return element_count(shape_); }
    [[nodiscard]] ByteSpan bytes() const { return buffer_.span(); }
    [[nodiscard]] MutableByteSpan bytes() { return buffer_.span(); }

    [[nodiscard]] ArrayView view() const;
    [[nodiscard]] MutableArrayView view();
    operator ArrayView() const { return view(); }
    operator MutableArrayView() { return view(); }

    /// The same elements in memory order under another shape of as many elements.
    [[nodiscard]] NDArray reshaped(const Shape& shape) &&;

    /// All elements in memory order, as T. Throws invalid_argument unless the dtype is exactly T in host order.
    template <class T>
    [[nodiscard]] std::span<const T> values() const {
        detail::require_typed(view(), DType::of<T>(), alignof(T));
        return {reinterpret_cast<const T*>(buffer_.data()), static_cast<std::size_t>(count())};
    }
    template <class T>
    [[nodiscard]] std::span<T> values() {
        detail::require_typed(view(), DType::of<T>(), alignof(T));
        return {reinterpret_cast<T*>(buffer_.data()), static_cast<std::size_t>(count())};
    }

private:
    DType dtype_;
    Shape shape_;
    Order order_ = Order::C;
    Buffer buffer_;
    std::unique_ptr<Arena> arena_;
};

}  // namespace tessera
