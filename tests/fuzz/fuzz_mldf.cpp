// .mldf: the checks, a corner of every array, single samples, and the comparison of a file with itself.
#include <tessera/error.h>
#include <tessera/mldf.h>
#include <tessera/ndarray.h>

#include "fuzz.h"

using namespace tessera;

namespace {

/// Damage to one field must not keep the others from being read.
template <class Body>
void attempt(const Body& body) {
    try {
        body();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::unsupported) __builtin_trap();
    }
}

void read_array(const MldfReader& reader, const std::string& name) {
    const auto array = reader.open(name);
    Region corner = Region::whole(array->info().shape);
    std::int64_t room = fuzz_limit;
    for (std::int64_t& n : corner.extent) {
        n = std::min(n, std::max<std::int64_t>(1, room));
        room /= std::max<std::int64_t>(n, 1);
    }
    if (byte_count(corner.extent, array->info().dtype.size()) > 16 * fuzz_limit) return;
    NDArray memory(array->info().dtype, corner.extent);
    array->read_into(corner, memory.view(), {.threads = 1});
}

}  // namespace

void fuzz_one(ByteSpan input) {
    const std::shared_ptr<const ByteSource> file = memory_source(Buffer(input), "fuzz.mldf");
    static_cast<void>(validate_mldf(file, {.limit = 3}));
    const MldfReader reader(file, {.verify_checksum = false});
    for (const std::string& name : reader.arrays()) attempt([&] { read_array(reader, name); });
    const std::uint64_t samples = std::min<std::uint64_t>(reader.header().num_samples, 4);
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
        for (std::uint64_t s = 0; s < samples; ++s) attempt([&] { static_cast<void>(reader.read(s, f)); });
    }
    static_cast<void>(compare_mldf(reader, reader, {.limit = 3}));
}
