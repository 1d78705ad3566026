// group, mv, rm, consolidate, and what other commands say about consolidated metadata.
#pragma once

#include <string>
#include <vector>

#include <tessera/value.h>

#include "command.h"

namespace tessera::cli {

/// After changes of the metadata at some paths: says which groups there and above have consolidated metadata that are
/// stale now.
void note_stale(Session& session, const std::vector<std::string>& paths);

/// What a command did: as JSON with --json, else in one line; nothing when --quiet.
void report(Session& session, const Value& value, const std::string& line);

}  // namespace tessera::cli
