// ArrayView: pointer + dtype + shape + byte strides. The only way in which array data crosses a boundary.
//
// Variable-length text and bytes: an element is a 16-byte VariableSlot, whose bytes live in an Arena. The owner of the
// slots (an NDArray, or the decoded chunk) also owns the arena, so a view is valid as long as both. Reading into a view
// of slots copies the bytes into the view's arena, so such a MutableArrayView must carry one.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/shape.h>

namespace tessera {

/// One element of a variable-length kind: `size` bytes at `data` (nullptr allowed when size is 0). UTF-8 without a
/// terminator for text. All zero is the empty string.
struct VariableSlot {
    const char* data = nullptr;
    std::uint64_t size = 0;
    [[nodiscard]] std::string_view view() const { return {data, static_cast<std::size_t>(size)}; }
};
static_assert(sizeof(void*) > 8 || sizeof(VariableSlot) == 16);

/// Owns the bytes that slots point to; freed as a whole. Thread rule: several threads may call `add` and `adopt` at
/// once; the bytes stay in place until the arena is destroyed.
class Arena {
public:
    Arena();
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    /// Copies `bytes` in and returns a slot for the copy.
    VariableSlot add(std::string_view bytes);
    /// Takes over a whole buffer, into which slots may then point.
    std::span<const std::byte> adopt(Buffer buffer);
    [[nodiscard]] std::size_t bytes() const;  ///< held in total

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Typed elements of a view: strided, checked once when made. Elements are host-order and aligned.
template <class T>
class TypedView {
public:
    TypedView(T* data, const Shape& shape, const Strides& strides) : data_(data), shape_(shape), strides_(strides) {}
    [[nodiscard]] const Shape& shape() const { return shape_; }
    /// Element at the given indices; not bounds-checked, like a pointer.
    template <std::convertible_to<std::int64_t>... I>
    [[nodiscard]] T& operator()(I... index) const {
        using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
        auto* p = reinterpret_cast<Byte*>(data_);
        int d = 0;
        ((p += static_cast<std::int64_t>(index) * strides_[d++]), ...);
        return *reinterpret_cast<T*>(p);
    }
    [[nodiscard]] T* data() const { return data_; }

private:
    T* data_;
    Shape shape_;
    Strides strides_;
};

class NDArray;
class TemporaryView;

/// A read-only view of elements owned elsewhere. Thread rule: a value; the data are read without locks.
/// A temporary array, or a view of temporary elements, converts to a parameter `const ArrayView&`, whose lifetime ends
/// before that of the elements. It does not convert to an ArrayView that could outlive them.
struct ArrayView {
    const std::byte* data = nullptr;
    DType dtype;
    Shape shape;
    Strides strides;

    ArrayView() = default;
    /// Elements of this dtype wherever they lie: `first` points to the one at index 0, and the steps are in bytes.
    ArrayView(const void* first, DType type, const Shape& extent, const Strides& steps)
        : data(static_cast<const std::byte*>(first)), dtype(std::move(type)), shape(extent), strides(steps) {}
    /// The same for elements of type T.
    template <class T>
    requires(!std::is_void_v<T>) ArrayView(const T* first, const Shape& extent, const Strides& steps)
        : ArrayView(first, DType::of<T>(), extent, steps) {}
    ArrayView(const NDArray&&) = delete;        // keep the array in a variable of its own
    ArrayView(const TemporaryView&&) = delete;  // keep the elements in a variable of their own

    [[nodiscard]] std::int64_t count() const { return element_count(shape); }
    [[nodiscard]] bool contiguous(Order order = Order::C) const;  ///< packed without gaps in that order
    /// A part of this view, no data moved. Throws out_of_bounds.
    [[nodiscard]] ArrayView part(const Region& region) const;
    /// Dimension k of the result is dimension `order[k]` of this one.
    [[nodiscard]] ArrayView transposed(const Dims& order) const;
    /// Typed access; throws invalid_argument unless dtype is exactly T in host order and every element is aligned.
    template <class T>
    [[nodiscard]] TypedView<const T> typed() const;

    /// The elements as NumPy's str() prints them: "[[1. 2.5]\n [3. 4. ]]". Of more than 1000 elements only the first
    /// and the last three along each axis are shown, "...", between them, and of a long text its first 1000 bytes.
    [[nodiscard]] std::string to_string() const;
};

/// Prints to_string(), also of an NDArray, which converts: `std::cout << array.read("3")`.
std::ostream& operator<<(std::ostream& out, const ArrayView& elements);

/// A view of elements whose lifetime ends with the full expression. It can only be an argument of a function that reads
/// them; a variable of this type cannot be used.
class TemporaryView {
public:
    explicit TemporaryView(const ArrayView& elements) : elements_(elements) {}
    TemporaryView(const TemporaryView&) = delete;
    TemporaryView& operator=(const TemporaryView&) = delete;
    ~TemporaryView() = default;
    operator const ArrayView&() const&& { return elements_; }

private:
    ArrayView elements_;
};

/// A writable view of elements owned elsewhere. `arena` is needed only for variable-length dtypes.
struct MutableArrayView {
    std::byte* data = nullptr;
    DType dtype;
    Shape shape;
    Strides strides;
    Arena* arena = nullptr;

