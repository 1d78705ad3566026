// Lines of CSV files: where they stand, for messages, and the fields in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/byte_io.h>

namespace tessera {

/// The line on which a row of elements begins, counted from 1. `rows`: how many there are; one more in the file is a
/// header. Reads the whole file.
[[nodiscard]] std::int64_t csv_line(const ByteSource& file, std::int64_t row, std::int64_t rows);

/// Appends text that may need quotes. `alone`: it is the only field of its line.
void append_csv_text(std::string& out, std::string_view text, bool alone);

}  // namespace tessera
