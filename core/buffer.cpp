#include <tessera/buffer.h>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>

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

/// From this size on, memory comes from the system separately and asks for huge pages.
constexpr std::size_t large = BufferPool::slab_size;

/// Smaller buffers are not counted, because there are never many at once.
constexpr std::size_t least_counted = 4096;

/// From this size on, counted memory is mapped separately if freeing it must return it to the system. The C library
/// would keep it in this thread's heap, where it is not counted.
constexpr std::size_t least_mapped = std::size_t{256} << 10;
constexpr std::size_t least_mapped_if_kept = std::size_t{8} << 20;

bool is_mapped(const MemoryAccount& account, std::size_t size) {
    return size >= (account.freed() == MemoryAccount::Freed::returned ? least_mapped : least_mapped_if_kept);
}

std::byte* map_bytes(std::size_t size) {
    void* const p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(p);
}

std::byte* allocate_bytes(std::size_t size, bool mapped) {
    auto* p = mapped ? map_bytes(size) : static_cast<std::byte*>(::operator new[](size, std::align_val_t{alignment}));
    if (size >= large) {
        // The first touch of every small page costs more than decoding its content. Only a hint: failure is no error.
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t skipped = (page - reinterpret_cast<std::uintptr_t>(p) % page) % page;
        (void)::madvise(p + skipped, size - skipped, MADV_HUGEPAGE);
    }
    return p;
}

}  // namespace

Buffer::Free::Free() = default;
Buffer::Free::Free(BufferPool* from) : pool(from) {}
Buffer::Free::Free(std::shared_ptr<MemoryAccount> counted_by, std::size_t bytes)
    : account(std::move(counted_by)), size(bytes) {}

void Buffer::Free::operator()(std::byte* p) const noexcept {
    if (pool != nullptr) return pool->give_back(p);
    if (account && is_mapped(*account, size)) {
        (void)::munmap(p, size);
    } else {
        ::operator delete[](p, std::align_val_t{alignment});
    }
    if (account) account->give_back(size);
}

std::unique_ptr<std::byte[], Buffer::Free> Buffer::allocate(std::size_t size) {
    std::shared_ptr<MemoryAccount> account;
    if (size >= least_counted) account = MemoryAccount::current();
    if (!account) return std::unique_ptr<std::byte[], Free>(allocate_bytes(size, false));
    account->take(size);
    try {
        std::byte* const p = allocate_bytes(size, is_mapped(*account, size));
        return {p, Free(std::move(account), size)};
    } catch (...) {
        account->give_back(size);
        throw;
    }
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
        std::unique_ptr<std::byte[], Free> grown = allocate(size);
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
        data_ = allocate(size);
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
        throw invalid_argument("a pool of buffers of {} bytes: 1 to {} are possible", size, slab_size);
    }
}

Buffer BufferPool::take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
        const std::size_t step = (size_ + alignment - 1) / alignment * alignment;
        const std::size_t pieces = slab_size / step;
        idle_.reserve((slabs_.size() + 1) * pieces);  // room for all, so that returning a buffer needs no memory
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
