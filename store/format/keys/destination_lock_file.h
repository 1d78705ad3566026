// The lock file beside a destination while it is being made. Private to the store module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Whether a name is that of a DestinationLock's file.
[[nodiscard]] bool is_destination_lock(std::string_view name);

/// The holder of the lock of that name in the open folder `folder`: "process 1234"; nullopt if it is not held or does
/// not exist.
[[nodiscard]] std::optional<std::string> destination_builder(int folder, const std::string& lock_name);

/// Removes a lock file that a killed process left; false if the lock is held or does not exist.
bool remove_destination_lock(int folder, const std::string& lock_name);

}  // namespace tessera
