// Where the chunks of a dataset lie, by HDF5's own index in the file, read in linear time without libhdf5. Private to
// core/files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/memory_account.h>
#include <tessera/shape.h>

namespace tessera {

/// Where HDF5's signature is in the file: at its begin, or after a user block of 512, 1024, 2048, … bytes. Addresses in
/// the file count from there.
[[nodiscard]] std::optional<std::uint64_t> find_hdf5(const ByteSource& file);

struct Hdf5Chunk {
    std::int64_t number = 0;  ///< in C order of the grid of chunks
    std::uint64_t offset = 0, size = 0;
    std::uint32_t mask = 0;  ///< bit i: filter i was left out
};

struct Hdf5Chunks {
    std::vector<Hdf5Chunk> chunks;  ///< those that are stored, each once
    bool edges_unfiltered = false;  ///< chunks that reach beyond the array's end have no filters
    MemoryHold held;
};

/// `header` is the address, from the signature on, of the dataset's object header. `longest` are the largest lengths
/// that the dataset may get; -1: unlimited. `chunk_bytes`: of a chunk, decoded. Throws corrupt, or unsupported for what
/// libhdf5 has to read.
[[nodiscard]] Hdf5Chunks read_hdf5_index(const ByteSource& file, std::uint64_t header, const Shape& shape,
                                         const Shape& longest, const Shape& chunks, std::int64_t chunk_bytes,
                                         bool filtered);

}  // namespace tessera
