// What is verified before a seal, which would vouch for damage.
#pragma once

#include <string>

#include <tessera/parallel.h>
#include <tessera/place.h>
#include <tessera/verify.h>

namespace tessera {

/// Verifies what is to be sealed at `place`. `copies`: what is written elsewhere has a seal of its own, and would vouch
/// for what the one here shows to be changed, so that seals are compared. Else they are not, and unless `check`, files
/// that parity covers count as sound if they have the size and time of their seal. Throws as verify().
[[nodiscard]] VerifyReport verify_to_seal(const Place& place, bool check, bool copies, const IoOptions& io);

/// As the error that such a report becomes where it is not shown; nothing if it is sound. Throws corrupt.
void require_sound(const VerifyReport& report, const std::string& path);

}  // namespace tessera
