// A lease: an object in a remote store by which runs that make, grow or remove the same array wait for each other.
// Private to the store module.
//
// It mostly saves work: whoever holds it may be slow, and lose it without knowing. So each write states on what it
// depends, and what it depends on is read before it is made sure that the lease was still held.
#pragma once

#include <tessera/key_value_store.h>

#include <memory>
#include <string>
#include <string_view>

#include "remote_service.h"

namespace tessera {

/// Waits until nobody holds the lease, or until it was not renewed for a minute by the server's clock. Released by the
/// result. `place` is for the waiter, which may be null.
[[nodiscard]] StoreLock take_lease(std::shared_ptr<const RemoteService> service, std::string key,
                                   const std::string& place, Waiter* waiter);
/// Whether this process holds one, by the name of its value.
[[nodiscard]] bool holds_lease(std::string_view name);
/// Before a value is set, by its name, and after it was read on what that depends: renews the lease of the folders
/// around it that this process holds, if it is time. Throws io if another program has taken it over. Cheap otherwise.
void renew_lease_of(std::string_view name);

}  // namespace tessera
