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
    /// `recipe` is what was opened. Throws invalid_argument, naming it, if an array of a new coordinate's name has
    /// other values; of a join `opened.notes` gets a sentence then. Does nothing for other recipes that make no
    /// coordinates. For a destination outside of any group, `opened.notes` gets a sentence.
    CoordinatesBeside(OpenedRecipe& opened, const Recipe& recipe, const std::string& destination, const IoOptions& io);

    /// Writes those that are not there. `options`: io and store.
    void write(const HierarchyOptions& options) const;

private:
    using Values = std::shared_ptr<const ArraySource>;
    void add_regridded(const OpenedRecipe& opened, const std::string& group);
    void add_joined(OpenedRecipe& opened, const Recipe& recipe, const std::string& group, const IoOptions& io);
    /// False if an array with other values lies there.
    [[nodiscard]] bool add(const std::string& group, const std::string& name, Values values);
    struct Beside {
        std::string path, name;
        Values values;
    };
    std::vector<Beside> missing_;
};

}  // namespace tessera
