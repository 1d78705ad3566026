// What repair does about files that a seal with parity covers. Private to the store module.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/verify.h>

namespace tessera {

/// Restores what parity gives of what was found, and returns what is found then, or would be. What became of it goes
/// into `report`, nodes in which something may have been set aside into `nodes`.
[[nodiscard]] std::vector<Finding> findings_after_parity(const Place& place, const RepairOptions& options,
                                                         std::vector<Finding> findings, std::set<std::string>& nodes,
                                                         RepairReport& report);

}  // namespace tessera
