// The part of an array that a person selects.
#pragma once

#include <memory>
#include <string>

#include <tessera/array_io.h>
#include <tessera/selection.h>

#include "command.h"

namespace tessera::cli {

/// What a person selects of the array at `path`. A note says what names and values were taken for.
[[nodiscard]] Selection chosen_part(Session& session, const std::string& path, const std::string& text,
                                    const ArraySource& source);

/// The same of an array that is read, and is turned for longitudes beyond its ends.
[[nodiscard]] Selection chosen_part(Session& session, const std::string& path, const std::string& text,
                                    std::unique_ptr<ArraySource>& source);

}  // namespace tessera::cli
