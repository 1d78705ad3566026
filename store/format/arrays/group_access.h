// What a Group handle points to. Private to the store module.
#pragma once

#include <memory>

#include <tessera/group.h>
#include <tessera/place.h>

#include "array_state.h"

namespace tessera {

/// Access to a group's internals for the rest of the library.
struct GroupAccess {
    [[nodiscard]] static const std::shared_ptr<NodeState>& state(const Group& group) { return group.state_; }
    /// The group that was found there: with metadata of the dialect, or a plain folder if that is nullptr.
    [[nodiscard]] static Group open_found(const Place& at, const Dialect* dialect) {
        return Group(std::make_shared<NodeState>(at.store, at.prefix, dialect));
    }
};

}  // namespace tessera