    operator ArrayView() const { return {data, dtype, shape, strides}; }
    [[nodiscard]] std::int64_t count() const { return element_count(shape); }
    [[nodiscard]] bool contiguous(Order order = Order::C) const { return ArrayView(*this).contiguous(order); }
    [[nodiscard]] MutableArrayView part(const Region& region) const;
    [[nodiscard]] MutableArrayView transposed(const Dims& order) const;
    template <class T>
    [[nodiscard]] TypedView<T> typed() const;
    [[nodiscard]] std::string to_string() const { return ArrayView(*this).to_string(); }  ///< as ArrayView's
};

/// A packed view of `data` with this dtype and shape. The caller guarantees byte_count(shape, dtype.size()) bytes.
[[nodiscard]] ArrayView view_bytes(const std::byte* data, const DType& dtype, const Shape& shape,
                                   Order order = Order::C);
[[nodiscard]] MutableArrayView view_bytes(std::byte* data, const DType& dtype, const Shape& shape,
                                          Order order = Order::C);

namespace detail {
void require_count(std::int64_t elements, const Shape& shape);
void require_typed(const ArrayView& v, const DType& wanted, std::size_t alignment);
}  // namespace detail

/// A view of contiguous elements (vector, array, span, C array …) as an array of `shape`, in `order`. Elements of a
/// temporary give a TemporaryView. Throws invalid_argument if the number of elements does not match the shape.
template <std::ranges::contiguous_range R>
[[nodiscard]] auto view(R&& elements, const Shape& shape, Order order = Order::C) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    detail::require_count(static_cast<std::int64_t>(std::ranges::size(elements)), shape);
    auto* p = std::ranges::data(elements);
    const DType dtype = DType::of<std::remove_const_t<T>>();
    if constexpr (!std::ranges::borrowed_range<R>) {
        return TemporaryView(view_bytes(reinterpret_cast<const std::byte*>(p), dtype, shape, order));
    } else if constexpr (std::is_const_v<T>) {
        return view_bytes(reinterpret_cast<const std::byte*>(p), dtype, shape, order);
    } else {
        return view_bytes(reinterpret_cast<std::byte*>(p), dtype, shape, order);
    }
}

/// A view of contiguous elements as a 1-D array.
template <std::ranges::contiguous_range R>
[[nodiscard]] auto view(R&& elements) {
    return view(std::forward<R>(elements), Shape{static_cast<std::int64_t>(std::ranges::size(elements))});
}

/// A pointer to an element, and not a C array, whose number of elements is known.
template <class P>
concept ElementPointer = std::is_pointer_v<P> && !std::is_void_v<std::remove_pointer_t<P>>;
/// A view of the elements at a pointer, `strides` bytes apart. The caller guarantees that they are there.
template <ElementPointer P>
[[nodiscard]] auto view(const P& first, const Shape& shape, const Strides& strides) {
    using T = std::remove_pointer_t<P>;
    if constexpr (std::is_const_v<T>) {
        return ArrayView(first, shape, strides);
    } else {
        return MutableArrayView{reinterpret_cast<std::byte*>(first), DType::of<T>(), shape, strides, nullptr};
    }
}
/// The same for elements without gaps.
template <ElementPointer P>
[[nodiscard]] auto view(const P& first, const Shape& shape, Order order = Order::C) {
    return view(first, shape, contiguous_strides(shape, sizeof(std::remove_pointer_t<P>), order));
}

/// Anything shaped like std::mdspan / Kokkos::mdspan: rank(), extent(i), stride(i), data_handle().
template <class M>
concept MdspanLike = requires(const M& m) {
    { m.extent(0) } -> std::convertible_to<std::int64_t>;
    { m.stride(0) } -> std::convertible_to<std::int64_t>;
    m.data_handle();
    m.rank();
};
template <MdspanLike M>
[[nodiscard]] auto view(const M& m) {
    using T = std::remove_reference_t<decltype(*m.data_handle())>;
    Shape shape;
    Strides strides;
    for (std::size_t i = 0; i < m.rank(); ++i) {
        shape.push_back(static_cast<std::int64_t>(m.extent(i)));
        strides.push_back(static_cast<std::int64_t>(m.stride(i)) * static_cast<std::int64_t>(sizeof(T)));
    }
    const DType dtype = DType::of<std::remove_const_t<T>>();
    if constexpr (std::is_const_v<T>) {
        return ArrayView{reinterpret_cast<const std::byte*>(m.data_handle()), dtype, shape, strides};
    } else {
        return MutableArrayView{reinterpret_cast<std::byte*>(m.data_handle()), dtype, shape, strides, nullptr};
    }
}

template <class T>
TypedView<const T> ArrayView::typed() const {
    detail::require_typed(*this, DType::of<T>(), alignof(T));
    return {reinterpret_cast<const T*>(data), shape, strides};
}

template <class T>
TypedView<T> MutableArrayView::typed() const {
    detail::require_typed(*this, DType::of<T>(), alignof(T));
    return {reinterpret_cast<T*>(data), shape, strides};
}

}  // namespace tessera
