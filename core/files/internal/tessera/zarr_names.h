// The names of the documents in which Zarr's formats keep the metadata of arrays and groups. They stand here, below the
// dialects (store/format/dialects), which say what is in them, because archives of arrays are told from other zips by
// them.
#pragma once

#include <array>
#include <string_view>

namespace tessera {

inline constexpr std::string_view v3_document_name = "zarr.json";  ///< of arrays and groups, with their attributes
inline constexpr std::string_view v2_array_name = ".zarray";
inline constexpr std::string_view v2_group_name = ".zgroup";
inline constexpr std::string_view v2_attributes_name = ".zattrs";
inline constexpr std::string_view v2_consolidated_name = ".zmetadata";
inline constexpr std::string_view v1_metadata_name = "meta";  ///< files of this name need not be of an array
inline constexpr std::string_view v1_attributes_name = "attrs";
inline constexpr std::string_view zmeta_metadata_name = "__zmeta__";
inline constexpr std::string_view zmeta_attributes_name = "__zattr__";

/// The metadata of arrays and groups in all formats: one of these is in the folder of each node that is more than a
/// plain folder.
inline constexpr std::array<std::string_view, 5> metadata_names{v3_document_name, v2_array_name, zmeta_metadata_name,
                                                                v2_group_name, v1_metadata_name};

}  // namespace tessera
