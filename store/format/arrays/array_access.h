// What only the library does with Array handles. Private to the store module.
#pragma once

#include <tessera/array.h>
#include <memory>
#include <string_view>
#include <utility>
#include "array_state.h"

namespace tessera {

/// Access to a handle's internals for the rest of the library.
struct ArrayAccess {
    [[nodiscard]] static const std::shared_ptr<struct ArrayState>& state(const Array& array) { return array.state_; }
    [[nodiscard]] static Array handle(std::shared_ptr<struct ArrayState> state) { return Array(std::move(state)); }
    /// As Array::open, without the check for an interrupted batch.
    [[nodiscard]] static Array open_settled(Place place);
    /// The array of which the metadata document was read there.
    [[nodiscard]] static Array open_found(Place place, const Dialect& dialect, Buffer document);
    /// Makes and publishes a new array; the caller holds the DestinationLock.
    static Array create_whole(Place place, const ArrayOptions& options, Waiter* waiter = nullptr);
};

}  // namespace tessera
