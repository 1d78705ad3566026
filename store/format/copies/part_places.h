// Where the parts lie that are copied of several arrays: what groups and grid mappings say of the place.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/selection.h>
#include <tessera/value.h>

namespace tessera {

class PartPlaces {
public:
    /// What is copied of the array at this path below the source; nullopt: all of it.
    void add(const std::string& node, const ArraySource& array, const std::optional<Selection>& selection);
    /// A group's attributes with the georeference of the part that is copied of its arrays.
    [[nodiscard]] Value of_group(const std::string& node, Value attributes) const;
    /// Those of an array, which may be the grid mapping of others: CF's GeoTransform.
    [[nodiscard]] Value of_array(const std::string& node, Value attributes) const;

private:
    std::map<std::string, std::map<std::string, Selection::Axis>> groups_;  ///< by dimensions of the arrays in them
    std::map<std::string, std::array<Selection::Axis, 2>> mappings_;        ///< rows and columns, by paths
};

}  // namespace tessera
