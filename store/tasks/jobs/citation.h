// CITATION.cff (Citation File Format 1.2), as far as a description of data takes it. Private to store/tasks/jobs.
#pragma once

#include <string_view>

#include <tessera/value.h>

namespace tessera {

/// The members of the file: texts; lists of texts or of objects of texts, such as `authors`. Reads the part of YAML
/// that such files are written in: plain, quoted and block texts, lists of these and of mappings; deeper levels are
/// left out. Throws invalid_argument, naming the line, for a line that is neither.
[[nodiscard]] Value parse_citation(std::string_view text);

}  // namespace tessera
