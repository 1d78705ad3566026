// What a command reads while it writes: a source that its own destination changes is refused, or read before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/copy_array.h>

namespace tessera {

/// Throws invalid_argument if a source lies in the place that is written, around it, or is the same file, through links
/// and hard links too. A file of references also counts as the files that it leads to. Other sources are paths, with
/// "::MEMBER" or without.
void require_apart(const std::vector<std::string>& sources, const std::string& destination);

/// The source of this path, to be written into the existing `destination`. If require_apart() refuses the two, its
/// elements as they are now: in a temporary file, or in memory if they have no fixed size.
[[nodiscard]] std::unique_ptr<ArraySource> apart_source(std::unique_ptr<ArraySource> source, const std::string& path,
                                                        const std::string& destination, const IoOptions& io);

/// The selected elements of a source of fixed-size elements, in a temporary file that is deleted when it is closed.
[[nodiscard]] std::unique_ptr<ArraySource> spooled(const ArraySource& source, const CopyOptions& options);

}  // namespace tessera
