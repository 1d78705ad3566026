// A value of a directory store: an open file. Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/holes.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "descriptor.h"

namespace tessera {

class FileValue final : public ByteSource {
public:
    FileValue(Descriptor fd, std::uint64_t size, std::string name)
        : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }

    void read(std::uint64_t offset, MutableByteSpan out) const override {
        if (offset > size_ || out.size() > size_ - offset) {
            throw corrupt("{}: bytes {} to {} were expected, but there are {}", name_, offset, offset + out.size(),
                          size_);
        }
        while (!out.empty()) {
            const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) throw io_error("reading", name_, errno);
            if (n == 0) throw corrupt("{}: cut short at byte {} while it was open", name_, offset);
            out = out.subspan(static_cast<std::size_t>(n));
            offset += static_cast<std::uint64_t>(n);
        }
    }

    [[nodiscard]] Extent next_stored(std::uint64_t offset) const override {
        return tessera::next_stored(fd_.get(), offset, size_);
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Descriptor fd_;
    std::uint64_t size_;
    std::string name_;
};

}  // namespace tessera
