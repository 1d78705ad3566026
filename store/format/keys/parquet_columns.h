// Flat columns of Parquet files, as far as references are written in them: fastparquet's and pyarrow's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/memory_account.h>

namespace tessera {

/// The values of one column.
struct ParquetColumn {
    bool is_text = false;                ///< of bytes; else of integers
    std::vector<std::string> texts;      ///< a dictionary, or those that stand there; of several rows perhaps
    std::vector<std::int64_t> integers;  ///< the same of integers
    /// For each row the place of its value in either list; -1 for null.
    std::vector<std::int64_t> rows;
    MemoryHold memory = MemoryHold();
};

/// Reads one column of a file; nullopt if it has none of this name. It may be of bytes or of integers of 4 and 8 bytes,
/// plain or with a dictionary, not compressed or by zstd or gzip. Throws corrupt, and unsupported for what else there
/// is, and budget. Every size that the file claims is checked before anything is allocated. More rows than `most_rows`
/// are corrupt.
[[nodiscard]] std::optional<ParquetColumn> read_parquet_column(ByteSpan file, std::string_view name,
                                                               std::int64_t most_rows);

}  // namespace tessera
