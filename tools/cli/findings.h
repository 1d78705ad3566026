// Printing the findings of verify, repair and seal.
#pragma once

#include <string>
#include <vector>

#include <tessera/verify.h>

namespace tessera::cli {

/// Prints one line for each. Unless `all`, many of one kind that differ only in names and numbers are one line.
void print_findings(const std::vector<Finding>& findings, bool all);
/// The same, and a summary line.
void print_report(const std::string& path, const VerifyReport& report, bool all = false, bool complete = false);
/// The subject of a finding: "__zdata__/0.3.blosc: chunk (0, 3)".
[[nodiscard]] std::string subject(const Finding& finding);

}  // namespace tessera::cli
