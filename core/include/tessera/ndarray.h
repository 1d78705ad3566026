// NDArray: an array that owns its elements, contiguous in C or Fortran order.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/view.h>

namespace tessera {

template <class T>
class OwnedValues;

/// Elements that an NDArray is made of: numbers and the other types of DType::of, or texts.
template <class R>
concept ElementsToCopy = std::ranges::input_range<R> && !std::convertible_to<R&&, const ArrayView&> &&
                         !std::convertible_to<R&&, DType> && !std::is_same_v<std::remove_cvref_t<R>, Dims>;

/// Owned elements and, for variable-length dtypes, their arena. Thread rule: as for a std::vector. A moved-from array
/// is empty. A temporary array can be passed to any function that reads elements (`b.write(region, a.read(region))`),
/// and its values() and bytes() own the elements. No ArrayView, span or reference to a temporary can be kept.
class NDArray {
public:
    NDArray() = default;
    /// Elements are indeterminate, except those of variable-length dtypes, which are empty strings.
    /// Throws invalid_argument when the size overflows.
    NDArray(const DType& dtype, const Shape& shape, Order order = Order::C);
    /// The same in existing memory, in C order.
    NDArray(const DType& dtype, const Shape& shape, Buffer memory);
    /// A copy of the elements of a range, as a 1-D array or in C order as one of this shape:
    /// `NDArray(std::vector{1.5, 2.5})`. Texts (std::string, …) become text of variable length. Throws invalid_argument
    /// if the number of elements does not match the shape.
    template <ElementsToCopy R>
    explicit NDArray(R&& elements);
    template <ElementsToCopy R>
    NDArray(R&& elements, const Shape& shape) : NDArray(std::forward<R>(elements)) {
        detail::require_count(count(), shape);
        *this = std::move(*this).reshaped(shape);
    }
    NDArray(NDArray&& other) noexcept;
    NDArray& operator=(NDArray&& other) noexcept;
    ~NDArray() = default;
    /// A packed C-order copy of a view.
    [[nodiscard]] static NDArray copy_of(const ArrayView& v);

    [[nodiscard]] const DType& dtype() const& { return view_.dtype; }
    [[nodiscard]] DType dtype() && { return std::move(view_.dtype); }
    [[nodiscard]] const Shape& shape() const& { return view_.shape; }
    [[nodiscard]] Shape shape() && { return view_.shape; }
    [[nodiscard]] Order order() const { return order_; }
    [[nodiscard]] std::int64_t count() const { return view_.count(); }
    [[nodiscard]] ByteSpan bytes() const& { return buffer_.span(); }
    [[nodiscard]] MutableByteSpan bytes() & { return buffer_.span(); }
    [[nodiscard]] OwnedValues<std::byte> bytes() &&;

    [[nodiscard]] const ArrayView& view() const& { return view_; }
    [[nodiscard]] MutableArrayView view() &;
    [[nodiscard]] TemporaryView view() && { return TemporaryView(view_); }
    operator const ArrayView&() const { return view_; }
    operator MutableArrayView() & { return view(); }

    [[nodiscard]] std::string to_string() const { return view_.to_string(); }  ///< as ArrayView's

    /// The same elements in memory order, under another shape with the same number of elements.
    [[nodiscard]] NDArray reshaped(const Shape& shape) &&;

    /// All elements in memory order, as T. Throws invalid_argument unless the dtype is exactly T in host order.
    template <class T>
    [[nodiscard]] std::span<const T> values() const& {
        detail::require_typed(view_, DType::of<T>(), alignof(T));
        return {reinterpret_cast<const T*>(buffer_.data()), static_cast<std::size_t>(count())};
    }
    template <class T>
    [[nodiscard]] std::span<T> values() & {
        detail::require_typed(view_, DType::of<T>(), alignof(T));
        return {reinterpret_cast<T*>(buffer_.data()), static_cast<std::size_t>(count())};
    }
    template <class T>
    [[nodiscard]] OwnedValues<T> values() &&;

private:
    ArrayView view_;  ///< of all elements
    Order order_ = Order::C;
    Buffer buffer_;
    std::unique_ptr<Arena> arena_;
};

/// Owns the elements of an array that was a temporary: `for (float x : a.read("0").values<float>())`. Only a variable
/// of this type converts to a span; a temporary does not.
template <class T>
class OwnedValues {
public:
    /// Intentionally not contiguous: std::span would accept a temporary of contiguous elements.
    class Iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T*;
        using reference = const T&;

        Iterator() = default;
        explicit Iterator(const T* at) : at_(at) {}
        reference operator*() const { return *at_; }
        Iterator& operator++() { return ++at_, *this; }
        Iterator operator++(int) { return Iterator(at_++); }
        bool operator==(const Iterator&) const = default;

    private:
        const T* at_ = nullptr;
    };

    OwnedValues(NDArray&& array, std::size_t size) : array_(std::move(array)), size_(size) {}
    [[nodiscard]] Iterator begin() const { return Iterator(data()); }
    [[nodiscard]] Iterator end() const { return Iterator(data() + size_); }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const T& operator[](std::size_t i) const& { return data()[i]; }
    [[nodiscard]] T operator[](std::size_t i) && { return data()[i]; }
    operator std::span<const T>() const& { return {data(), size_}; }
    operator std::span<const T>() const&& = delete;

private:
    [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(array_.bytes().data()); }
    NDArray array_;
    std::size_t size_;
};

template <ElementsToCopy R>
NDArray::NDArray(R&& elements) {
    using T = std::ranges::range_value_t<R>;
    if constexpr (!std::ranges::forward_range<R>) {
        std::vector<T> all;
        for (auto&& element : elements) all.push_back(std::forward<decltype(element)>(element));
        *this = NDArray(all);
    } else {
        const Shape shape{static_cast<std::int64_t>(std::ranges::distance(elements))};
        if constexpr (std::convertible_to<const T&, std::string_view>) {
            *this = NDArray(DType::variable_text(), shape);
            auto* slot = reinterpret_cast<VariableSlot*>(buffer_.data());
            for (auto&& text : elements) *slot++ = arena_->add(std::string_view(text));
        } else {
            *this = NDArray(DType::of<T>(), shape);
            std::ranges::copy(elements, values<T>().begin());
        }
    }
}

inline OwnedValues<std::byte> NDArray::bytes() && {
    const std::size_t size = buffer_.size();
    return {std::move(*this), size};
}

template <class T>
OwnedValues<T> NDArray::values() && {
    const std::size_t size = std::as_const(*this).values<T>().size();
    return {std::move(*this), size};
}

}  // namespace tessera
