// The actions of `set` and `append`, also used by scripts, and what commands keep for `undo`.
#pragma once

#include <optional>
#include <string>

#include <tessera/array.h>
#include <tessera/derived_source.h>
#include <tessera/edit.h>
#include <tessera/selection.h>

#include "command.h"

namespace tessera::cli {

/// Opens an array for changes, and notes which program will not be able to read them.
[[nodiscard]] Array open_to_edit(Session& session, const std::string& path);

/// The help text of --no-undo.
inline constexpr const char* no_undo_text = "keep nothing of what is replaced: `tessera undo` cannot take it back";
/// Keeps what the command changes through `array`, unless --no-undo.
[[nodiscard]] Undoable keep_for_undo(const Session& session, const Array& array, bool no_undo);
[[nodiscard]] Undoable keep_for_undo(const Session& session, const Group& group, bool no_undo);

/// Writes `value` (one value as text, or the name of an array file) to all selected elements; `raw`: codes.
void set_elements(Session& session, Array& array, const Selection& selection, const std::string& value, bool raw);
/// The action of `append`: writes an array file after the end of an axis. Elements of another dtype are converted by
/// the rule `cast`; without one they are refused.
void append_file(Session& session, Array& array, const std::string& file, int axis,
                 const std::optional<Cast>& cast = std::nullopt);

}  // namespace tessera::cli
