// What a copied array is to become: its source's metadata with some members chosen, in any format. Nothing is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/convert.h>
#include <tessera/selection.h>

namespace tessera {

/// What a copy has otherwise than its source. What is not given comes from the source, or from the defaults of
/// ArrayOptions if the source is no array in a store.
struct ArrayWishes {
    std::optional<Shape> chunks = std::nullopt;
    std::optional<Shape> shards = std::nullopt;       ///< an empty one takes shards apart
    std::optional<std::string> codec = std::nullopt;  ///< "delta,zstd:3"
    std::optional<Value> fill = std::nullopt;
    std::optional<std::string> format = std::nullopt;  ///< "v3"
    std::optional<std::string> separator = std::nullopt;
    std::optional<Order> order = std::nullopt;  ///< of the elements in a chunk
    std::optional<std::vector<std::optional<std::string>>> dimension_names = std::nullopt;
    /// What messages write before the name of an option: the program has "--".
    std::string option_prefix = {};
};

/// An array that is to be made, in all its metadata.
struct PlannedArray {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    std::vector<std::string> changes;  ///< sentences about what differs from the source
    /// Why chunks are encoded anew; nullopt if those of the source are copied as they are.
    std::optional<std::string> recode;
};

/// The source's metadata with the changes that are wished for. Throws invalid_argument and unsupported, naming the
/// option or member.
[[nodiscard]] PlannedArray plan_array(const ArraySource& source, const ArrayWishes& wishes = {},
                                      const std::optional<Selection>& selection = std::nullopt);

/// make_metadata(). If nobody has chosen the format and it cannot express this, the error names one that can.
[[nodiscard]] ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen,
                                            std::string_view option_prefix = "");

/// A warning if xarray, which reads arrays with names of dimensions, would show elements as missing because they equal
/// a fill that nobody chose.
[[nodiscard]] std::optional<std::string> masking_note(const Dialect& dialect, const ArrayMetadata& metadata,
                                                      std::string_view option_prefix = "");

/// Whether chunks are compressed with zstd where the dialect's own program cannot read that.
[[nodiscard]] bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& metadata);

}  // namespace tessera
