// Standard containers whose memory counts against the MemoryAccount of the thread that makes them. For lists as long as
// a file says; what is known to be small needs no count.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tessera/memory_account.h>

namespace tessera {

/// Takes memory from the account before it is allocated, and gives it back to the same account from any thread.
/// Allocating throws as MemoryAccount::take.
template <class T>
class CountedAllocator {
public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    CountedAllocator() : account_(MemoryAccount::current()) {}
    template <class U>
    CountedAllocator(const CountedAllocator<U>& o) : account_(o.account()) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        if (account_) account_->take(count * sizeof(T));
        try {
            return std::allocator<T>().allocate(count);
        } catch (...) {
            if (account_) account_->give_back(count * sizeof(T));
            throw;
        }
    }
    void deallocate(T* p, std::size_t count) noexcept {
        std::allocator<T>().deallocate(p, count);
        if (account_) account_->give_back(count * sizeof(T));
    }

    [[nodiscard]] const std::shared_ptr<MemoryAccount>& account() const { return account_; }
    template <class U>
    bool operator==(const CountedAllocator<U>& o) const {
        return account_ == o.account();
    }

private:
    std::shared_ptr<MemoryAccount> account_;
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;
using CountedString = std::basic_string<char, std::char_traits<char>, CountedAllocator<char>>;

}  // namespace tessera
