// Which format a new array gets if nobody chose one. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include <tessera/array.h>

namespace tessera {

/// Whether arrays of this dialect have names of dimensions that other programs read: xarray reads no older formats.
[[nodiscard]] bool names_are_read(const Dialect& dialect);
[[nodiscard]] Note v3_note(std::string_view why);
[[nodiscard]] std::string no_names_text(const Dialect& dialect);
/// Throws as make_metadata() does, and what the dialect cannot express.
[[nodiscard]] ArrayMetadata expressed(const ArrayOptions& options, const Dialect& dialect);
/// `own`, or v3 if that cannot express the options; `names`: whether names of dimensions are asked for.
[[nodiscard]] FormatChoice chosen(const ArrayOptions& options, bool names, const Dialect& own);

}  // namespace tessera
