// Compressed strips and tiles, decoded by libtiff. Private to core/files.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tessera/byte_io.h>

#include "tiff_format.h"

namespace tessera {

/// By default libtiff works in child processes (in_process.h). Thread rule: any thread may call decode(); each uses a
/// handle, or a child, of its own.
class TiffDecoder {
public:
    explicit TiffDecoder(std::shared_ptr<const ByteSource> file);
    ~TiffDecoder();
    TiffDecoder(const TiffDecoder&) = delete;
    TiffDecoder& operator=(const TiffDecoder&) = delete;

    /// Throws unsupported if this libtiff, or this build, cannot decode the page.
    void require(const TiffPage& page) const;
    /// Decodes chunk number `n` of a page into `out`, in native byte order. Throws corrupt.
    void decode(const TiffPage& page, std::int64_t n, MutableByteSpan out);

private:
    struct Handle;
    /// The same in a child process.
    void decode_apart(const TiffPage& page, std::int64_t n, MutableByteSpan out) const;

    std::shared_ptr<const ByteSource> file_;
    std::uint64_t id_;  ///< by which children know it
    std::mutex mutex_;
    std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace tessera
