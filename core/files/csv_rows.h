// The rows of a CSV file, one after another. Private to core/files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/memory_account.h>

namespace tessera {

/// Where a row begins.
struct CsvPlace {
    std::uint64_t offset = 0;
    std::int64_t line = 1;
};

/// Thread rule: one thread.
class CsvRows {
public:
    /// `file` outlives this.
    CsvRows(const ByteSource& file, CsvPlace begin);
    /// The next row; false at the end. Throws corrupt, naming line and column, for misplaced quotes.
    bool next();
    /// Fields without their quotes; valid until the next call of next().
    [[nodiscard]] std::size_t size() const { return ends_.size(); }
    [[nodiscard]] std::string_view field(std::size_t i) const {
        const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
        return std::string_view(text_).substr(begin, ends_[i] - begin);
    }
    [[nodiscard]] const CsvPlace& place() const { return row_; }  ///< of the row
    /// Throws corrupt about column `i` of the row.
    [[noreturn]] void refuse(std::size_t i, std::string_view why) const;

private:
    /// The next character, or -1 at the end; peek() leaves it there.
    int peek();
    int take();
    void quoted();
    void plain();

    const ByteSource& file_;
    CsvPlace row_, at_;
    Buffer piece_;
    std::size_t begin_ = 0, end_ = 0;  ///< the unread part of the piece
    std::string text_;                 ///< the fields of the row, concatenated
    std::vector<std::size_t> ends_;
    MemoryHold held_;
    std::uint64_t held_bytes_ = 0;
};

}  // namespace tessera
