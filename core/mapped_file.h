// Open files and mappings, shared by byte_io.cpp and npy.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <tessera/byte_io.h>

namespace tessera {

/// An open file's number, closed when this is destroyed. Thread rule: a move-only value.
class FileDescriptor {
public:
    explicit FileDescriptor(int number = -1) : number_(number) {}
    FileDescriptor(FileDescriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& o) noexcept {
        std::swap(number_, o.number_);
        return *this;
    }
    ~FileDescriptor() { close(); }
    [[nodiscard]] int get() const { return number_; }
    /// Gives up ownership.
    int release() { return std::exchange(number_, -1); }
    /// Closes now. Returns the errno value of a failed close, else 0.
    int close() noexcept;

private:
    int number_;
};

/// Opens a regular file and gets its size. Throws not_found or io; for a directory, pipe or device, io says so in
/// words.
[[nodiscard]] FileDescriptor open_regular(const std::filesystem::path& path, int flags, std::uint64_t& size);

/// A regular file mapped into memory, shared with every other user of the file. If the file is truncated meanwhile,
/// touching the missing part ends the process with SIGBUS: the price of mapping.
class MappedFile final : public ByteSource {
public:
    MappedFile(const std::filesystem::path& path, bool writable);
    ~MappedFile() override;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] ByteSpan mapped() const override { return {data_, size_}; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override;
    void drop_cache(std::uint64_t offset, std::uint64_t length) const override;

    [[nodiscard]] std::byte* data() { return data_; }
    /// Writes changed pages to the file now. Throws io.
    void flush();

private:
    std::string name_;
    std::uint64_t size_ = 0;
    std::byte* data_ = nullptr;
};

}  // namespace tessera
