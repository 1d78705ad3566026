// Bytes of an open file.
#pragma once

#include <fcntl.h>
#include <tessera/byte_io.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/holes.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace tessera {

class FileSource final : public ByteSource {
public:
    /// Of `size` bytes; `name` is for messages.
    FileSource(Descriptor file, std::uint64_t size, std::string name)
        : file_(std::move(file)), size_(size), name_(std::move(name)) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        require_range(*this, offset, out.size());
        const auto read = pread_all(file_.get(), out, offset);
        if (!read) throw io_error("cannot read", name_, errno);
        if (*read < out.size()) {
            throw corrupt(
                "{}: the file had {} bytes when it was opened and now ends at offset {}: it was truncated "
                "meanwhile",
                name_, size_, offset + *read);
        }
    }
    [[nodiscard]] Extent next_stored(std::uint64_t offset) const override {
        return tessera::next_stored(file_.get(), offset, size_);
    }
    void drop_cache(std::uint64_t offset, std::uint64_t length) const override {
        ::posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Descriptor file_;
    std::uint64_t size_;
    std::string name_;
};

}  // namespace tessera
