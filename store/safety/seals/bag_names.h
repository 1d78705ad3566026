// Names of files in BagIt bags. Private to the store module.
#pragma once

#include <string_view>

namespace tessera {

inline constexpr std::string_view bag_declaration = "bagit.txt";
inline constexpr std::string_view bag_info_name = "bag-info.txt";
inline constexpr std::string_view bag_manifest = "manifest-sha256.txt";

/// Whether a name is that of a manifest of tag files, of whatever sums.
[[nodiscard]] inline bool is_bag_tag_manifest(std::string_view name) {
    return name.starts_with("tagmanifest-") && name.ends_with(".txt");
}

}  // namespace tessera
