#include <tessera/descriptor.h>
#include <unistd.h>

#include <cerrno>

namespace tessera {

namespace {

/// Calls write(rest, bytes done) until all bytes are written.
template <class Write>
bool write_rest(ByteSpan bytes, const Write& write) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(bytes.subspan(done), done);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace

int Descriptor::close() noexcept {
    const int fd = release();
    // Linux closes the file even when it reports EINTR.
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
    int fd = -1;
    do {
        fd = ::openat(directory, path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

std::optional<std::size_t> pread_all(int file, MutableByteSpan out, std::uint64_t offset) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t n = ::pread(file, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::nullopt;
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

bool pwrite_all(int file, ByteSpan bytes, std::uint64_t offset) {
    return write_rest(bytes, [&](ByteSpan rest, std::size_t done) {
        return ::pwrite(file, rest.data(), rest.size(), static_cast<off_t>(offset + done));
    });
}

bool write_all(int file, ByteSpan bytes) {
    return write_rest(bytes, [&](ByteSpan rest, std::size_t) { return ::write(file, rest.data(), rest.size()); });
}

bool is_absent(int error) {
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

bool sync_directory(int at, const char* path) {
    const Descriptor fd(open_at(at, path, O_RDONLY | O_DIRECTORY));
    return fd && (::fsync(fd.get()) == 0 || errno == EINVAL);
}

}  // namespace tessera
