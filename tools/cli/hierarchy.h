// group, mv, rm, consolidate, and the notes of other commands about consolidated metadata.
#pragma once

#include <string>
#include <vector>

#include <tessera/value.h>

#include "command.h"

namespace tessera::cli {

/// Call after changing the metadata at some paths: notes which groups at and above them now have stale consolidated
/// metadata.
void note_stale(Session& session, const std::vector<std::string>& paths);

/// Reports the result of a command: as JSON with --json, else in one line, unless --quiet.
void report(Session& session, const Value& value, const std::string& line);

}  // namespace tessera::cli
