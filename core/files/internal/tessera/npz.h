// .npz, NumPy's zip of .npy members: STORED or DEFLATE, ZIP64, data descriptors, any names.
// CRC-32 is checked whenever a member is read whole; a STORED member read by region, in place, is not checked.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/zip.h>

namespace tessera {

/// "elevation" for each "elevation.npy", in archive order.
[[nodiscard]] std::vector<std::string> npz_members(const ZipReader& zip);
/// A member (named with or without ".npy") as a source. Throws not_found, listing the members.
[[nodiscard]] std::unique_ptr<ArraySource> open_npz_member(const std::filesystem::path& path, std::string_view member);

}  // namespace tessera
