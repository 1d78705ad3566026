// ByteSource and ByteSink: ranged reads of one pinned version of some bytes, and writes that appear all at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/buffer.h>

namespace tessera {

/// Some bytes, fixed when opened: a later replacement of the file or key is not seen.
/// Thread rule: const members may be called from several threads at once.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// Fills `out` with the bytes from `offset`. Throws corrupt if they lie beyond the end, io if reading fails.
    virtual void read(std::uint64_t offset, MutableByteSpan out) const = 0;
    /// The bytes, if they are already in memory (mapped file, memory store); else empty.
    [[nodiscard]] virtual ByteSpan mapped() const { return {}; }
    /// Whether reading is fast only in ascending order, because going back restarts decoding (a compressed member).
    [[nodiscard]] virtual bool sequential() const { return false; }
    /// How many bytes could be read in the time that one more call takes. Gaps of that length are not worth reading.
    [[nodiscard]] virtual std::uint64_t worth_skipping() const { return 4096; }
    /// The name of these bytes, for messages.
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// Where the next bytes that are stored begin and end, from `offset` on: {offset, size()} if there are no holes, or
    /// none are known. What lies between reads as zeros. {size(), size()} if nothing is stored any more.
    struct Extent {
        std::uint64_t begin = 0, end = 0;
    };
    [[nodiscard]] virtual Extent next_stored(std::uint64_t offset) const { return {offset, size()}; }
    /// A hint that these bytes will be read soon, in this order: where each read is a request over the network, they
    /// are asked for together. Does nothing elsewhere.
    virtual void expect(std::span<const Extent> /*extents*/) const {}
    /// A hint that [offset, offset+length) was read and need not be kept in any cache.
    virtual void drop_cache(std::uint64_t offset, std::uint64_t length) const;
};

/// Throws corrupt unless [offset, offset + length) lies inside the source.
void require_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length);
/// Reads all bytes, or `length` bytes from `offset` on. Makes only the checks of read().
[[nodiscard]] Buffer read_all(const ByteSource& source);
[[nodiscard]] Buffer read_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length);

/// Bytes being written. Nothing is visible under the final name before finish(); destruction without it leaves the
/// old content and removes what was written. Thread rule: write_at may be called from several threads at once, if
/// random_access(); append only from one.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    [[nodiscard]] virtual bool random_access() const = 0;
    /// Appends bytes after those appended so far.
    virtual void append(ByteSpan bytes) = 0;
    /// Writes bytes at any offset; requires random_access(). Does not move the end that append uses.
    virtual void write_at(std::uint64_t offset, ByteSpan bytes) = 0;
    /// Makes all bytes visible, atomically; errors of write and close are thrown here at the latest.
    virtual void finish() = 0;
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// A regular file by pread. Throws not_found or io.
[[nodiscard]] std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path);
/// A regular file mapped read-only; `mapped()` is all of it.
[[nodiscard]] std::unique_ptr<ByteSource> map_file(const std::filesystem::path& path);
/// Bytes in memory, owned.
[[nodiscard]] std::unique_ptr<ByteSource> memory_source(Buffer bytes, std::string name);
/// A window [offset, offset+length) of another source, which it keeps alive.
[[nodiscard]] std::unique_ptr<ByteSource> slice_source(std::shared_ptr<const ByteSource> whole, std::uint64_t offset,
                                                       std::uint64_t length, std::string name);

/// A new file, written under a temporary name in the same directory. finish() renames it over `path`. If `durable`,
/// finish() waits until the file is on the disk before the rename, and until its name is on the disk after. The mode
/// follows the umask. Throws not_found (no such directory) or io.
[[nodiscard]] std::unique_ptr<ByteSink> create_file(const std::filesystem::path& path, bool durable = true);

/// Files with this prefix are temporary files of a writer; every listing skips them.
inline constexpr std::string_view temporary_prefix = ".tessera-tmp-";
/// The number of this process, without a system call each time; correct in a forked child too. Any thread may call it.
[[nodiscard]] int process_number();
/// A new name for a temporary file, ".tessera-tmp-PID-N-HOST": the number of this process, a number that it gives only
/// once, and a hash of the machine's name in 8 hexadecimal digits. Any thread may call it.
[[nodiscard]] std::string temporary_name();
/// Whether the process that made such a name has certainly ended: it ran on this machine, and no process has its number
/// now. False for a name of another machine, and for one that temporary_name() does not make. A name without a machine
/// (".tessera-tmp-PID-N") counts as this machine's.
[[nodiscard]] bool temporary_writer_has_ended(std::string_view name);

}  // namespace tessera
