// What verify, repair and seal say of what they found.
#pragma once

#include <string>
#include <vector>

#include <tessera/value.h>
#include <tessera/verify.h>

namespace tessera::cli {

[[nodiscard]] Value finding_value(const Finding& finding);
[[nodiscard]] Value report_value(const std::string& path, const VerifyReport& report);
/// One line for each.
void print_findings(const std::vector<Finding>& findings);
/// The same, and a last line for all.
void print_report(const std::string& path, const VerifyReport& report);
/// "__zdata__/0.3.blosc: chunk (0, 3)": what a finding is about.
[[nodiscard]] std::string subject(const Finding& finding);

}  // namespace tessera::cli
