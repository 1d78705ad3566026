// Zip archives: members read by range, and written one after another. What .npz files and zip stores are made of.
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
    /// Throws not_found, io, or corrupt for what is no zip.
    explicit ZipReader(const std::filesystem::path& path);
    ~ZipReader();
    ZipReader(ZipReader&&) noexcept;
    ZipReader& operator=(ZipReader&&) noexcept;

    [[nodiscard]] const std::vector<ZipMember>& members() const;
    /// The bytes of a member. STORED members are read in place; DEFLATE ones stream forward and restart when a read
    /// goes back. CRC-32 is checked whenever a member is read whole. Of several members with one name the last counts.
    /// Throws not_found, naming the members there are; unsupported for encryption or another method; corrupt for sizes
    /// that the archive cannot hold.
    [[nodiscard]] std::shared_ptr<const ByteSource> open(std::string_view name) const;
    /// The same for members()[index].
    [[nodiscard]] std::unique_ptr<ByteSource> open(std::size_t index) const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Where in the file the bytes of members()[index] begin, which is STORED. Throws corrupt where they are not there.
[[nodiscard]] std::uint64_t stored_member_offset(const std::filesystem::path& path, std::size_t index);

/// A zip archive being written: pushed bytes, one member after another, nothing held in memory; ZIP64 wherever needed.
/// Appears under its name only by finish(). Thread rule: one thread.
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
    void finish();

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace tessera
