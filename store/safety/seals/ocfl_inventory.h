// The inventory of an OCFL object (Oxford Common File Layout 1.0 and 1.1). Private to the store module.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>
#include <tessera/byte_io.h>
#include <tessera/memory_account.h>
#include <tessera/value.h>

#include "package_state.h"

namespace tessera {

inline constexpr std::string_view ocfl_inventory_name = "inventory.json";
inline constexpr std::string_view ocfl_object_mark = "0=ocfl_object_";

/// Whether a folder with a file of this name is an OCFL object, even if its declaration is lost.
[[nodiscard]] inline bool is_of_ocfl_object(std::string_view name) {
    return name.starts_with(ocfl_object_mark) || name.starts_with("inventory.json.sha");
}

struct OcflVersion {
    std::string created;  ///< RFC 3339
    std::string message;
    std::string user;                          ///< empty: not given
    std::string address;                       ///< of the user: a URI
    std::map<std::string, std::string> state;  ///< digest by logical path
};

struct OcflInventory {
    std::string id;
    std::string spec = "1.1";
    std::string algorithm = "sha512";
    std::string head;
    std::string content = "content";
    bool names_content = false;                ///< it says what the content directory is
    std::map<std::string, std::string> files;  ///< digest by content path
    std::map<std::string, OcflVersion> versions;
    Value fixity = Value::object();  ///< as it is: digests of other algorithms
    MemoryHold memory;

    /// A content path for each digest.
    [[nodiscard]] std::map<std::string, std::string> path_of_digest() const;
    [[nodiscard]] const EVP_MD* hash() const;
};

/// The number of "v3" or "v0003"; 0 if it is none.
[[nodiscard]] int ocfl_version_number(std::string_view name);
/// The version after that one, as its object names versions; "v1" after none. Throws unsupported if zeros before the
/// number leave no room.
[[nodiscard]] std::string next_ocfl_version(const std::string& head);

/// Checks everything that an inventory alone can tell. Digests become lower case. Adds what it should have to `notes`,
/// with `key`. Throws corrupt for what it must, naming it, and budget.
[[nodiscard]] OcflInventory parse_ocfl_inventory(const ByteSource& text, const std::string& key,
                                                 std::vector<PackageRemark>& notes);
[[nodiscard]] std::string ocfl_inventory_text(const OcflInventory& inventory);

/// The digest of some bytes in hexadecimal digits.
[[nodiscard]] std::string digest_text(const ByteSource& bytes, const EVP_MD* hash);
[[nodiscard]] std::string digest_text(std::string_view bytes, const EVP_MD* hash);

}  // namespace tessera
