// .tif: the directories, and all elements of all images. Without libtiff compressed ones are only refused.
#include <tessera/array_file.h>
#include <tessera/ndarray.h>

#include <cstring>

#include "fuzz.h"
#include "memory_file.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    constexpr std::size_t mark = 2;  // another format has a target of its own
    if (input.size() < 16) return;
    if (std::memcmp(input.data(), "II", mark) != 0 && std::memcmp(input.data(), "MM", mark) != 0) return;
    const MemoryFile file(input);
    const ArrayPath path{file.path(), {}};
    const ArrayFileFormat* const format = find_array_file_format(path.path);
    if (format == nullptr) return;
    std::vector<std::string> names = array_members(*format, path);
    if (names.empty()) names.emplace_back("image");
    constexpr std::size_t most = 8;
    if (names.size() > most) names.resize(most);
    for (const std::string& name : names) {
        const auto source = open_array_file({path.path, name});
        const ArrayInfo info = source->info();
        if (byte_count(info.shape, info.dtype.size()) > fuzz_limit) continue;
        NDArray whole(info.dtype, info.shape);
        source->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
    }
}
