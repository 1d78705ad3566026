// References: the document, and every value that it leads to. They lie in a folder of descriptors, below which nothing
// else is theirs to read.
#include <tessera/error.h>
#include <tessera/store_kind.h>

#include "fuzz.h"
#include "memory_file.h"

using namespace tessera;

namespace {

void read_below(const PlaceView& place) {
    const Listing listing = place.store.list(place.prefix);
    for (const std::string& name : listing.keys) {
        try {
            Buffer value;
            if (!place.store.get(place.key(name), value, fuzz_limit)) __builtin_trap();  // it is listed
        } catch (const Error&) {
            continue;
        }
    }
    for (const std::string& name : listing.prefixes) read_below({place.store, place.key(name)});
}

}  // namespace

void fuzz_one(ByteSpan input) {
    const MemoryFile file(input);
    read_below(*reference_store(file.path()));
}
