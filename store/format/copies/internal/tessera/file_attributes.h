// The attributes that an array has in an array file.
#pragma once

#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// With the names of dimensions and the fill, which are attributes there. Thread rule: any thread.
[[nodiscard]] Value attributes_with_names(const ArraySource& source);

/// Adds names of arrays to CF's attribute "coordinates", or takes one away. Thread rule: any thread.
void add_coordinates(Value& attributes, const std::vector<std::string>& names);
void erase_coordinate(Value& attributes, const std::string& name);

}  // namespace tessera
