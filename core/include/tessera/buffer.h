// Buffer: owned bytes, aligned to 64, not zeroed. The library's one way to hold encoded or scratch bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tessera {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

/// Owned bytes. Contents are indeterminate until written. Thread rule: a move-only value.
/// Growing throws std::bad_alloc; sizes that come from a file are checked by the caller before they get here.
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(std::size_t size) { resize(size); }
    explicit Buffer(ByteSpan content);
    Buffer(Buffer&& o) noexcept;
    Buffer& operator=(Buffer&& o) noexcept;
    ~Buffer() = default;

    [[nodiscard]] std::byte* data() { return data_.get(); }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t capacity() const { return capacity_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    /// Keeps the content up to the smaller size; reallocates only to grow.
    void resize(std::size_t size);
    /// Makes room for `size` bytes without keeping the content: cheaper than resize when all is overwritten.
    void reset(std::size_t size);
    void append(ByteSpan more);

    [[nodiscard]] MutableByteSpan span() { return {data(), size_}; }
    [[nodiscard]] ByteSpan span() const { return {data(), size_}; }
    operator ByteSpan() const { return span(); }

private:
    struct Free {
        void operator()(std::byte* p) const noexcept;
    };
    std::unique_ptr<std::byte[], Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace tessera
