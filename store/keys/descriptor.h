// System calls that the store makes in more than one place: owned descriptors, opening, making names durable. Private
// to the store module.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tessera {

/// Closed on destruction.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& o) noexcept {
        std::swap(fd_, o.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

inline int open_at(int directory, const char* path, int flags, mode_t mode = 0) {
    int fd = -1;
    do {
        fd = ::openat(directory, path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/// Whether this errno of a lookup means that nothing is there. A name that is too long for the file system is
/// nothing's.
inline bool is_absent(int error) {
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

/// Makes the names in a directory durable; returns false and sets errno if that fails. EINVAL is not a failure: such
/// file systems keep names durable by themselves, or cannot at all.
inline bool sync_directory(int at, const char* path) {
    const Descriptor fd(open_at(at, path, O_RDONLY | O_DIRECTORY));
    return fd && (::fsync(fd.get()) == 0 || errno == EINVAL);
}

}  // namespace tessera
