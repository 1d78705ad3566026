// Data types and fill values in the spelling of Zarr v3. Private to the store module.
#pragma once

#include <tessera/small_type.h>

#include "metadata_json.h"

namespace tessera {

/// {"name": …, "configuration": {member: v}}, as v3 spells whatever can be extended.
[[nodiscard]] Value named_json(std::string_view name, std::string_view member_name, Value v);

/// Whether a name is that of zarrs' data type whose elements may be missing, and of its codec.
[[nodiscard]] bool is_optional_name(std::string_view name);
/// Whether a data_type is that one.
[[nodiscard]] bool is_optional_type(const Value& v);
/// The dtype of a data_type, of an optional one that of its elements; multi-byte parts are little-endian. Throws
/// unsupported for an unknown name.
[[nodiscard]] DType read_data_type(const Value& v);
/// zarr-python 3.3's name for structures, and 3.1's, of which the fields are pairs.
inline constexpr std::string_view structure_name = "struct";
inline constexpr std::string_view older_structure_name = "structured";
/// zarr-python's spelling of a dtype, whatever its byte order; throws unsupported if v3 has no such data type.
[[nodiscard]] Value data_type_json(const DType& dtype, std::string_view structures = structure_name);

/// The fill of elements of a small type, as its bytes in memory in the order of `dtype`; rounded as elements are.
[[nodiscard]] ElementBytes read_small_fill(const SmallType& type, const DType& dtype, const Value& v);
/// The spelling of the fill if it still has this value, else one that reads back.
[[nodiscard]] Value small_fill_json(const SmallType& type, const DType& dtype, const FillValue& fill);

extern const FillRules v3_fill_rules;
/// The same, but a structure is written as the base64 of its bytes, as zarr-python 3.1 did.
extern const FillRules v3_structured_fill_rules;

}  // namespace tessera
