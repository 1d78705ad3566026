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

/// The first and last rows of what a selection picks, with the index of each. Of structures a column is a field, of
/// two dimensions one of the second. Further dimensions are taken at their middle. Only what is shown is read.
[[nodiscard]] std::string element_table(const ArraySource& source, const Selection& selection, const TableRoom& room,
                                        const IoOptions& io);

}  // namespace tessera::cli
