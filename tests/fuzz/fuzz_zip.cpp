// Zip archives: the directory, every member's bytes, and the .npy in it read as an array.
#include <sys/mman.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "fuzz.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    // The archive has to be a file: one in memory, reached by its descriptor.
    struct File {
        int fd = ::memfd_create("fuzz.npz", MFD_CLOEXEC);
        ~File() { ::close(fd); }
    } const file;
    if (::write(file.fd, input.data(), input.size()) != static_cast<ssize_t>(input.size())) std::abort();

    const ZipReader zip("/proc/self/fd/" + std::to_string(file.fd));
    int opened = 0;
    for (const ZipMember& member : zip.members()) {
        if (++opened > 8) break;
        try {
            const auto bytes = zip.open(member.name);
            if (bytes->size() <= fuzz_limit) (void)read_all(*bytes);
            const auto array = open_npy(bytes);
            const ArrayInfo info = array->info();
            if (info.dtype.size() > fuzz_limit || byte_count(info.shape, info.dtype.size()) > fuzz_limit) continue;
            NDArray whole(info.dtype, info.shape);
            array->read_into(Region::whole(info.shape), whole.view(), {.threads = 1});
        } catch (const Error&) {
            continue;  // one bad member must not hide the next
        }
    }
}
