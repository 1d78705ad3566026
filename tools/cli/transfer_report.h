// What a transfer says: of what it made, of what it would make, of what it left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>

#include "transfer_plan.h"

namespace tessera::cli {

/// An array that was made.
struct Made {
    std::string path;
    DType dtype;
    Shape shape;
    std::optional<Shape> chunk_shape;  ///< none in an array file
    std::int64_t chunks = 0;
    std::optional<std::uint64_t> bytes;  ///< stored; none for one of several arrays in a file

    [[nodiscard]] std::uint64_t logical() const { return static_cast<std::uint64_t>(byte_count(shape, dtype.size())); }
};

/// What a transfer made.
struct Transferred {
    std::string path;  ///< the destination, or beside it where what is there was not replaced
    std::vector<Made> made;
    std::vector<Unreadable> left_out;
    std::uint64_t bytes = 0;  ///< stored, in all
    bool bundle = false;      ///< several arrays in one file
};

[[nodiscard]] Made made_of(const std::string& path, const Array& array);

/// Says on stderr what could not be read.
void note_left_out(Session& session, const TransferOptions& options, const std::vector<Unreadable>& left_out);
/// The report of --dry-run.
void report_plan(Session& session, const TransferOptions& options, const Plan& plan);
/// The report of everything else; `done` is the word for it: "imported".
void report_transferred(Session& session, const TransferOptions& options, const Transferred& result,
                        std::string_view done);

}  // namespace tessera::cli
