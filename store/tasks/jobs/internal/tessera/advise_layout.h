// Which chunks, shards and codec suit an array, by trying them on a part of it.
#pragma once

#include <tessera/array_io.h>
#include <tessera/dimensions.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>
#include <tessera/value.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A way in which an array will be read: a box of this shape, anywhere in it.
struct ReadPattern {
    std::string text;  ///< "time=1"
    Shape box;
};

/// Patterns as "time=1; lat=1,lon=1": how many indices are read along dimensions, by name or number; "…" is one. All of
/// any other. Without a text: one index along each dimension, and of three or more one element along all of the first.
/// Throws invalid_argument.
[[nodiscard]] std::vector<ReadPattern> parse_reads(std::string_view text, const Shape& shape,
                                                   const DimensionNames& names);

struct TriedLayout {
    Shape chunks;
    Shape shards;  ///< empty: none
    std::string codec;
    bool present = false;            ///< the array is stored like this
    double stored = 0;               ///< bytes of the whole array, and all else likewise, reckoned from the part
    double values = 0;               ///< chunks, or shards: files or objects, if all are stored
    std::vector<double> reads = {};  ///< seconds of one processor for each pattern
    double write = 0;                ///< seconds of one processor
    double cost = 0;                 ///< beside the others: see advise_layout()
};

struct LayoutAdvice {
    std::vector<TriedLayout> tried;  ///< the best comes first
    Region part;                     ///< what was tried
};

/// Reads a part in the middle of an array, some MiB, writes it to memory with each codec and shape of chunks, and reads
/// it again. What a pattern takes is reckoned from that: the chunks that it touches, decoded whole, and for each value
/// the time that opening and reading one took where the array lies. With many chunks shards of them are reckoned, too.
/// The cost is the time to read once by each pattern and the size, each relative to the least that was found, and the
/// time for writing likewise, as a quarter. Takes some seconds of one processor. Throws unsupported for elements of
/// variable length and arrays without elements, and as reading does.
[[nodiscard]] LayoutAdvice advise_layout(const ArraySource& source, const std::vector<ReadPattern>& reads,
                                         const IoOptions& io = {});

/// The options of a copy that has this layout: "--chunks 10,20 --codec zstd:3".
[[nodiscard]] std::string layout_options(const TriedLayout& layout);
/// All of it, in its one form in JSON: `path`, `part`, `reads`, `layouts`.
[[nodiscard]] Value advice_value(std::string_view path, const std::vector<ReadPattern>& reads,
                                 const LayoutAdvice& advice);

}  // namespace tessera
