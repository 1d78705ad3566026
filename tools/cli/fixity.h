// The fixity log, as commands write and show it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/value.h>

#include "command.h"

namespace tessera::cli {

/// Appends a line to the log of a path, and returns its hash. Throws unsupported for what has no log.
std::string record_fixity(const std::string& path, std::string_view what, const Value& found);
/// The same for a command that has done its work: what cannot be written is only noted, and what has no log has none.
void note_fixity(Session& session, const std::string& path, std::string_view what, const Value& found);

/// Throws unsupported for what has no log.
void require_fixity_log(const std::string& path);

/// "2026-11-29T10:00:00Z" if the last check of everything recorded there was sound and is younger than `age` ("90d").
/// `complete`: only one counts that asked for every chunk.
[[nodiscard]] std::optional<std::string> checked_within(const std::string& path, std::string_view age, bool complete);
/// How many checks of such a share ("5%") are recorded there.
[[nodiscard]] std::int64_t samples_recorded(const std::string& path, std::string_view share);

struct FixityCall {
    std::string path;
    std::string expect;  ///< the hash of a line that has to be there
    bool premis = false;
};
int show_fixity(Session& session, const FixityCall& o);

}  // namespace tessera::cli
