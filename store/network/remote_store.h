// RemoteStore: a KeyValueStore over HTTP, whatever the service; what differs between services is a RemoteService.
// Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/remote_options.h>

#include <memory>
#include <string>

#include "remote_service.h"

namespace tessera {

/// Of the store, or else of the process.
[[nodiscard]] std::shared_ptr<const RemoteOptions> remote_options_of(const StoreOptions& options);

/// `name` is what a person typed, without secrets.
[[nodiscard]] std::shared_ptr<KeyValueStore> remote_store(std::string name, std::unique_ptr<RemoteService> service,
                                                          const StoreOptions& options);

}  // namespace tessera
