// Tables as comma-separated text (RFC 4180), from arrays of one or two dimensions or of structures.
//
// A row is a line; an array of one dimension is one column. Structures have a header with a column for each field (a.b
// for nested fields, a[0] for sub-arrays); other arrays have none. Numbers are written with the fewest digits that read
// back bit for bit (NaNs as nan), Booleans as true and false, times as ISO 8601, m8 as counts, S as latin-1 text, and V
// as 0x and hex digits.
#pragma once

#include <memory>
#include <optional>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>

namespace tessera {

struct CsvOptions {
    /// The dtype of elements. nullopt: i8, u8, f8, b1, M8 (dates of ISO 8601) or U n, found by reading all once. With a
    /// header, or with columns of several kinds, it is a structure with a field for each column.
    std::optional<DType> dtype = std::nullopt;
    /// Whether the first line is a header. nullopt: it is one if nothing in it is a number or a Boolean.
    std::optional<bool> header = std::nullopt;
};

/// Reads the whole file once, for its shape. Throws corrupt, naming line and column, for rows of other lengths and
/// for fields that do not fit the dtype. Memory stays within a few MiB, whatever the file's size.
[[nodiscard]] std::unique_ptr<ArraySource> open_csv(std::shared_ptr<const ByteSource> file,
                                                    const CsvOptions& options = {});
/// Accepts elements in C order. Throws unsupported for a rank or dtype that CSV cannot express.
[[nodiscard]] std::unique_ptr<ArraySink> create_csv(std::unique_ptr<ByteSink> sink, const DType& dtype,
                                                    const Shape& shape);

}  // namespace tessera
