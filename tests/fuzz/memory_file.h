// Bytes under a path, for parsers that open files themselves.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include <tessera/buffer.h>

class MemoryFile {
public:
    explicit MemoryFile(tessera::ByteSpan bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        const ssize_t written = fd_ < 0 ? -1 : ::write(fd_, bytes.data(), bytes.size());
        if (written != static_cast<ssize_t>(bytes.size())) __builtin_trap();  // no memory to fuzz in
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};
