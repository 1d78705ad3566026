// Standard input, standard output and pipes in place of array files: "-", /dev/stdin, /dev/stdout, and what a shell
// makes of <(…) and >(…).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/byte_io.h>

#include "command.h"
#include "transfer.h"

namespace tessera::cli {

/// The descriptor that a path of a source, or of a destination, stands for; nullopt for any other path. A folder or
/// file called "-" is "./-".
[[nodiscard]] std::optional<int> input_stream(std::string_view path);
[[nodiscard]] std::optional<int> output_stream(std::string_view path);

/// Reads a stream to its end. What is no file goes through a temporary file without a name (in $TMPDIR, else /var/tmp),
/// because array files are read by region. Throws invalid_argument for a terminal.
[[nodiscard]] std::shared_ptr<const ByteSource> read_stream(int descriptor);
/// The array in these bytes. `as` names the format, "csv" for text; without it the first bytes tell.
[[nodiscard]] std::unique_ptr<ArraySource> open_stream(const std::shared_ptr<const ByteSource>& bytes,
                                                       const std::optional<std::string>& as,
                                                       const ArrayFileOptions& options);

/// A sink into a stream, in order.
[[nodiscard]] std::unique_ptr<ByteSink> stream_sink(int descriptor);
/// Writes the selected elements of a source to a stream, as a .npy or what --as says.
int write_stream(Session& session, const TransferOptions& options, const ArraySource& source, int descriptor);

}  // namespace tessera::cli
