// Where rows stand in a CSV file, for messages.
#pragma once

#include <cstdint>

#include <tessera/byte_io.h>

namespace tessera {

/// The line on which a row of elements begins, counted from 1. `rows`: how many there are; one more in the file is a
/// header. Reads the whole file.
[[nodiscard]] std::int64_t csv_line(const ByteSource& file, std::int64_t row, std::int64_t rows);

}  // namespace tessera
