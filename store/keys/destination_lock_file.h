// What lies beside a destination while it is made: its lock file. Private to the store module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/destination_lock.h>

namespace tessera {

/// Whether a name is one of a DestinationLock's file.
[[nodiscard]] bool is_destination_lock(std::string_view name);

/// Who holds the lock of that name in the folder that is open as `folder`: "process 1234"; nothing when nobody does, or
/// there is none.
[[nodiscard]] std::optional<std::string> destination_builder(int folder, const std::string& lock_name);

/// Removes a lock file that a killed process left; false when somebody holds it, or there is none.
bool remove_destination_lock(int folder, const std::string& lock_name);

}  // namespace tessera
