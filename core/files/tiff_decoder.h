// Compressed strips and tiles, decoded by libtiff in a helper (helper_process.h). Private to core/files.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/byte_io.h>

#include "tiff_format.h"

namespace tessera {

/// Thread rule: any thread may call decode(); each has a helper of its own.
class TiffDecoder {
public:
    explicit TiffDecoder(std::shared_ptr<const ByteSource> file);

    /// Throws unsupported if libtiff, or this build, cannot decode the page. Not for several threads.
    void require(const TiffPage& page);
    /// Decodes chunk number `n` of a page into `out`, in native byte order. Throws corrupt.
    void decode(const TiffPage& page, std::int64_t n, MutableByteSpan out) const;

private:
    std::shared_ptr<const ByteSource> file_;
    std::uint64_t id_;   ///< by which helpers know it
    int required_ = -1;  ///< a compression that is decoded
};

}  // namespace tessera
