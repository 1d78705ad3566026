// Sums of the files below a prefix that other programs compute, for transfers and archives. They say what lies on disk,
// and not what the elements are: that is digest().
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

namespace tessera {

/// DANDI's checksum of a Zarr, as zarr_checksum computes it: "MD5-FILES--BYTES", where the MD5 is of the names, sizes
/// and sums of a folder's content as JSON, and a folder's sum is computed in the same way. Tessera's own files do not
/// count. Throws what reading throws.
[[nodiscard]] std::string dandi_checksum(const PlaceView& place, const IoOptions& io = {});

/// Calls out(bytes) for a line with the SHA-256 of each of those files, in the order of their names and in sha256sum's
/// format. `folder` stands before each name, with '/' if it is not empty.
void file_sums(const PlaceView& place, std::string_view folder, const std::function<void(ByteSpan)>& out,
               const IoOptions& io = {});

}  // namespace tessera
