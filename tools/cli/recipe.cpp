#include "recipe.h"

#include <string>

#include <tessera/apart.h>
#include <tessera/array_file.h>

#include "options.h"

namespace tessera::cli {

Error about_option(const Error& error, const Recipe& recipe) {
    if (error.code() == ErrorCode::cancelled) return error;
    const Error worded = by_name(error, recipe, &Option::typed);
    const std::string_view text = worded.what();
    if (text.starts_with("format: ")) return error.reworded(error.code(), "--" + std::string(text));
    std::string path;
    visit_options(recipe, [&](const Option& /*option*/, const auto& member) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, Ingredient>) path = member.path;
    });
    if (path.empty() || text.starts_with("--") || text.starts_with(split_array_path(path).path.string())) return worded;
    return worded.within(path);
}

int make_recipe(Session& session, TransferOptions out, Recipe recipe, std::string_view done,
                const OpenIngredient& open) {
    recipe.dtype = out.dtype;
    recipe.cast = out.cast;
    recipe.reverse_dims = out.reverse_dims;
    require_apart(paths_of(recipe), out.destination);
    const OpenIngredient by_path = [given =
                                        open ? open : open_by_path(reading_options(recipe))](const std::string& path) {
        return about_path(path, [&] { return given(path); });
    };
    OpenedRecipe opened = about_recipe(recipe, [&] { return open_recipe(recipe, by_path, session.io()); });
    if (out.state.empty()) out.state = opened.source->name();
    out.recipe = std::move(recipe);
    out.made = std::make_shared<const OpenedRecipe>(std::move(opened));
    out.open = [made = out.made, to = out.destination] {
        // The names of dimensions are an attribute in array files.
        const auto attributes = named_array_file_format(to) == nullptr
                                    ? std::nullopt
                                    : std::optional(attributes_in_file(*made->source, made->from));
        return shared_source({made, made->source.get()}, attributes);
    };
    require_distinct_dims(out.dimensions);
    return transfer(session, out, done);
}

}  // namespace tessera::cli
