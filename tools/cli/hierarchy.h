// group, mv, rm, consolidate, and what other commands say about consolidated metadata.
#pragma once

#include <string>

#include "command.h"

namespace tessera::cli {

/// After a change of the metadata at a path: says which groups above have consolidated metadata that are stale now.
void note_stale(Session& session, const std::string& path);

}  // namespace tessera::cli
