// PNG pictures, written by all cores: bands of rows are filtered and deflated at the same time, and joined to one
// stream. Private to core/files.
#pragma once

#include <tessera/buffer.h>
#include <tessera/byte_io.h>
#include <tessera/parallel.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tessera {

/// The facts in a picture's header.
struct PngHeader {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    int bits = 8;  ///< of a channel: 8 or 16
    int channels = 1;

    [[nodiscard]] std::size_t pixel_bytes() const {
        return static_cast<std::size_t>(channels) * static_cast<std::size_t>(bits / 8);
    }
    [[nodiscard]] std::size_t row_bytes() const { return width * pixel_bytes(); }
};

/// Writes one picture into a sink. The bytes depend on the picture alone, not on the number of threads. Thread rule:
/// one thread.
class PngWriter {
public:
    /// Writes the header. `sink` outlives the writer.
    PngWriter(ByteSink& sink, const PngHeader& header);
    /// Appends bytes of the rows in order; channels of 16 bits are big-endian. Throws io if the compressor fails.
    void append(ByteSpan pixels, const IoOptions& io);
    /// After the last row.
    void finish();

private:
    void write_chunk(const char* type, ByteSpan data);
    void write_rows(bool last);
    /// The first row of a band, and the one after its last.
    [[nodiscard]] std::pair<std::size_t, std::size_t> rows_of(std::int64_t band) const;
    void write_stream(ByteSpan stream);
    void keep_last_rows();
    void filter_row(std::size_t row);

    ByteSink& sink_;
    PngHeader header_;
    IoOptions io_;
    std::size_t band_rows_;       ///< rows that are deflated as one
    Buffer rows_;                 ///< the row before the pending ones, and these
    std::size_t pending_ = 0;     ///< bytes of the pending rows
    Buffer filtered_;             ///< the end of what was deflated, and the pending rows filtered
    std::size_t dictionary_ = 0;  ///< bytes of that end
    std::uint32_t adler_ = 1;     ///< of all that was filtered
    bool begun_ = false;          ///< the stream has its header
};

}  // namespace tessera
