// Elements that are no numbers, as a table on a terminal: structures, text, bytes.
#pragma once

#include <string>

#include <tessera/array_io.h>
#include <tessera/selection.h>

namespace tessera::cli {

/// How much of an array a table shows.
struct TableRoom {
    int lines = 24;
    int columns = 80;
};

/// The first and last rows of a selection, with the index of each. The columns are the fields of structures, or else
/// the indices of a second dimension. Further dimensions are taken at their middle. Only displayed elements are read.
[[nodiscard]] std::string element_table(const ArraySource& source, const Selection& selection, const TableRoom& room,
                                        const IoOptions& io);

}  // namespace tessera::cli
