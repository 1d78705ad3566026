// .png: the header, and all rows. Without libpng only the refusal.
#include <tessera/array_file.h>
#include <tessera/ndarray.h>

#include <cstring>

#include "fuzz.h"
#include "memory_file.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    constexpr std::size_t signature = 4;  // another format has a target of its own
    if (input.size() < signature || std::memcmp(input.data(), "\x89PNG", signature) != 0) return;
    const MemoryFile file(input);
    const auto source = open_array_file({file.path(), {}});
    const ArrayInfo info = source->info();
    if (byte_count(info.shape, info.dtype.size()) > fuzz_limit) return;
    NDArray whole(info.dtype, info.shape);
    source->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
}
