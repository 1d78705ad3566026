// Where HDF5's chunks lie: the last 8 bytes are the place of the dataset's header. The dataset is 12×12 in chunks of
// 4×4 with filters, as in the seeds.
#include "hdf5_index.h"

#include <tessera/byte_io.h>
#include <tessera/little_endian.h>

#include "fuzz.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    constexpr std::size_t place = 8;
    if (input.size() < 64 + place) return;
    const auto header = load_little<std::uint64_t>(input.data() + input.size() - place);
    const auto file = memory_source(Buffer(input.first(input.size() - place)), "fuzz");
    for (const std::int64_t longest : {std::int64_t{12}, std::int64_t{-1}}) {
        constexpr std::int64_t chunk_bytes = 64, most_chunks = 9;
        const Hdf5Chunks found =
            read_hdf5_index(*file, header, Shape{12, 12}, Shape{longest, 12}, Shape{4, 4}, chunk_bytes, true);
        if (std::ssize(found.chunks) > most_chunks) __builtin_trap();
        for (const Hdf5Chunk& chunk : found.chunks) {
            const bool inside = chunk.offset <= file->size() && chunk.size <= file->size() - chunk.offset;
            if (chunk.number < 0 || chunk.number >= most_chunks || !inside) __builtin_trap();
        }
    }
}
