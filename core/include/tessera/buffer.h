// Buffer: owned bytes, aligned to 64, not zeroed. The library's one way to hold encoded or scratch bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace tessera {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

class BufferPool;
class MemoryAccount;

/// Owned bytes. Contents are indeterminate until written. Thread rule: a move-only value. Growing throws
/// std::bad_alloc, or Error(budget) if the thread has a limit (memory_account.h). Callers check sizes that come from a
/// file before they pass them.
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
    friend class BufferPool;
    struct Free {
        Free();
        explicit Free(BufferPool* from);
        Free(std::shared_ptr<MemoryAccount> counted_by, std::size_t bytes);
        BufferPool* pool = nullptr;              ///< takes the memory back
        std::shared_ptr<MemoryAccount> account;  ///< counts the memory, if set
        std::size_t size = 0;
        void operator()(std::byte* p) const noexcept;
    };
    static std::unique_ptr<std::byte[], Free> allocate(std::size_t size);

    std::unique_ptr<std::byte[], Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

/// Hands out buffers of one size, cut from slabs that are large enough for huge pages. With small pages, the first
/// touch of a fresh buffer would take a large part of the time of decoding into it. A buffer that is destroyed or grows
/// returns its memory to the pool. The pool must outlive all buffers, and returns the memory to the system when it is
/// destroyed. Any thread.
class BufferPool {
public:
    static constexpr std::size_t slab_size = std::size_t{32} << 20;

    /// Throws invalid_argument for a size of 0, or larger than a slab.
    explicit BufferPool(std::size_t size);
    [[nodiscard]] Buffer take();

private:
    friend class Buffer;
    void give_back(std::byte* memory) noexcept;

    std::size_t size_;
    std::mutex mutex_;
    std::vector<Buffer> slabs_;
    std::vector<std::byte*> idle_;
};

}  // namespace tessera
