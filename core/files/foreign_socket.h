// Bytes between the library and its helper. Private to core/files.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>

#include <tessera/buffer.h>

#include "foreign.h"

namespace tessera {

// Sanitizers reserve more address space than a limit of it grants.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// Whether all was sent. A closed socket is no signal.
inline bool send_all(int socket, const void* from, std::size_t size) {
    const auto* p = static_cast<const char*>(from);
    while (size > 0) {
        const ssize_t n = ::send(socket, p, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

/// The same of a head and the bytes after it, at once: the other side wakes once.
inline bool send_all(int socket, const ForeignHead& head, ByteSpan bytes) {
    std::array<iovec, 2> parts{{{.iov_base = const_cast<ForeignHead*>(&head), .iov_len = sizeof head},
                                {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t n = 0;
    do {
        n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return false;
    const auto sent = static_cast<std::size_t>(n), of_head = std::min(sent, sizeof head);
    const ByteSpan rest = bytes.subspan(sent - of_head);
    return send_all(socket, reinterpret_cast<const char*>(&head) + of_head, sizeof head - of_head) &&
           send_all(socket, rest.data(), rest.size());
}

inline bool receive_all(int socket, void* to, std::size_t size) {
    auto* p = static_cast<char*>(to);
    while (size > 0) {
        const ssize_t n = ::recv(socket, p, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

/// Memory to share that is kept for the next request.
inline constexpr std::size_t kept_space = std::size_t{8} << 20U;

/// Memory of two processes, shared by an unnamed file.
class SharedSpace {
public:
    explicit SharedSpace(int file) : file_(file) {}
    ~SharedSpace() { map(0); }
    SharedSpace(const SharedSpace&) = delete;
    SharedSpace& operator=(const SharedSpace&) = delete;

    /// Maps so many bytes of the file, unless it has. Throws std::bad_alloc.
    MutableByteSpan map(std::size_t size) {
        if (size == 0 || size > bytes_.size()) {
            if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
            bytes_ = {};
            if (size == 0) return {};
            void* const p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
            if (p == MAP_FAILED) throw std::bad_alloc();
            bytes_ = {static_cast<std::byte*>(p), size};
        }
        return bytes_.first(size);
    }

private:
    int file_;
    MutableByteSpan bytes_;
};

}  // namespace tessera
