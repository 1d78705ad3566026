// Bytes that are far away, for programs that read them in small pieces.
#pragma once

#include <memory>

#include <tessera/byte_io.h>

namespace tessera {

/// The same bytes, of which the blocks that were read last are kept (at most 2 MiB), so that small pieces that lie
/// close together are one request. What was announced by expect(), and long pieces, pass as they are.
[[nodiscard]] std::unique_ptr<const ByteSource> block_source(std::unique_ptr<const ByteSource> file);

}  // namespace tessera
