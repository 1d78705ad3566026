// The digest of an array: one hash of dtype, shape and content, independent of chunks, codecs, Zarr format and file
// format.
//
// Version 1, specified so that anybody can recompute it:
//
//   digest = "tessera1:" + hex(SHA-256(header + leaf digests))
//   header = "tessera1\n" + dtype + "\n" + shape + "\n", UTF-8; the dtype is NumPy's descr in little-endian order as
//            Python prints it ("<i4", "[('a', '<i4'), ('b', '<f8')]"; "string" and "bytes" for variable length), the
//            shape its tuple ("(3, 4)")
//   leaves: the array is cut into a grid of boxes. A box begins as the whole shape; as long as it has more than
//            2^20 bytes (an element of variable length counts as 16), the longest of its lengths (the first of
//            equals) is halved, rounded up. At the end of the array boxes are cut off. Leaves are in C order of the
//            grid; an empty array has none.
//   leaf digest = the 32 bytes of SHA-256 of the box's elements in C order, little-endian, padding of structures
//            zero. An element of variable length is its number of bytes as a little-endian u64, and then the bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/locate.h>

namespace tessera {

/// Computes the digest in parallel within io.max_memory (plus 32 bytes for each box).
[[nodiscard]] std::string digest(const ArraySource& source, const IoOptions& io = {});

/// The digest of an array, or of a group or an array file with all arrays below.
struct NodeDigest {
    std::string digest;
    bool group = false;
    std::vector<std::pair<std::string, std::string>> arrays = {};  ///< of a group: paths below it, and their digests
};

/// The digest of what lies at a path. Of a group, and of an array file of several arrays:
///   "tessera1-group:" + hex(SHA-256(lines)), a line for each array below, sorted by its bytes:
///   path below the group + " " + digest + "\n".
/// Attributes and empty groups do not count. Throws not_found, and the errors of open_source().
[[nodiscard]] NodeDigest digest(const Located& at, const IoOptions& io = {});

}  // namespace tessera
