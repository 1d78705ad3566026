// Zip archives: members read by range, and written one after another. For .npz files and zip stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>

namespace tessera {

/// One member of a zip archive.
struct ZipMember {
    std::string name;  ///< as stored, UTF-8: "elevation.npy"
    std::uint64_t size = 0;
    std::uint64_t compressed_size = 0;
    bool stored = true;  ///< false: DEFLATE
};

/// A zip archive opened for reading (libzip). Thread rule: const members may be called from several threads.
class ZipReader {
public:
    /// Throws not_found, io, or corrupt if the file is no zip.
    explicit ZipReader(const std::filesystem::path& path);
    /// Of an archive that is no file of this machine.
    explicit ZipReader(const std::shared_ptr<const ByteSource>& file);
    ~ZipReader();
    ZipReader(ZipReader&&) noexcept;
    ZipReader& operator=(ZipReader&&) noexcept;

    [[nodiscard]] const std::vector<ZipMember>& members() const;
    /// The bytes of a member. STORED members are read in place. DEFLATE ones stream forward and restart when a read
    /// goes back. CRC-32 is checked whenever a member is read whole. If several members share a name, the last one
    /// counts. Throws not_found, listing the members; unsupported for encryption or another method; corrupt for sizes
    /// beyond the archive, and if the member's own header contradicts the archive's directory.
    [[nodiscard]] std::shared_ptr<const ByteSource> open(std::string_view name) const;
    /// The same for members()[index].
    [[nodiscard]] std::unique_ptr<ByteSource> open(std::size_t index) const;
    /// The offset in the file of the bytes of members()[index], which is STORED.
    [[nodiscard]] std::uint64_t stored_offset(std::size_t index) const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Writes a zip archive, one member after another, and holds nothing in memory; ZIP64 if needed. It appears under its
/// name only at finish(). Thread rule: one thread.
class ZipWriter {
public:
    /// `durable` as for create_file().
    explicit ZipWriter(const std::filesystem::path& path, bool durable = true);
    ~ZipWriter();
    ZipWriter(ZipWriter&&) noexcept;
    ZipWriter& operator=(ZipWriter&&) noexcept;

    /// Starts a member; the returned sink appends only, and must be finished before the next begins.
    /// `level` 0 stores, 1–9 deflates. Throws already_exists for a name used before.
    [[nodiscard]] std::unique_ptr<ByteSink> add(std::string_view name, int level);
    /// `comment` is the archive's own, at its end.
    void finish(const std::string& comment = {});

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace tessera
