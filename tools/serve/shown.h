// The elements that a request is about: those of a node, or of one field of its structures.
#pragma once

#include <memory>
#include <string>

#include "served.h"

namespace tessera::serve {

struct Shown {
    NodePointer node;
    std::string field;                          ///< "" for the elements themselves
    std::shared_ptr<const ArraySource> source;  ///< keeps what it reads open
};

/// By the parameters `path` and `field` ("close", "position.x"). Throws as Served::node; invalid_argument for a node
/// without elements or fields; not_found for a field that is not there.
[[nodiscard]] Shown shown_by(Served& served, const HttpRequest& request);

}  // namespace tessera::serve
