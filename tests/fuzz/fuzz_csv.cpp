// .csv: found out, and as one dtype; what is found out is read again by region, and written.
#include <tessera/array_file.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>

#include "fuzz.h"

using namespace tessera;

namespace {

void read_as(ByteSpan input, const CsvOptions& options) {
    const auto source = open_csv(memory_source(Buffer(input), "fuzz.csv"), options);
    const ArrayInfo info = source->info();
    if (info.dtype.size() > fuzz_limit || byte_count(info.shape, info.dtype.size()) > fuzz_limit) return;
    NDArray whole(info.dtype, info.shape);
    source->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
}

}  // namespace

void fuzz_one(ByteSpan input) {
    try {
        read_as(input, {.header = true});
    } catch (const Error&) {
        // The others may read it all the same.
    }
    for (const char* dtype : {"<f4", "b1", "M8[s]", "S3", "V2", "<u8"}) {
        try {
            read_as(input, {.dtype = DType::parse(dtype)});
        } catch (const Error&) {
            continue;
        }
    }
    read_as(input, {});
}
