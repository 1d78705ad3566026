// The signature of a seal, as a finding of verify.
#pragma once

#include <string>

#include <tessera/verify.h>

namespace tessera {

/// Checks that the seal of the node or file at `path` is signed by one of `signers` (check_signature()), and adds what
/// was found to the report: a note, or damage. Throws not_found without `signers`, and unsupported if the program that
/// checks is not installed.
void add_signature(VerifyReport& report, const std::string& path, const std::string& signers);

}  // namespace tessera
