// tessera reduce
#include <fmt/format.h>

#include "transfer.h"

namespace tessera::cli {

Run declare_reduce(CLI::App& app) {
    const auto o = declare_recipe<ReduceRecipe>(app);
    return [o](Session& session) {
        auto& made = std::get<ReduceRecipe>(o->recipe.make);
        made.source.path = o->source;
        return make_recipe(session, *o, fmt::format("{} of {}:", made.with, o->source));
    };
}

}  // namespace tessera::cli
