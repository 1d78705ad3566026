#include <tessera/buffer.h>

#include <fmt/format.h>
#include <tessera/error.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tessera {

namespace {

constexpr std::size_t alignment = 64;  // a cache line, and the widest vector register

/// From this size on memory comes from the system by itself, and is asked for in huge pages.
constexpr std::size_t large = BufferPool::slab_size;

std::byte* allocate(std::size_t size) {
    auto* p = static_cast<std::byte*>(::operator new[](size, std::align_val_t{alignment}));
    if (size >= large) {
        // The first touch of every small page costs more than decoding what goes into it. A hint: failing is no error.
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t skipped = (page - reinterpret_cast<std::uintptr_t>(p) % page) % page;
        (void)::madvise(p + skipped, size - skipped, MADV_HUGEPAGE);
    }
    return p;
}

}  // namespace

void Buffer::Free::operator()(std::byte* p) const noexcept {
    if (pool != nullptr) return pool->give_back(p);
    ::operator delete[](p, std::align_val_t{alignment});
}

Buffer::Buffer(ByteSpan content) {
    reset(content.size());
    std::copy(content.begin(), content.end(), data_.get());
}

Buffer::Buffer(Buffer&& o) noexcept
    : data_(std::move(o.data_)), size_(std::exchange(o.size_, 0)), capacity_(std::exchange(o.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
    data_ = std::move(o.data_);
    size_ = std::exchange(o.size_, 0);
    capacity_ = std::exchange(o.capacity_, 0);
    return *this;
}

void Buffer::resize(std::size_t size) {
    if (size > capacity_) {
        std::unique_ptr<std::byte[], Free> grown(allocate(size));
        if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
        data_ = std::move(grown);
        capacity_ = size;
    }
    size_ = size;
}

void Buffer::reset(std::size_t size) {
    if (size > capacity_) {
        // Freed first, so that old and new are never held together.
        data_.reset();
        capacity_ = 0;
        size_ = 0;
        data_ = std::unique_ptr<std::byte[], Free>(allocate(size));
        capacity_ = size;
    }
    size_ = size;
}

void Buffer::append(ByteSpan more) {
    if (more.empty()) return;
    const std::size_t old = size_;
    if (old + more.size() > capacity_) {
        const std::size_t wanted = old + more.size();
        resize(std::max(wanted, capacity_ + capacity_ / 2));
        size_ = wanted;
    } else {
        size_ = old + more.size();
    }
    std::memcpy(data_.get() + old, more.data(), more.size());
}

BufferPool::BufferPool(std::size_t size) : size_(size) {
    if (size == 0 || size > slab_size) {
        throw invalid_argument(fmt::format("a pool of buffers of {} bytes: 1 to {} are possible", size, slab_size));
    }
}

Buffer BufferPool::take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
        const std::size_t step = (size_ + alignment - 1) / alignment * alignment;
        const std::size_t pieces = slab_size / step;
        idle_.reserve((slabs_.size() + 1) * pieces);  // room for all, so that none needs memory to come back
        slabs_.emplace_back(slab_size);
        for (std::size_t i = pieces; i-- > 0;) idle_.push_back(slabs_.back().data() + i * step);
    }
    Buffer buffer;
    buffer.data_ = std::unique_ptr<std::byte[], Buffer::Free>(idle_.back(), Buffer::Free(this));
    buffer.size_ = buffer.capacity_ = size_;
    idle_.pop_back();
    return buffer;
}

void BufferPool::give_back(std::byte* memory) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.push_back(memory);
}

}  // namespace tessera
