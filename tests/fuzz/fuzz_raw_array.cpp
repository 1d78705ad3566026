// .ra in all dialects, and plain ones written again.
#include <tessera/ndarray.h>
#include <tessera/raw_array.h>

#include "fuzz.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const std::shared_ptr<const ByteSource> file = memory_source(Buffer(input), "fuzz.ra");
    const auto source = open_raw_array(file);
    const ArrayInfo info = source->info();
    if (byte_count(info.shape, info.dtype.size()) > fuzz_limit) return;
    NDArray whole(info.dtype, info.shape, Order::F);
    source->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
    const RawArrayHeader header = read_raw_array_header(*file);
    if (header.encoding != RawArrayEncoding::plain || info.dtype.kind() == Kind::boolean) return;
    const std::string again = raw_array_header_bytes(info.dtype, header.dims);
    // The byte order of what has none is not kept.
    if (info.dtype.order() != ByteOrder::none &&
        !std::ranges::equal(std::as_bytes(std::span(again)), input.first(again.size()))) {
        __builtin_trap();
    }
}
