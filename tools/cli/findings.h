// Printing the findings of verify, repair and seal.
#pragma once

#include <string>
#include <vector>

#include <tessera/value.h>
#include <tessera/verify.h>

namespace tessera::cli {

[[nodiscard]] Value finding_value(const Finding& finding);
[[nodiscard]] Value report_value(const std::string& path, const VerifyReport& report);
/// Prints one line for each.
void print_findings(const std::vector<Finding>& findings);
/// The same, and a summary line.
void print_report(const std::string& path, const VerifyReport& report);
/// The subject of a finding: "__zdata__/0.3.blosc: chunk (0, 3)".
[[nodiscard]] std::string subject(const Finding& finding);

}  // namespace tessera::cli
