// Checks of keys and prefixes, which every store makes before it looks at them.
#pragma once

#include <string_view>

namespace tessera {

/// Throws invalid_argument unless `key` is made of parts joined by '/', none of them empty, "." or "..", without NUL.
void require_key(std::string_view key);
/// The same for a prefix, which may also be empty.
void require_prefix(std::string_view prefix);

}  // namespace tessera
