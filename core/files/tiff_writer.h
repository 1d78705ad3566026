// New TIFF files: tiled, plain or deflated, the directories in front of the elements. Private to core/files.
#pragma once

#include <filesystem>
#include <memory>

#include <tessera/array_file.h>

namespace tessera {

/// The member that a path without "::" means.
inline constexpr std::string_view tiff_main = "image";

/// A new file of one array of the shape (…, y, x), (y, x, 3 or 4 colours), or as options.attributes name the
/// dimensions: a last or third-last "band" are the samples of a pixel, what is in front are pages. Throws unsupported.
[[nodiscard]] std::unique_ptr<ArraySink> create_tiff(const std::filesystem::path& path, const DType& dtype,
                                                     const Shape& shape, const ArrayFileOptions& options);

/// A new file of one array and its overviews: the levels of a group with "multiscales", the largest first.
void bundle_tiff(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                 const IoOptions& io);

}  // namespace tessera
