// Where the messages of a GRIB file lie, and the fields in them, by the lengths of their sections: without ecCodes.
// Private to core/files.
//
// A message of GRIB 2 may hold several fields, which share sections. Each is put together as a message of its own here,
// so that nothing else knows of that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>

namespace tessera {

/// A field: one grid of values.
struct GribField {
    std::int64_t message = 0;  ///< its number in the file, from 1
    int edition = 0;
    /// What it consists of, in the file: GRIB 1: the message; GRIB 2: sections 0 to 7 without those that it lacks.
    std::vector<ByteSource::Extent> parts;

    [[nodiscard]] std::uint64_t offset() const { return parts.front().begin; }
    /// Of grib_message().
    [[nodiscard]] std::uint64_t size() const;
    /// "message 3 (at byte 1,234)", for errors.
    [[nodiscard]] std::string what() const;
};

/// Its grid, as bytes that differ between grids.
[[nodiscard]] std::string grib_grid(const ByteSource& file, const GribField& field);
/// Writes the field as a message into size() bytes.
void grib_message(const ByteSource& file, const GribField& field, MutableByteSpan out);
/// A message that says the same of the field but, in GRIB 2, has no values, and so is short.
[[nodiscard]] Buffer grib_header(const ByteSource& file, const GribField& field);

/// Calls `each` with all fields in their order. Bytes between messages are passed over, as ecCodes does. Throws corrupt
/// for a message that is cut short, naming it, and unsupported for another edition.
void visit_grib(const ByteSource& file, const std::function<void(GribField)>& each);

}  // namespace tessera
