// What repair has set aside: it lies in `.tessera/damaged` of each array and group, and goes only when somebody says
// so.
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
/// In one array or group, without those below.
[[nodiscard]] SetAside set_aside_in(const KeyValueStore& store, std::string_view prefix);
/// Deletes them, and returns what they were.
SetAside drop_set_aside(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
