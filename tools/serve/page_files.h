// The files of the page, which the build puts into the program (tools/cmake/EmbedFiles.cmake).
#pragma once

#include <span>
#include <string_view>

#include <tessera/buffer.h>

namespace tessera::serve {

struct PageFile {
    std::string_view name;
    ByteSpan content;
};
[[nodiscard]] std::span<const PageFile> page_files();

}  // namespace tessera::serve
