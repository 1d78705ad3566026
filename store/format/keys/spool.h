// Lists that may be longer than memory: bytes in a file without a name, and records sorted there. Private to the store
// module.
#pragma once

#include <tessera/buffer.h>
#include <tessera/descriptor.h>
#include <tessera/key_value_store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// The folder for spools of what is done with a store: its own, if it is a folder of this machine; else empty.
[[nodiscard]] std::string spool_folder(const ReadableStore& store);

/// The folder for temporary files that may be large: $TMPDIR, else /var/tmp, because /tmp may be memory.
[[nodiscard]] std::string large_files_folder();

/// A file without a name, which ends with the process however that ends. It lies in the folder, or where that cannot be
/// written, in the one for temporary files.
[[nodiscard]] Descriptor file_without_name(const std::string& folder);

/// Bytes for the time of one operation. The last of them are in memory, the others in a file without a name, which ends
/// with the process however that ends, and which changes nothing that can be listed. It lies in the folder, or where
/// that cannot be written, in the one for temporary files.
/// Thread rule: const members may be called from several threads at once.
class Spool {
public:
    explicit Spool(std::string folder) : folder_(std::move(folder)) {}

    [[nodiscard]] std::uint64_t size() const { return written_ + tail_.size(); }
    void append(ByteSpan bytes);
    /// Fills `out`; all of it must be there.
    void read(std::uint64_t at, MutableByteSpan out) const;
    /// Replaces bytes that are there.
    void write(std::uint64_t at, ByteSpan bytes);

private:
    void write_tail();

    std::string folder_;
    Descriptor file_;
    std::uint64_t written_ = 0;    ///< bytes in the file
    std::vector<std::byte> tail_;  ///< what follows them
};

/// Sorts records by their keys, byte by byte; equal keys stay in the order in which they came. Memory holds about a
/// MiB of them, however many there are. Thread rule: one thread.
class RecordSorter {
public:
    using Each = std::function<void(std::string_view key, ByteSpan value)>;

    explicit RecordSorter(std::string folder) : spool_(std::move(folder)) {}

    void add(std::string_view key, ByteSpan value);
    /// Calls each(key, value) for all, in order. At the end there are none left.
    void sort(const Each& each);

private:
    [[nodiscard]] std::string_view key_at(std::size_t at) const;
    void sort_run();
    void end_run();
    void merge(const Each& each) const;

    Spool spool_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> runs_;  ///< where each begins and ends in the spool
    std::vector<std::byte> run_;                                 ///< the one that grows, not sorted yet
    std::vector<std::uint32_t> order_;                           ///< where its records begin
};

}  // namespace tessera
