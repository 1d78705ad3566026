#include "store_in_file.h"

#include "reference_file.h"
#include "zip_store.h"

namespace tessera {

std::shared_ptr<KeyValueStore> store_in_file(const ByteSource& file) {
    if (auto archive = probe_zip_store(file)) return archive;
    return probe_reference_store(file.name());
}

}  // namespace tessera
