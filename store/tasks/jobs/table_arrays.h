// A table with a column for each dimension's coordinate, as the arrays that it was made of. Private to
// store/tasks/jobs.
#pragma once

#include <optional>
#include <string>

#include <tessera/divided_recipe.h>
#include <tessera/recipe.h>

namespace tessera {

/// The reverse of View::coordinates: of a copy of a table whose columns View::order names, an array for each other
/// column, and the coordinates. nullopt for other recipes, and where the name for a single dimension is no column's.
/// Reads the table. Throws as TableCells, and invalid_argument for names that are no columns.
[[nodiscard]] std::optional<DividedRecipe> arrays_of_table(const Recipe& recipe);

}  // namespace tessera
