// A recipe over single arrays as one over the data sets that they lie in. Private to the store module.
#pragma once

#include <optional>
#include <string>

#include <tessera/data_set.h>
#include <tessera/recipe.h>

namespace tessera {

struct LiftedRecipe {
    Recipe recipe;       ///< chooses the array, and calls its dimensions by their names
    DataSet set;         ///< the first one
    std::string name;    ///< of the array there
    bool mixed = false;  ///< operands of an expression have other names

    /// nullopt for arrays that lie in no data set, stand alone there, or have dimensions without names.
    [[nodiscard]] static std::optional<LiftedRecipe> of(const Recipe& recipe);
};

}  // namespace tessera
