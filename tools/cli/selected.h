// A part of an array as a source.
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

/// The selected part of a source, without dropped dimensions.
[[nodiscard]] std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection);

}  // namespace tessera::cli
