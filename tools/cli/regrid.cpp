// tessera regrid
#include <variant>

#include "command.h"
#include "transfer.h"

namespace tessera::cli {

Run declare_regrid(CLI::App& app) {
    const auto o = declare_recipe<RegridRecipe>(app);
    return [o](Session& session) {
        std::get<RegridRecipe>(o->recipe.make).source.path = o->source;
        return make_recipe(session, *o, "interpolated");
    };
}

}  // namespace tessera::cli
