// The holes of sparse files.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <tessera/byte_io.h>

namespace tessera {

/// ByteSource::next_stored of an open file of this size. Does not move what pread reads.
[[nodiscard]] inline ByteSource::Extent next_stored(int file, std::uint64_t offset, std::uint64_t size) {
    const off_t begin = ::lseek(file, static_cast<off_t>(offset), SEEK_DATA);
    if (begin < 0) return {errno == ENXIO ? size : offset, size};
    const off_t end = ::lseek(file, begin, SEEK_HOLE);
    return {std::min(static_cast<std::uint64_t>(begin), size),
            end < 0 ? size : std::min(static_cast<std::uint64_t>(end), size)};
}

}  // namespace tessera
