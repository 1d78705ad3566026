// What is known of an array or a group, and its one form in JSON: of `tessera info --json`, of Array.info and
// Group.info in Python, and of the server's api/info.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/convert.h>
#include <tessera/dimensions.h>
#include <tessera/edit.h>
#include <tessera/group.h>
#include <tessera/measure.h>
#include <tessera/verify.h>

namespace tessera {

struct FactsOptions {
    /// The most chunks of which each size is queried; with more, only a sample is. nullopt: nothing that is stored is
    /// counted or looked for.
    std::optional<std::int64_t> most_sizes = 50'000;
    /// Where the array lies, for remarks on the file system; empty: none.
    std::filesystem::path path = {};
};

struct ArrayFacts {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    ChunkLayout layout;
    Value attributes;
    std::uint64_t logical = 0;                        ///< bytes of all elements
    std::optional<StoredSize> stored = std::nullopt;  ///< nullopt: not asked for
    SetAside set_aside = {};                          ///< by repair
    KeptForUndo kept = {};
    std::vector<std::string> remarks = {};  ///< limits of the format and the file system; elements without a value
    /// What the index of chunks says of all elements, where it is there and up to date.
    std::optional<Statistics> known = std::nullopt;

    /// Whether the size of every stored chunk was queried.
    /// With shards: how many inner chunks are stored, where that is known, and how many there may be.
    std::optional<std::int64_t> inner_stored = std::nullopt;
    std::int64_t inner_possible = 0;
    [[nodiscard]] bool is_exact() const { return stored && stored->known && stored->sized == stored->chunks; }
};

/// Throws what Array::attributes and Array::stored_size throw.
[[nodiscard]] ArrayFacts array_facts(const Array& array, const FactsOptions& options = {});

/// Of a group, or of a plain folder that holds arrays.
struct GroupFacts {
    const Dialect* dialect = nullptr;  ///< nullptr for a plain folder
    Value attributes;
    std::int64_t children = 0;
    std::int64_t arrays = 0;    ///< at any depth
    std::int64_t links = 0;     ///< not entered
    std::int64_t too_deep = 0;  ///< folders, not entered
    ConsolidatedState consolidated;
    SetAside set_aside = {};  ///< here and in all nodes below, as is `kept`
    KeptForUndo kept = {};
};

/// Throws not_found if the group's directory is replaced meanwhile.
[[nodiscard]] GroupFacts group_facts(const Group& group);

/// The facts as members of an object, which keeps the members that it has.
void add_facts(Value& report, const ArrayFacts& facts);
void add_facts(Value& report, const GroupFacts& facts);
/// The members that an array file has, too: "dtype", "fields" (NumPy's descr of a structure, else empty) and "shape".
void add_elements(Value& report, const DType& dtype, const Shape& shape);

/// A list of numbers.
[[nodiscard]] Value shape_value(const Shape& shape);
/// The compressor and filters: "blosc:lz4:5:shuffle"; "none" without any.
[[nodiscard]] std::string codecs_text(const std::vector<CodecConfig>& codecs);
/// The order of the elements in a chunk: "C", "F", or "transposed [1, 2, 0]".
[[nodiscard]] std::string order_text(const std::vector<CodecConfig>& codecs);
/// "none", "fresh" or "stale"
[[nodiscard]] std::string_view state_name(const ConsolidatedState& state);
/// Logical over stored bytes; 0 if nothing is stored.
[[nodiscard]] double ratio(std::uint64_t logical, std::uint64_t stored);

}  // namespace tessera
