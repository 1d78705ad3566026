#include <tessera/buffer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tessera {

namespace {

constexpr std::size_t alignment = 64;  // a cache line, and the widest vector register

std::byte* allocate(std::size_t size) {
    return static_cast<std::byte*>(::operator new[](size, std::align_val_t{alignment}));
}

}  // namespace

void Buffer::Free::operator()(std::byte* p) const noexcept {
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
        data_.reset(allocate(size));
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

}  // namespace tessera
