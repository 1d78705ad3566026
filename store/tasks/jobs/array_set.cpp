// The arrays of a divided recipe, as a copy makes them at once.
#include <tessera/divided_recipe.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/data_set.h>
#include <tessera/file_attributes.h>
#include <tessera/part_source.h>
#include <tessera/shared_source.h>
#include <tessera/write_computed.h>

namespace tessera {

namespace {

/// Without words for arrays that are not there.
void clean(Value& attributes, const std::set<std::string>& there) {
    for (const char* const name : {"coordinates", "ancillary_variables", "bounds", "climatology"}) {
        const Value* const text = attributes.find(name);
        if (text == nullptr || !text->is_string()) continue;
        std::string kept;
        for (const std::string& word : words_in(text->as_string())) {
            if (there.contains(word)) kept.append(kept.empty() ? "" : " ").append(word);
        }
        if (kept.empty()) {
            attributes.erase(name);
        } else {
            attributes.set(name, kept);
        }
    }
}

/// The last parts of the paths of all arrays.
std::set<std::string> names_in(const DividedRecipe& divided) {
    std::set<std::string> names;
    for (const auto& one : divided.arrays) names.insert(last_of(one.path));
    return names;
}

std::shared_ptr<const ArraySet> array_set(const DividedRecipe& divided, const std::string& destination,
                                          const IoOptions& io, const std::function<void(const Note&)>& say) {
    auto set = std::make_shared<ArraySet>();
    set->groups = divided.groups;
    set->like = divided.like;
    set->consolidated = divided.consolidated;
    const bool to_file = named_array_file_format(destination) != nullptr;
    const auto there = std::make_shared<const std::set<std::string>>(names_in(divided));
    for (const auto& one : divided.arrays) {
        const auto open = [recipe = one.recipe, io] {
            const auto opened = std::make_shared<OpenedRecipe>(open_recipe(recipe, io));
            // What is viewed is selected afterwards.
            const bool selects = recipe.selects_view() && recipe.selection;
            if (selects) opened->source = part_source(std::move(opened->source), *recipe.selection);
            return opened;
        };
        const auto told = std::make_shared<bool>(false);
        ArraySet::One made{.path = one.path, .open = nullptr};
        made.open = [open, there, say, told, to_file, scalars = one.scalars]() -> std::unique_ptr<ArraySource> {
            const auto opened = open();
            for (const Note& note : std::exchange(*told, true) ? std::vector<Note>{} : opened->notes) say(note);
            const bool copied = opened->kept.empty() && opened->from.dimension_names.empty();
            const Value before = opened->source->attribute_values();
            Value attributes = to_file && !copied ? attributes_in_file(*opened->source, opened->from) : before;
            clean(attributes, *there);
            add_coordinates(attributes, scalars);
            if (copied && attributes == before) return std::move(opened->source);
            return shared_source({opened, opened->source.get()}, std::move(attributes));
        };
        if (!std::holds_alternative<CopyRecipe>(one.recipe.make)) {
            made.complete = [open, destination](ArrayWishes& wishes) {
                const auto opened = open();
                complete_wishes(wishes, destination, opened->source->info().shape.rank(), opened->from);
            };
        }
        set->arrays.push_back(std::move(made));
    }
    return set;
}

}  // namespace

void make_set(HierarchyOptions& options, const DividedRecipe& divided, const std::string& destination,
              const std::function<void(const Note&)>& say) {
    options.set = array_set(divided, destination, options.io, say);
    if (divided.names_dimensions) options.arrays.dimension_names.reset();
    // What was a file of a data set becomes a group in a format that has groups.
    const bool of_file = divided.like == nullptr && divided.consolidated;
    if (of_file && options.arrays.preferred_format.empty()) options.arrays.preferred_format = "v3";
    // The recipes of the arrays have these.
    options.view = nullptr;
    options.open = nullptr;
    options.exclude = nullptr;
    options.selection.reset();
    if (options.made_from.empty()) options.made_from = "a recipe";
}

}  // namespace tessera
