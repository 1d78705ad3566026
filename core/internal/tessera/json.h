// JSON that every standard parser reads (RFC 8259), for output; metadata keep Python's spelling (value.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dtype.h>
#include <tessera/value.h>

namespace tessera {

/// Whether a text is UTF-8, as a JSON document has to be.
[[nodiscard]] bool is_utf8(std::string_view text);

/// The value with NaN and the infinities as the strings "NaN", "Infinity" and "-Infinity", at every depth.
[[nodiscard]] Value standard_json(Value value);

/// The element at `p` as element_to_value gives it, but in standard JSON, dates as ISO 8601 text, and "NaT". Durations
/// stay integer counts of their unit, and so do dates without a unit.
[[nodiscard]] Value element_to_json(const DType& dtype, const std::byte* p);

/// A mean of dates, counted in the dtype's unit since 1970, as ISO 8601 text. It is precise to the second, or for units
/// below the second to the next smaller unit, as far as a double can distinguish such times. Dates outside the calendar
/// are rounded to their unit. nullopt for dates without a unit.
[[nodiscard]] std::optional<std::string> mean_date_text(const DType& dtype, double mean);

}  // namespace tessera
