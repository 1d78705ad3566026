// Signatures of seals, made and checked by OpenSSH's ssh-keygen or by minisign. Nothing of cryptography is done here.
//
// What is signed is the list of sums, `.tessera/sha256sums.txt`. The signature lies beside it with the ending that the
// program gives it: `.sig` of ssh-keygen, in its namespace `tessera-seal`, and `.minisig` of minisign. Sealing anew
// removes both.
#pragma once

#include <filesystem>
#include <string>

#include <tessera/place.h>

namespace tessera {

/// The namespace of ssh-keygen's signatures.
inline constexpr const char* signature_namespace = "tessera-seal";

/// Signs the seal at `place` with a key: a private key of OpenSSH, or a public one whose private key an agent holds; or
/// a secret key of minisign. Which program signs is told by the key's file. It asks for a passphrase at the terminal.
/// Returns the key of the signature. Throws not_found without a seal or a key, unsupported if the program is not
/// installed, and io with the program's own words if it does not sign.
std::string sign_seal(const PlaceRef& place, const std::filesystem::path& key);

struct SignatureCheck {
    bool good = false;
    std::string text;  ///< the program's words
};
/// Whether the seal at `place` has a valid signature by one of `signers`: a file of allowed signers of OpenSSH ("NAME
/// KEYTYPE KEY" in each line, ssh-keygen(1)), or a public key of minisign. A damaged list that parity restores is taken
/// as it was. Throws not_found without `signers`, and unsupported if the program is not installed.
[[nodiscard]] SignatureCheck check_signature(const PlaceView& place, const std::filesystem::path& signers);

/// Throws not_found as sign_seal() does, before anything is sealed.
void require_signing_key(const std::filesystem::path& key);

/// Removes the signatures of a seal that is no more. Returns whether there was one.
bool drop_signatures(const PlaceRef& place);

}  // namespace tessera
