// Where the members of a zip archive lie, which libzip does not tell, and whether their own headers say the same as the
// archive's directory. Private to the core module.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>

namespace tessera {

/// Reads a range of an archive; false if it is not all there.
using ZipRead = std::function<bool(MutableByteSpan out, std::uint64_t offset)>;

/// The counts of the end record: the members, and the bytes of the directory at an offset.
struct ZipEnd {
    std::uint64_t members = 0, bytes = 0, offset = 0;
};
/// nullopt if there is none that is right.
[[nodiscard]] std::optional<ZipEnd> zip_end(std::uint64_t file_size, const ZipRead& read);

/// One member's entry in the directory.
struct ZipEntry {
    std::string_view name;  ///< as stored
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t size = 0, compressed = 0;
};

/// The offsets of the members' headers. Thread rule: const members may be called from several threads if `read` may.
class ZipDirectory {
public:
    /// `end`: of an archive whose directory libzip could read. Throws corrupt, naming `archive`, if it is none.
    ZipDirectory(const std::string& archive, const ZipEnd& end, const ZipRead& read);
    [[nodiscard]] std::size_t size() const { return offsets_.size(); }

    /// The offset of the bytes of a member. Throws corrupt, naming it as `name`, if its header says something else than
    /// the directory, or if it reaches into the next member.
    [[nodiscard]] std::uint64_t data_offset(std::size_t index, const ZipEntry& entry, const std::string& name,
                                            const ZipRead& read) const;

private:
    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint64_t> sorted_;  ///< and the directory's own
};

}  // namespace tessera
