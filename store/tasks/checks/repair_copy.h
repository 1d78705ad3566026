// What repair takes from another copy of what is sealed. Private to store/tasks/checks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <tessera/verify.h>

namespace tessera {

/// Puts files in place that are damaged or missing here and in RepairOptions::from as they were sealed; returns what is
/// found then, or would be. What became of each goes into `report`, nodes in which something was set aside into
/// `nodes`. Does nothing without `from`. Throws unsupported for a seal that lies beside a file.
[[nodiscard]] std::vector<Finding> findings_after_copy(const Place& place, const RepairOptions& options,
                                                       std::vector<Finding> findings, std::set<std::string>& nodes,
                                                       RepairReport& report);

}  // namespace tessera
