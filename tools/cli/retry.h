// What another run is replacing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/error.h>

namespace tessera::cli {

/// Which files or directories some paths lead to: device and number of each; nothing where there is none.
using Identities = std::vector<std::optional<std::pair<std::uint64_t, std::uint64_t>>>;
[[nodiscard]] Identities identities_of(const std::vector<std::string>& paths);

/// Calls body(), which works on what lies at these paths and prints nothing before it is done. It is called again where
/// it ended with not_found because `copy --overwrite` or `snapshot restore` put another directory in the place of one.
template <class Body>
auto retry_when_replaced(const std::vector<std::string>& paths, const Body& body) {
    constexpr int most = 100;
    for (int tries = 1;; ++tries) {
        const Identities before = identities_of(paths);
        try {
            return body();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::not_found || tries == most || identities_of(paths) == before) throw;
        }
    }
}

}  // namespace tessera::cli
