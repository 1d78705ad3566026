// The rows of a CSV file, one after another. Private to core/files.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/byte_io.h>
#include <tessera/counted.h>
#include <tessera/error.h>

namespace tessera {

/// Where a row begins.
struct CsvPlace {
    std::uint64_t offset = 0;
    std::int64_t line = 1;
};

/// The fields of a row without their quotes.
struct CsvRow {
    CountedString text;               ///< the fields, with one character between them
    CountedVector<std::size_t> ends;  ///< where each ends in it

    [[nodiscard]] std::size_t size() const { return ends.size(); }
    [[nodiscard]] std::string_view field(std::size_t i) const {
        const std::size_t begin = i == 0 ? 0 : ends[i - 1] + 1;
        return std::string_view(text).substr(begin, ends[i] - begin);
    }
};

/// Thread rule: one thread.
class CsvRows {
public:
    /// `file` outlives this.
    CsvRows(const ByteSource& file, CsvPlace begin);
    /// The next row; false at the end. Throws corrupt, naming line and column, for misplaced quotes.
    bool next();
    /// Valid until the next call of next().
    [[nodiscard]] const CsvRow& row() const { return fields_; }
    [[nodiscard]] std::size_t size() const { return fields_.size(); }
    [[nodiscard]] std::string_view field(std::size_t i) const { return fields_.field(i); }
    [[nodiscard]] const CsvPlace& place() const { return row_; }  ///< of the row
    /// A corrupt error about column `i` of the row.
    [[nodiscard]] Error error_at(std::size_t i, const Error& why) const;

private:
    /// The next character, or -1 at the end; peek() leaves it there.
    int peek();
    int take();
    void quoted();
    void plain();
    /// Takes the fields of a row without quotes that lies whole in the piece; returns false, and takes nothing, for any
    /// other row.
    bool plain_row();
    [[nodiscard]] std::string_view unread() const;
    void skip(std::size_t count);

    const ByteSource& file_;
    CsvPlace row_, at_;
    Buffer piece_;
    std::size_t begin_ = 0, end_ = 0;  ///< the unread part of the piece
    CsvRow fields_;
};

}  // namespace tessera
