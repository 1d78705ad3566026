// Coordinates of a result that lies in a group, written beside it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/copy.h>
#include <tessera/recipe.h>

namespace tessera {

/// What is written beside a result: its new coordinates, and those of its other dimensions that lie beside its source.
class CoordinatesBeside {
public:
    /// Throws invalid_argument, naming it, if an array of a coordinate's name has other values. Does nothing for a
    /// recipe that makes no coordinates. For a destination outside of any group, `opened.notes` gets a sentence.
    CoordinatesBeside(OpenedRecipe& opened, const std::string& destination);

    /// Writes those that are not there. `options`: io and store.
    void write(const HierarchyOptions& options) const;

private:
    void add(const std::string& path, std::shared_ptr<const ArraySource> values, bool is_new);
    struct Beside {
        std::string path, name;
        std::shared_ptr<const ArraySource> values;
    };
    std::vector<Beside> missing_;
};

}  // namespace tessera
