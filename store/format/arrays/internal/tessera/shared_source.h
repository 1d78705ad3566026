// Sources that share others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/value.h>

namespace tessera {

/// A source that shares another one; with its attributes, or others.
[[nodiscard]] std::unique_ptr<ArraySource> shared_source(std::shared_ptr<const ArraySource> of,
                                                         std::optional<Value> attributes = std::nullopt);
/// The same of one that the caller keeps until nobody reads the result.
[[nodiscard]] std::unique_ptr<ArraySource> borrowed_source(const ArraySource& of,
                                                           std::optional<Value> attributes = std::nullopt);

/// Elements in memory, with attributes.
[[nodiscard]] std::unique_ptr<ArraySource> held_source(NDArray elements, const std::string& name, Value attributes);

}  // namespace tessera
