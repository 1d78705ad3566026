// A part of an array as a source of its own.
#pragma once

#include <memory>

#include <tessera/array_io.h>
#include <tessera/selection.h>

namespace tessera::cli {

/// What a selection picks from a source, without the dimensions that it drops.
[[nodiscard]] std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection);

}  // namespace tessera::cli
