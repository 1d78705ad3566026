// Sealed folders, as seen by whoever is about to change something in them. Private to the store module.
//
// What a seal is, store/tasks/checks knows. A writer only has to know that there is one.
#pragma once

#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// The manifest of a seal, below the sealed folder; public as seal_key (tessera/seal.h).
inline constexpr std::string_view seal_sums_key = ".tessera/sha256sums.txt";
/// Where the parity of a seal lies, if it has any, below the sealed folder.
inline constexpr std::string_view parity_folder = ".tessera/parity";
/// Below the sealed folder: whoever made this file was allowed to change what is sealed. Sealing anew removes it.
inline constexpr std::string_view seal_mark_key = ".tessera/seal-broken";

/// The seal of a zip or an array file lies in a folder beside it, with the file's name and this.
inline constexpr std::string_view seal_file_suffix = ".tessera-seal";

/// Checks before a change of what lies at `prefix` below an open directory. If that folder or one above it, up to the
/// root of the file system, is sealed, throws Error(sealed), which names it; with options.break_seal it marks the seal
/// as broken, durably, and returns. The same for a single file of which a seal lies beside it; and, whatever the
/// options, for the content of a package (package_holding()). `directory` may be opened with O_PATH. Folders that
/// cannot be looked into count as not sealed.
void require_unsealed(int directory, std::string_view prefix, const StoreOptions& options);

/// The bag or the OCFL object of this machine in whose content an absolute path lies: below `data` of the one, below a
/// version of the other. Their lists name each file, and so nothing may be changed or added there. Empty for none.
[[nodiscard]] std::string package_holding(std::string_view path);

/// Throws Error(sealed) for such a path, below an open directory, before anything is made there.
void require_no_package(int directory, std::string_view prefix);

/// As require_unsealed() for what lies at `place` in a store without folders of this machine: looks no further up than
/// its root.
void require_unsealed(const PlaceRef& place, bool break_seal);

}  // namespace tessera
