#include "lifted_recipe.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/shape.h>

namespace tessera {

namespace {

/// The path of a data set and the name of an array in it: of FILE::NAME and GROUP/NAME; else two empty texts.
std::pair<std::string, std::string> split_node(const std::string& path) {
    const ArrayPath file = split_array_path(path);
    if (file.member) return {file.path.string(), *file.member};
    const std::size_t slash = path.find_last_not_of('/') == std::string::npos
                                  ? std::string::npos
                                  : path.rfind('/', path.find_last_not_of('/'));
    if (slash == std::string::npos || slash == 0) return {};
    return {path.substr(0, slash), path.substr(slash + 1, path.find_last_not_of('/') - slash)};
}

/// Of several operands that with the most dimensions, which the result has.
std::optional<std::pair<std::string, std::string>> lift_operand(CalcRecipe& calc) {
    std::optional<std::pair<std::string, std::string>> found;
    std::string path;
    int most = -1;
    for (const auto& [name, operand] : calc.operands) {
        std::pair<std::string, std::string> node = split_node(operand.array ? "" : operand.path);
        const auto set = node.first.empty() ? std::nullopt : DataSet::at(node.first);
        if (!set || !set->has(node.second) || set->member(node.second).shape.rank() <= most) continue;
        most = set->member(node.second).shape.rank();
        path = operand.path;
        found = std::move(node);
    }
    for (auto& [name, operand] : calc.operands) {
        if (found && operand.path == path) operand.path = found->first;
    }
    return found;
}

/// Makes a recipe over single arrays one over the data sets that they lie in. The path of the first set, and the name
/// that all of them have there; nullopt for arrays that lie in none, or have other names.
std::optional<std::pair<std::string, std::string>> lift(Recipe& recipe) {
    if (auto* const calc = std::get_if<CalcRecipe>(&recipe.make)) return lift_operand(*calc);
    std::vector<Ingredient*> arrays;
    std::visit(
        [&](auto& made) {
            if constexpr (requires { made.source; }) arrays = {&made.source};
            if constexpr (requires { made.parts; }) {
                for (Ingredient& part : made.parts) arrays.push_back(&part);
            }
        },
        recipe.make);
    std::optional<std::pair<std::string, std::string>> first;
    for (Ingredient* const array : arrays) {
        std::pair<std::string, std::string> node = split_node(array->array ? "" : array->path);
        if (node.first.empty()) return std::nullopt;
        if (first && node.second != first->second) return std::nullopt;
        array->path = node.first;
        if (!first) first = std::move(node);
    }
    return first;
}

/// Calls the dimensions that a recipe names by their names, because they have other numbers in arrays that belong to
/// this one. False if one has no name.
class NamedDimensions {
public:
    explicit NamedDimensions(const DataSet::Member& array) : array_(array) {}

    bool of(Recipe& recipe) {
        if (auto* const reduce = std::get_if<ReduceRecipe>(&recipe.make)) {
            for (std::string& axis : reduce->axes) rename("axes", axis);
            if (reduce->rolling) {
                const std::size_t equals = std::min(reduce->rolling->rfind('='), reduce->rolling->size());
                std::string word = reduce->rolling->substr(0, equals);
                rename("rolling", word);
                reduce->rolling = word + reduce->rolling->substr(equals);
            }
        }
        auto* const join = std::get_if<JoinRecipe>(&recipe.make);
        if (join != nullptr && !join->new_axis) rename("axis", join->axis);
        if (auto* const coarsen = std::get_if<CoarsenRecipe>(&recipe.make)) name_factors(coarsen->by);
        return all_;
    }

private:
    [[nodiscard]] std::optional<std::string> name_at(int d) {
        const auto at = static_cast<std::size_t>(d);
        const auto name = at < array_.dimensions.size() ? array_.dimensions[at] : std::nullopt;
        all_ = all_ && name.has_value();
        return name;
    }
    void rename(const char* option, std::string& word) {
        const int d = in_context([&] { return option; },
                                 [&] { return find_dimension(word, array_.dimensions, array_.shape.rank()); });
        word = name_at(d).value_or(word);
    }
    void name_factors(std::string& by) {
        if (is_number_text(by) || by.find('=') != std::string::npos) return;
        const Shape factors = in_context([] { return "by"; }, [&] { return parse_shape(by); });
        all_ = factors.rank() == array_.shape.rank();  // else it is refused with the array alone
        by.clear();
        for (int d = 0; all_ && d < factors.rank(); ++d)
            by += fmt::format("{}{}={}", d == 0 ? "" : ",", name_at(d).value_or(""), factors[d]);
    }

    const DataSet::Member& array_;
    bool all_ = true;
};

}  // namespace

std::optional<LiftedRecipe> LiftedRecipe::of(const Recipe& recipe) {
    const View* const view = recipe.view();
    if (view != nullptr && (view->where || view->points || view->coordinates)) return std::nullopt;
    Recipe of_set = recipe;
    // No structured binding, which Clang 14 captures in no lambda.
    const auto node = lift(of_set);
    if (!node) return std::nullopt;
    const std::string& name = node->second;
    auto set = DataSet::at(node->first);
    if (!set || !set->has(name) || set->with_belongings({name}).size() < 2) return std::nullopt;
    if (!NamedDimensions(set->member(name)).of(of_set)) return std::nullopt;
    of_set.only = {name};
    const auto* const calc = std::get_if<CalcRecipe>(&recipe.make);
    const bool mixed = calc != nullptr && std::ranges::any_of(calc->operands, [&](const auto& operand) {
                           return split_node(operand.second.path).second != name;
                       });
    return LiftedRecipe{std::move(of_set), *std::move(set), name, mixed};
}

}  // namespace tessera
