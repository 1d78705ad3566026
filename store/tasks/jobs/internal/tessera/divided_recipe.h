// Recipes over whole data sets, as recipes of each of their arrays.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/recipe.h>

namespace tessera {

/// What a recipe over data sets makes: a recipe for each array.
struct DividedRecipe {
    struct One {
        std::string path;  ///< in the result
        Recipe recipe;
        std::vector<std::string> scalars = {};  ///< further words of its attribute `coordinates`
    };
    std::vector<One> arrays;
    std::vector<ArrayFileGroup> groups;
    const Dialect* like = nullptr;
    bool consolidated = false;
    bool names_dimensions = false;  ///< whether names that were given for dimensions are in the arrays already
    std::vector<Note> notes = {};
};

/// The recipes of the arrays that a recipe over whole data sets makes; nullopt for one over single arrays, which makes
/// one. What has none of the dimensions is copied. Throws invalid_argument for names that the data sets do not have.
[[nodiscard]] std::optional<DividedRecipe> divided(const Recipe& recipe);
/// The same of an array of a data set for a file that keeps coordinates (netCDF, HDF5): with those that it has. nullopt
/// where the destination is none, names an array of the file, or the array stands alone.
[[nodiscard]] std::optional<DividedRecipe> divided_with_coordinates(const Recipe& recipe,
                                                                    const std::string& destination);
/// The same for any place.
[[nodiscard]] std::optional<DividedRecipe> divided_with_coordinates(const Recipe& recipe);

/// Either of the two, or the arrays that a table becomes, as the recipe is made there; a copy of a whole data set is
/// none, because copy_hierarchy() makes it.
[[nodiscard]] std::optional<DividedRecipe> divided_for(const Recipe& recipe, const std::string& destination);

/// HierarchyOptions::exclude of a copy of a data set; null if all of it is copied. Throws invalid_argument.
[[nodiscard]] std::function<bool(const std::string& path)> exclusion(const Recipe& recipe);

/// Lets a copy make these arrays, computed as they are read, in place of what lies at its source. `say` gets sentences
/// about them.
void make_set(HierarchyOptions& options, const DividedRecipe& divided, const std::string& destination,
              const std::function<void(const Note& note)>& say);

}  // namespace tessera
