// Where the parts lie that are copied of several arrays: what groups, grid mappings and coordinates say of it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/dimensions.h>
#include <tessera/selection.h>
#include <tessera/value.h>

namespace tessera {

class PartPlaces {
public:
    /// What is copied of the array at this path below the source; nullopt: all of it.
    void add(const std::string& node, const ArraySource& array, const std::optional<Selection>& selection);
    /// A group's attributes with the georeference of the part that is copied of its arrays.
    [[nodiscard]] Value of_group(const std::string& node, Value attributes) const;
    /// Those of an array. It may be the grid mapping of others: CF's GeoTransform. Of a dimension of which one value is
    /// selected, the coordinate stays, as one of what had the dimension.
    [[nodiscard]] Value of_array(const std::string& node, Value attributes) const;

private:
    void note_scalars(const std::string& node, const Value& attributes, const DimensionNames& names,
                      const std::vector<Selection::Axis>& axes);
    [[nodiscard]] Value of_mapping(const std::string& node, Value attributes) const;

    std::map<std::string, std::vector<std::string>> dropped_;               ///< the dimensions that an array loses
    std::set<std::string> scalars_, bounds_;                                ///< paths of coordinates, and of bounds
    std::map<std::string, std::map<std::string, Selection::Axis>> groups_;  ///< by dimensions of the arrays in them
    std::map<std::string, std::array<Selection::Axis, 2>> mappings_;        ///< rows and columns, by paths
};

}  // namespace tessera
