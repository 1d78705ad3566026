// Who knows what is asked over the network. Private to the store module.
#pragma once

#include <tessera/remote_options.h>

namespace tessera {

/// The client of HTTP, once there is one.
void set_activity_source(RemoteActivity (*source)());

}  // namespace tessera
