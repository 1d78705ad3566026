// What the text of a selection is made of: Selection::parse and parse_selection() read it alike.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/selection.h>

namespace tessera {

/// The text without blanks at its ends.
[[nodiscard]] std::string_view without_blanks(std::string_view text);
/// The parts between separators that do not stand in quotes (' or "). Throws invalid_argument for an open quote.
[[nodiscard]] std::vector<std::string_view> unquoted_parts(std::string_view text, char separator);
/// The items between the commas of a selection, which may have brackets around it. Throws invalid_argument.
[[nodiscard]] std::vector<std::string_view> selection_items(std::string_view text);
/// What an index or a slice picks of dimension `d`. Throws as Selection::parse, of which `text` is the whole.
[[nodiscard]] Selection::Axis index_axis(std::string_view item, std::string_view text, int d, std::int64_t length);
/// The indices [first, first + count) that are `step` apart.
[[nodiscard]] Selection::Axis stepped_axis(std::int64_t first, std::int64_t count, std::string_view step,
                                           std::string_view text);

}  // namespace tessera
