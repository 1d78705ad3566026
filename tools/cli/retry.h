// Retrying when another run replaces a source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/error.h>

namespace tessera::cli {

/// The identities of the files or directories at some paths: device and inode; nullopt if there is none.
using Identities = std::vector<std::optional<std::pair<std::uint64_t, std::uint64_t>>>;
[[nodiscard]] Identities identities_of(const std::vector<std::string>& paths);

/// Calls body(), which reads from these paths and prints nothing before it succeeds. If it throws not_found because
/// `copy --overwrite` or `snapshot restore` replaced one of the directories, calls it again.
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
