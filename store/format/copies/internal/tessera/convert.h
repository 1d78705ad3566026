// Conversion between Zarr formats: an array's metadata in the other format, and whether its chunks stay valid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/array.h>
#include <tessera/chunk_layout.h>
#include <tessera/dialect.h>

namespace tessera {

/// An array's metadata and attributes in another dialect.
struct Conversion {
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    /// Sentences about differences in the metadata ("the codec zstd:3 becomes blosc:zstd:3:shuffle, because …").
    /// Elements never change.
    std::vector<std::string> changes;
};

/// Keeps dtype, shape, fill, attributes and dimension names (an attribute `_ARRAY_DIMENSIONS` outside v3, which is
/// xarray's convention), or throws unsupported, naming the feature that `to` cannot express. Codecs that `to` cannot
/// express are replaced by the nearest ones. So are codecs that the original program of `to` cannot read (zstd, for
/// zarr-python 0.4 and 1), unless `codecs_chosen` says that a person chose them. If `to` has no null fill, null becomes
/// zeros, and null_fill_attribute records it for the way back. For v3, the fields of structures become little-endian.
/// `attributes` as Dialect::load_attributes gives them. `fill_marks`: the fill marks missing elements where that of
/// `from` does; not in array files, which have attributes for that.
[[nodiscard]] Conversion convert_metadata(const ArrayMetadata& metadata, const std::optional<Value>& attributes,
                                          const Dialect& from, const Dialect& to, bool codecs_chosen = false,
                                          bool fill_marks = true);

/// Why the chunks of an array with metadata `from` must be re-encoded for one with metadata `to`. nullopt if their
/// bytes stay valid, so that chunk files can be copied or linked.
[[nodiscard]] std::optional<std::string> why_recode(const ArrayMetadata& from, const ArrayMetadata& to);

/// The result of copy_chunks().
struct CopiedChunks {
    std::int64_t chunks = 0;
    std::int64_t linked = 0;  ///< of these, those that are hard links
};
struct ChunkCopyOptions {
    /// Hard links in place of copies, if both lie on one file system. Tessera never writes into a chunk file; a program
    /// that does changes both arrays.
    bool link = false;
    /// Decode each chunk first, so that damage is an error and not copied.
    bool verify = false;
    /// Nothing was copied to it before: no chunk is looked for there.
    bool fresh = false;
    IoOptions io = {};
};
/// Copies every stored chunk of `from` unchanged to an array for which why_recode() is nullopt. Chunks that `to`
/// already has, in the same size, are kept. While nobody can open `to` (it is not published), files are copied by the
/// file system where it can: their bytes do not pass through memory.
CopiedChunks copy_chunks(const Array& from, Array& to, const ChunkCopyOptions& options = {});

}  // namespace tessera
