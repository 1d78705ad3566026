#include <tessera/stored_values.h>

#include "array_access.h"
#include "array_state.h"
#include "versions.h"

namespace tessera {

StoredValues::StoredValues(const Array& array) : state_(ArrayAccess::state(array)), loaded_(state_->loaded()) {}

const ChunkGrid& StoredValues::grid() const {
    return loaded_->grid;
}

std::optional<StoredValues::Opened> StoredValues::open(const Index& chunk) const {
    std::optional<ValueStamp> stamp;
    std::shared_ptr<const ByteSource> bytes = open_stamped(*state_->store, state_->chunk_key(*loaded_, chunk), stamp);
    if (bytes == nullptr) return {};
    return Opened{std::move(bytes), stamp};
}

std::optional<ValueStamp> StoredValues::stamp(const Index& chunk) const {
    return state_->store->stamp(state_->chunk_key(*loaded_, chunk));
}

bool StoredValues::may_be_absent() const {
    return loaded_->may_omit();
}

std::uint64_t StoredValues::encoded_limit() const {
    return loaded_->pipeline.encoded_limit();
}

}  // namespace tessera
