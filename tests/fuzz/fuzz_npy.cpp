// .npy: the header, the elements by region, and what NumPy would be told of them.
#include <tessera/npy.h>

#include "fuzz.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const auto source = open_npy(memory_source(Buffer(input), "fuzz.npy"));
    const ArrayInfo info = source->info();
    if (info.dtype.size() > fuzz_limit || byte_count(info.shape, info.dtype.size()) > fuzz_limit) return;
    NDArray whole(info.dtype, info.shape);
    source->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
    if (!info.dtype.is_variable()) (void)npy_header_bytes(info.dtype, info.shape, info.order);
}
