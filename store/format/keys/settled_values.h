// When the stamp of a value tells every change, for caches of what values amount to. Private to the store module.
//
// A clock has a grain: of two changes within one tick the second does not show. So nothing is kept of a value that
// changed less than a while before the run began.
#pragma once

#include <tessera/key_value_store.h>

#include <cstdint>
#include <string>

namespace tessera {

/// All of it, also the time of change, which operator== leaves out.
[[nodiscard]] inline bool is_same_value(const ValueStamp& a, const ValueStamp& b) {
    return a == b && !a.by_content && a.changed == b.changed;
}

/// Whether times of the file system that holds a folder tell every change, at once.
[[nodiscard]] bool has_good_times(const std::string& folder);

/// Values that changed before this moment of the file system's own clock are settled. The clock is asked by a value of
/// the given key, which is made and removed in `own`, a directory_store(). Throws what writing throws.
[[nodiscard]] std::int64_t settled_before(KeyValueStore& own, const std::string& key);

}  // namespace tessera
