// tessera reduce
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "recipe.h"

namespace tessera::cli {

Run declare_reduce(CLI::App& app) {
    auto out = std::make_shared<TransferOptions>();
    auto made = std::make_shared<ReduceRecipe>();
    declare_places(app, *out);
    const auto read = declare_recipe(app, made);
    app.add_option("--dtype", out->dtype, "convert the results: f4, '<i2'")->option_text("DTYPE");
    app.add_option("--cast", out->cast, "safe, same_kind (default), unsafe, round or clip")->option_text("RULE");
    declare_result_options(app, *out);
    return [out, made, read](Session& session) {
        read();
        made->source.path = out->source;
        return make_recipe(session, *out, {.make = *made}, fmt::format("{} of {}:", made->with, out->source));
    };
}

}  // namespace tessera::cli
