// System calls on files that are made in more than one place: owned descriptors, opening, reads and writes of all that
// was asked for, making names durable.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <tessera/buffer.h>

#include <cstddef>
#include <cstdint>
#include <optional>
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
    ~Descriptor() { close(); }
    [[nodiscard]] int get() const { return fd_; }
    /// Gives up ownership.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    /// Closes now. Returns the errno value of a failed close, else 0.
    int close() noexcept;
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

/// openat() with O_CLOEXEC, again if a signal interrupts it.
[[nodiscard]] int open_at(int directory, const char* path, int flags, mode_t mode = 0);

/// Fills `out` from this offset of a file. Returns the number of bytes, which is smaller only at the end of the file;
/// nullopt, and errno, if that fails.
[[nodiscard]] std::optional<std::size_t> pread_all(int file, MutableByteSpan out, std::uint64_t offset);
/// Writes all bytes at this offset, or where the file stands. Returns false, and sets errno, if that fails.
[[nodiscard]] bool pwrite_all(int file, ByteSpan bytes, std::uint64_t offset);
[[nodiscard]] bool write_all(int file, ByteSpan bytes);

/// Whether this errno of a lookup means that nothing is there. A name that is too long for the file system is
/// nothing's.
[[nodiscard]] bool is_absent(int error);

/// Makes the names in a directory durable; returns false and sets errno if that fails. EINVAL is not a failure: such
/// file systems keep names durable by themselves, or cannot at all.
[[nodiscard]] bool sync_directory(int at, const char* path);

}  // namespace tessera
