// Open files and mappings, shared by file_io.cpp and npy.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <tessera/byte_io.h>
#include <tessera/descriptor.h>

namespace tessera {

/// Opens a regular file and gets its size. Throws not_found or io; for a directory, pipe or device, io says so in
/// words.
[[nodiscard]] Descriptor open_regular(const std::filesystem::path& path, int flags, std::uint64_t& size);

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
