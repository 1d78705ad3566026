// Files that repair has set aside, in `.tessera/damaged` of each array and group. They are deleted only on request.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Files that repair has set aside.
struct SetAside {
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    SetAside& operator+=(const SetAside& more) {
        files += more.files;
        bytes += more.bytes;
        return *this;
    }
};
/// In one array or group, excluding the nodes below.
[[nodiscard]] SetAside set_aside_in(const KeyValueStore& store, std::string_view prefix);
/// Deletes them, and returns their number and size.
SetAside drop_set_aside(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
