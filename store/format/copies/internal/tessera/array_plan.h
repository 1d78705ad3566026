// Plans the metadata of a copied array: its source's metadata with some members changed, in any format. Writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>
#include <tessera/selection.h>

namespace tessera {

/// The source's metadata with `wishes` applied. Throws invalid_argument and unsupported, naming the option or member,
/// but neither the source nor the array to be made: the caller knows where that will be.
[[nodiscard]] PlannedArray plan_array(const ArraySource& source, const ArrayWishes& wishes = {},
                                      const std::optional<Selection>& selection = std::nullopt);

/// `usual` lengths of chunks with those of `named` dimensions in their places. With `all`, throws invalid_argument for
/// a name that is none of these.
[[nodiscard]] Shape chunks_by_names(const std::vector<std::pair<std::string, std::int64_t>>& named,
                                    const DimensionNames& names, const Shape& shape, Shape usual, bool all);

/// make_metadata(). If the format was not chosen and cannot express the options, the error names one that can.
[[nodiscard]] ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen);

/// A warning if xarray would show elements as missing because they equal a default fill. Given only for arrays with
/// dimension names, because xarray opens no others.
[[nodiscard]] std::optional<Note> masking_note(const Dialect& dialect, const ArrayMetadata& metadata);

/// The same for an array of which `missing` chunks are not stored; nullopt if there are none.
[[nodiscard]] std::optional<std::string> undefined_chunks_note(const ArrayMetadata& metadata, std::int64_t missing);
/// The same for the elements that an array got when its shape changed from `before` to that of the metadata.
[[nodiscard]] std::optional<std::string> undefined_growth_note(const ArrayMetadata& metadata, const Shape& before);
/// Whether the wishes are such that a format may not be able to express them: codecs, shards, names of dimensions.
[[nodiscard]] bool asks_for_a_format(const ArrayWishes& wishes);

/// A warning if a chunk (of a shard: an inner one) is too large to be written within `max_memory` bytes: decoded and
/// encoded, it takes twice its size. 0: no limit is known, and there is no warning.
[[nodiscard]] std::optional<Note> large_chunk_note(const ArrayMetadata& metadata, std::uint64_t max_memory);

/// Whether chunks are compressed with a zstd that the dialect's original program cannot read.
[[nodiscard]] bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& metadata);

}  // namespace tessera
