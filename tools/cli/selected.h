// A part of an array as a source.
#pragma once

#include <memory>

#include <tessera/array_io.h>
#include <tessera/selection.h>

namespace tessera::cli {

/// The selected part of a source, without dropped dimensions.
[[nodiscard]] std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection);

}  // namespace tessera::cli
