// Recipes over whole data sets, as recipes of each of their arrays.
#include <tessera/divided_recipe.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/coordinates.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/measure.h>
#include <tessera/numbers.h>
#include <tessera/part_source.h>
#include <tessera/shared_source.h>
#include <tessera/write_computed.h>

#include "coarse_bounds.h"
#include "lifted_recipe.h"
#include "set_grids.h"
#include "table_arrays.h"

namespace tessera {

namespace {

/// The arrays of a data set that a recipe is for.
std::set<std::string> chosen(const DataSet& set, const Recipe& recipe) {
    const auto require_there = [&](const char* option, const std::vector<std::string>& names) {
        for (const std::string& name : names) {
            if (set.has(name)) continue;
            throw invalid_argument("{}: {} has no array '{}'; there are {}", option, set.path(), name,
                                   fmt::join(set.names(), ", "));
        }
    };
    require_there("only", recipe.only);
    require_there("except", recipe.leave_out);
    std::set<std::string> all(set.names().begin(), set.names().end());
    if (!recipe.only.empty()) all = set.with_belongings(recipe.only);
    for (const std::string& name : recipe.leave_out) all.erase(name);
    return all;
}

/// Makes the recipes of a data set's arrays.
class Divider {
public:
    enum class Of : std::uint8_t { set, one };  ///< one array, with its coordinates where they fit
    Divider(const Recipe& recipe, DataSet set, Of of = Of::set)
        : recipe_(recipe), set_(std::move(set)), names_(chosen(set_, recipe)), of_(of) {
        if (recipe_.selection) selection_.emplace(*recipe_.selection);
        divided_.groups = set_.groups();
        for (ArrayFileGroup& group : divided_.groups) {
            if (selection_) erase_geo_place(group.attributes);  // it is that of the whole
        }
        divided_.like = set_.dialect();
        divided_.consolidated = set_.is_consolidated();
    }

    DividedRecipe divide() {
        std::visit([&](const auto& made) { make(made); }, recipe_.make);
        if (selection_) name_scalars();
        if (selection_) in_context([&] { return set_.path(); }, [&] { selection_->require_found(); });
        return std::move(divided_);
    }

private:
    void add(std::string path, Recipe recipe, const DataSet& from, const std::string& name) {
        recipe.selection = std::nullopt;
        if (selection_) {
            std::string items = selection_->items_for(*from.open(name));
            if (!items.empty()) recipe.selection = std::move(items);
        }
        divided_.arrays.push_back({std::move(path), std::move(recipe)});
    }
    /// The same recipe with another `make`.
    template <class Made>
    void add(const std::string& name, Made made) {
        Recipe recipe = recipe_;
        recipe.only.clear();
        recipe.leave_out.clear();
        recipe.make = std::move(made);
        add(name, std::move(recipe), set_, name);
    }
    void carry(const std::string& name) {
        add(name, Recipe{.make = CopyRecipe{.source = {.path = set_.path_of(name)}, .view = carried_}}, set_, name);
    }

    /// A dimension of which one value is selected goes; its coordinate stays, as the attribute of what had it.
    void name_scalars() {
        std::map<std::string, std::string> scalars;  ///< names by dimensions
        for (const auto& one : divided_.arrays) {
            const bool copied = std::holds_alternative<CopyRecipe>(one.recipe.make) && one.recipe.selection;
            if (!copied || !set_.has(one.path) || !set_.is_coordinate(one.path)) continue;
            if (!part_source(set_.open(one.path), *one.recipe.selection)->info().shape.empty()) continue;
            scalars.emplace(*member(one.path).dimensions.front(), last_of(one.path));
        }
        for (auto& one : divided_.arrays) {
            if (!set_.has(one.path) || !is_data(one.path)) continue;
            for (const auto& [dimension, name] : scalars) {
                if (member(one.path).has(dimension)) one.scalars.push_back(name);
            }
        }
    }

    [[nodiscard]] const DataSet::Member& member(const std::string& name) const { return set_.member(name); }
    [[nodiscard]] bool is_data(const std::string& name) const { return set_.is_data(name); }

    /// A name, not a number, because dimensions lie at different places.
    void require_dimension(const char* option, const std::string& word) const {
        const auto all = set_.dimensions();
        if (all.contains(word)) return;
        if (all.empty()) {
            throw invalid_argument("{}: {} holds several arrays whose dimensions have no names: name one array: {}",
                                   option, set_.path(), set_.path_of(set_.names().front()));
        }
        if (is_number_text(word)) {
            throw invalid_argument("{}: {} holds several arrays: name the dimension, and not its number {}; {}", option,
                                   set_.path(), word, names_there(all));
        }
        throw invalid_argument("{}: no array of {} has a dimension '{}'; {}", option, set_.path(), word,
                               names_there(all));
    }
    void require_numbers(const std::string& name, std::string_view what) const {
        const DType& dtype = member(name).dtype;
        if (is_number(dtype) || dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta) return;
        throw unsupported("{}: elements of {} cannot be {}", set_.path_of(name), dtype.to_string(), what)
            .advising(Action::leave_out, "leaves it out", name);
    }
    void require_some(bool any, std::string_view what) const {
        if (!any) throw invalid_argument("{}: none of its arrays {}", set_.path(), what);
    }
    [[nodiscard]] bool has_any(const std::string& name, const std::vector<std::string>& dimensions) const {
        return std::ranges::any_of(dimensions, [&](const auto& d) { return member(name).has(d); });
    }

    void make(const CopyRecipe& r) {
        carried_ = r.view;
        if (!r.view.order.empty()) return make_in_order(r);
        for (const std::string& name : names_) {
            CopyRecipe one = r;
            one.source = {.path = set_.path_of(name)};
            is_data(name) ? add(name, std::move(one)) : carry(name);
        }
    }

    /// Each array whose dimensions are named has them in this order, also if it has some of them only.
    void make_in_order(CopyRecipe r) {
        const DimensionNames all = r.view.order;
        divided_.names_dimensions = true;
        bool any = false;
        for (const std::string& name : names_) {
            DimensionNames own;
            std::ranges::copy_if(all, std::back_inserter(own),
                                 [&](const auto& d) { return d && member(name).has(*d); });
            const bool named = std::ranges::is_permutation(member(name).dimensions, own);
            any = any || (named && own.size() == all.size());
            r.view.order = carried_.order = named ? std::move(own) : DimensionNames();
            r.source = {.path = set_.path_of(name)};
            is_data(name) ? add(name, r) : carry(name);
        }
        if (!any) {
            throw invalid_argument("dims: expected the dimensions of an array of {} in another order; {}", set_.path(),
                                   names_there(set_.dimensions()));
        }
    }

    void make(const ReduceRecipe& r) {
        if (r.rolling) return roll(r);
        if (r.by) return make_groups(r);
        for (const std::string& axis : r.axes) require_dimension("axes", axis);
        bool any = false;
        for (const std::string& name : names_) {
            const bool goes = r.axes.empty() ? !member(name).dimensions.empty() || member(name).shape.rank() > 0
                                             : has_any(name, r.axes);
            if (!goes) {
                carry(name);
                continue;
            }
            const bool middle = r.keep_dimensions && set_.is_coordinate(name) && is_number(member(name).dtype);
            if (!is_data(name) && !middle) continue;  // it says nothing of the result
            require_numbers(name, "reduced");
            any = any || is_data(name);
            ReduceRecipe one = r;
            one.source = {.path = set_.path_of(name)};
            if (middle) one.with = "mean";
            std::erase_if(one.axes, [&](const std::string& axis) { return !member(name).has(axis); });
            add(name, std::move(one));
        }
        require_some(any, "has these dimensions");
    }

    /// Windows keep all dimensions, and so their coordinates.
    void roll(const ReduceRecipe& r) {
        const std::string dimension = r.rolling->substr(0, r.rolling->rfind('='));
        require_dimension("rolling", dimension);
        bool any = false;
        for (const std::string& name : names_) {
            if (!is_data(name) || !member(name).has(dimension)) {
                carry(name);
                continue;
            }
            require_numbers(name, "reduced");
            any = true;
            ReduceRecipe one = r;
            one.source = {.path = set_.path_of(name)};
            add(name, std::move(one));
        }
        require_some(any, fmt::format("has the dimension {}", dimension));
    }

    void make(const RegridRecipe& r) {
        const SetGrids grids = grids_of(set_, names_);
        RegridRecipe one = r;
        if (one.like && !one.like->array) one.like->path = grid_at(one.like->path);
        for (const std::string& name : names_) {
            const auto coordinate = grids.coordinates.find(name);
            if (coordinate != grids.coordinates.end()) {
                add_new_coordinate(one, name, coordinate->second);
            } else if (grids.arrays.contains(name)) {
                require_numbers(name, "interpolated");
                one.source = {.path = set_.path_of(name)};
                add(name, one);
            } else if (lies_along(name, grids)) {
                leave_out_of_grid(name);
            } else {
                carry(name);
            }
        }
        require_some(!grids.arrays.empty(), "has latitudes along one dimension and longitudes along another");
    }

    /// In place of the coordinate of that name that of the grid which `of` gets.
    void add_new_coordinate(RegridRecipe r, const std::string& name, const std::string& of) {
        r.source = {.path = set_.path_of(of)};
        r.coordinate = last_of(name);
        add(name, Recipe{.make = std::move(r)}, set_, of);
    }

    /// Whether one of its dimensions becomes another.
    [[nodiscard]] bool lies_along(const std::string& name, const SetGrids& grids) const {
        return std::ranges::any_of(member(name).dimensions, [&](const auto& dimension) {
            const auto coordinate = dimension ? set_.beside(name, *dimension) : std::nullopt;
            return coordinate && grids.coordinates.contains(*coordinate);
        });
    }

    /// Bounds, areas and coordinates of two dimensions are of the old grid. Data need both of its dimensions.
    void leave_out_of_grid(const std::string& name) {
        if (is_data(name)) {
            throw unsupported("{}: latitudes or longitudes alone are not interpolated", set_.path_of(name))
                .advising(Action::leave_out, "leaves it out", name);
        }
        divided_.notes.emplace_back(
            fmt::format("{}: it is left out, because it is of the old grid", set_.path_of(name)));
    }

    /// The dimension that is grouped: the one named, or the one with times.
    [[nodiscard]] std::string grouped_dimension(const ReduceRecipe& r) const {
        if (r.axes.size() > 1)
            throw invalid_argument("by: groups are made along one dimension, and {} are named", r.axes.size());
        if (!r.axes.empty()) {
            require_dimension("axes", r.axes.front());
            return r.axes.front();
        }
        std::vector<std::string> found;
        for (const std::string& name : names_) {
            if (!set_.is_coordinate(name)) continue;
            const Coordinate coordinate(set_.open(name));
            const auto& dimension = *member(name).dimensions.front();
            if (coordinate.kind() == Coordinate::Kind::times && std::ranges::count(found, dimension) == 0)
                found.push_back(dimension);
        }
        if (found.size() == 1) return found.front();
        throw invalid_argument("axes: {}; name the dimension that is grouped",
                               found.empty()
                                   ? fmt::format("{}: no coordinate holds times", set_.path())
                                   : fmt::format("{}: {} have times", set_.path(), fmt::join(found, " and ")));
    }

    void make_groups(const ReduceRecipe& r) {
        const std::string dimension = grouped_dimension(r);
        bool any = false;
        for (const std::string& name : names_) {
            if (!member(name).has(dimension)) {
                carry(name);
                continue;
            }
            if (set_.is_coordinate(name)) {
                add_labels(r, name);
                continue;
            }
            if (!is_data(name)) continue;
            require_numbers(name, "reduced");
            any = true;
            ReduceRecipe one = r;
            one.source = {.path = set_.path_of(name)};
            one.axes = {dimension};
            add(name, std::move(one));
        }
        require_some(any, fmt::format("has the dimension {}", dimension));
    }

    /// The coordinate of the groups, in place of that of their indices.
    void add_labels(const ReduceRecipe& r, const std::string& coordinate) {
        LabelsRecipe labels{.source = {.path = set_.path_of(coordinate)}, .by = *r.by};
        const std::string name = label_name(labels);
        const std::string path = coordinate.substr(0, coordinate.rfind('/') + 1) + name;
        if (names_.contains(path) && path != coordinate) {
            throw invalid_argument("{}: it would be the name of the groups, too", set_.path_of(path))
                .advising(Action::leave_out, "leaves it out", path);
        }
        add(path, Recipe{.make = std::move(labels)}, set_, coordinate);
    }

    void make(const CoarsenRecipe& r) {
        const bool one_for_all = is_number_text(r.by);
        std::vector<std::pair<std::string, std::string>> factors;
        for (const auto& item : one_for_all ? decltype(parse_names("")){} : parse_names(r.by)) {
            const std::size_t equals = item.value_or("").find('=');
            if (!item || equals == std::string::npos) {
                throw invalid_argument(
                    "by: {} holds several arrays: expected factors by names of dimensions, such as "
                    "lat=4,lon=2, found '{}'",
                    set_.path(), r.by);
            }
            factors.emplace_back(item->substr(0, item->find_last_not_of(' ', equals - 1) + 1), *item);
            require_dimension("by", factors.back().first);
        }
        bool any = false;
        for (const std::string& name : names_) any = coarsen(r, name, one_for_all, factors) || any;
        require_some(any, "has these dimensions");
    }

    /// Whether it is one of the data.
    bool coarsen(const CoarsenRecipe& r, const std::string& name, bool one_for_all,
                 const std::vector<std::pair<std::string, std::string>>& factors) {
        std::string own;
        for (const auto& [dimension, item] : factors) {
            if (member(name).has(dimension)) own.append(own.empty() ? "" : ",").append(item);
        }
        if (one_for_all && member(name).shape.rank() > 0) own = r.by;
        if (own.empty()) {
            carry(name);
            return false;
        }
        if (is_data(name)) {
            CoarsenRecipe one = r;
            one.source = {.path = set_.path_of(name)};
            one.by = own;
            require_numbers(name, "coarsened");
            add(name, std::move(one));
            return true;
        }
        if (auto one = of_coarse_cells(r, name, own)) {
            add(name, Recipe{.make = *std::move(one)}, set_, name);
        } else {
            divided_.notes.emplace_back(
                fmt::format("{}: it is left out, because it has no counterpart for larger cells", set_.path_of(name)));
        }
        return false;
    }

    /// What becomes of a coordinate, or of what belongs to one. nullopt: it goes. The mean of areas of cells is none of
    /// theirs, and longitudes of two dimensions may meet at a turn.
    [[nodiscard]] std::optional<CoarsenRecipe> of_coarse_cells(const CoarsenRecipe& r, const std::string& name,
                                                               const std::string& by) {
        CoarsenRecipe one{.source = {.path = set_.path_of(name)}, .by = by, .with = "nearest", .raw = r.raw};
        for (const std::string& coordinate : set_.names()) {
            if (bounds_of(coordinate) != name) continue;
            one.by = factor_of(coordinate, by);
            one.of_bounds = r.with != "nearest";
            return !one.of_bounds || cells_touch(coordinate, name, one.by) ? std::optional(one) : std::nullopt;
        }
        if (r.with == "nearest") return one;
        const bool numbers = is_number(member(name).dtype) || member(name).dtype.kind() == Kind::datetime;
        if (!numbers || !set_.is_coordinate(name)) return std::nullopt;
        // It lies in the middle of its cell, or of the points that it is made of, whatever becomes of the data.
        one.with = "mean";
        // The mean of counts of time lies between two of them.
        one.unrounded = is_number(member(name).dtype) && !counts_finely(name);
        const auto bounds = one.unrounded ? bounds_of(name) : std::nullopt;
        if (bounds && names_.contains(*bounds) && cells_touch(name, *bounds, factor_of(name, by))) {
            one.bounds = {.path = set_.path_of(*bounds)};
            one.unrounded = false;
        }
        return one;
    }

    /// The factor along the dimension of a coordinate, of factors for several: "lat=4".
    [[nodiscard]] std::string factor_of(const std::string& coordinate, const std::string& by) const {
        const auto source = set_.open(coordinate);
        return fmt::format("{}={}", last_of(coordinate), parse_factors(by, *source)[0]);
    }

    /// Whether a coordinate's bounds are those of cells of which several become one.
    [[nodiscard]] bool cells_touch(const std::string& coordinate, const std::string& bounds, const std::string& by) {
        const Value* const units = member(bounds).attributes.find("units");
        const Value* const own = member(coordinate).attributes.find("units");
        if (!set_.is_coordinate(coordinate) || !member(bounds).axis(last_of(coordinate)) ||
            (units != nullptr && (own == nullptr || *units != *own)))
            return false;
        auto source = set_.open(bounds);
        const std::string items = selection_ ? selection_->items_for(*source) : std::string();
        if (!items.empty()) source = part_source(std::move(source), items);
        return coarse_bounds(*source, parse_factors(by, *source)[0]) != nullptr;
    }

    /// Whether it counts so small units of time that float64 would lose some, and half a unit is nothing.
    [[nodiscard]] bool counts_finely(const std::string& name) const {
        const Value* const units = member(name).attributes.find("units");
        const std::string text = units != nullptr && units->is_string() ? units->as_string() : std::string();
        return text.starts_with("nano") || text.starts_with("micro");
    }

    [[nodiscard]] std::optional<std::string> bounds_of(const std::string& name) const {
        for (const char* const attribute : {"bounds", "climatology"}) {
            const Value* const text = member(name).attributes.find(attribute);
            if (text != nullptr && text->is_string()) return set_.beside(name, text->as_string());
        }
        return std::nullopt;
    }

    void make(const JoinRecipe& r) {
        std::vector<DataSet> sets;
        for (const Ingredient& part : r.parts) {
            auto set = DataSet::at(part.path);
            if (!set) {
                throw invalid_argument("{}: it is one array, and {} holds several; name one of these: {}", part.path,
                                       set_.path(), set_.path_of(set_.names().front()));
            }
            sets.push_back(*std::move(set));
        }
        JoinRecipe joined = by_coordinates(r);
        if (!joined.new_axis) require_dimension("axis", joined.axis);
        if (joined.new_axis && of_ == Of::set) joined.new_name = stack_scalars(sets);
        bool any = false;
        for (const std::string& name : names_) any = join(joined, sets, name) || any;
        require_some(any, "is joined");
    }

    /// What is stacked along a dimension of length 1 takes its coordinate along: one array, as if it were concatenated.
    /// Several get a new dimension.
    [[nodiscard]] JoinRecipe by_coordinates(JoinRecipe r) const {
        if (!r.new_axis || !r.keep_ones) return r;
        if (of_ == Of::set) {
            r.keep_ones = false;
            return r;
        }
        const DataSet::Member& array = member(recipe_.only.front());
        const int rank = array.shape.rank();
        const int along = in_context([] { return "axis"; }, [&] { return find_dimension(r.axis, {}, rank + 1); });
        if (along == rank || array.shape[along] != 1 || std::cmp_not_equal(array.dimensions.size(), rank)) return r;
        const auto& name = array.dimensions[static_cast<std::size_t>(along)];
        if (!name) return r;
        r.new_axis = false;
        r.axis = *name;
        return r;
    }

    /// Those that run along the new dimension, with their bounds. Of one, the name is that of the dimension.
    std::optional<std::string> stack_scalars(const std::vector<DataSet>& sets) {
        for (const std::string& name : names_) {
            if (is_changing_scalar(sets, name)) scalars_.insert(name);
        }
        const auto name = scalars_.size() == 1 ? std::optional(last_of(*scalars_.begin())) : std::nullopt;
        for (const std::string& scalar : std::set(scalars_)) {
            if (auto bounds = bounds_of(scalar)) scalars_.insert(*std::move(bounds));
        }
        return name;
    }

    /// A coordinate without dimensions that has another value in each part runs along the new dimension.
    [[nodiscard]] bool is_changing_scalar(const std::vector<DataSet>& sets, const std::string& name) const {
        return !is_data(name) && member(name).shape.empty() && !why_not_same(sets, name).empty();
    }

    /// Whether it is one of the data that grow. What belongs to a single array is left out where it does not fit.
    bool join(const JoinRecipe& r, const std::vector<DataSet>& sets, const std::string& name) {
        const bool stacked = of_ == Of::one ? name == recipe_.only.front() : is_data(name);
        const bool grows = r.new_axis ? stacked || scalars_.contains(name) : member(name).has(r.axis);
        const std::string why = grows ? why_not_joined(sets, name) : why_not_same(sets, name);
        if (!why.empty()) {
            if (of_ == Of::set || name == recipe_.only.front())
                throw invalid_argument("{}", why).advising(Action::leave_out, "leaves it out", name);
            divided_.notes.emplace_back(why + ": it is left out");
            return false;
        }
        if (!grows) {
            carry(name);
            return false;
        }
        JoinRecipe one = r;
        if (scalars_.contains(name)) one.axis = "0";
        for (std::size_t i = 0; i < sets.size(); ++i) one.parts[i].path = sets[i].path_of(name);
        add(name, std::move(one));
        return is_data(name);
    }

    /// Bounds without units have those of their coordinate, which may be counted anew in the result.
    [[nodiscard]] std::string why_not_joined(const std::vector<DataSet>& sets, const std::string& name) const {
        for (const DataSet& other : sets) {
            if (!other.has(name))
                return fmt::format("{}: it has no array {}, which {} has", other.path(), name, set_.path());
            for (const std::string& one : names_) {
                if (bounds_of(one) != name || member(name).attributes.find("units") != nullptr) continue;
                for (const char* const attribute : {"units", "calendar"}) {
                    const Value* const here = member(one).attributes.find(attribute);
                    const Value* const there = other.has(one) ? other.member(one).attributes.find(attribute) : nullptr;
                    if ((here == nullptr) == (there == nullptr) && (here == nullptr || *here == *there)) continue;
                    return fmt::format("{}: its bounds are counted by the {} of {}, which are others in {}",
                                       other.path_of(name), attribute, one, set_.path());
                }
            }
        }
        return {};
    }

    /// What is not joined must be the same in all parts, or a part would lie elsewhere than its result says.
    [[nodiscard]] std::string why_not_same(const std::vector<DataSet>& sets, const std::string& name) const {
        const auto first = set_.open(name);
        for (const DataSet& other : sets) {
            if (other.path() == set_.path() || !other.has(name)) continue;
            const auto array = other.open(name);
            if (first->info().shape == array->info().shape && difference(*first, *array, {}, 1).none()) continue;
            return fmt::format("{}: it is not along the dimension that grows, and differs from {}", other.path_of(name),
                               set_.path_of(name));
        }
        return {};
    }

    void make(const CalcRecipe& r) {
        std::vector<std::pair<std::string, DataSet>> others;
        for (const auto& [operand, ingredient] : r.operands) {
            if (ingredient.array || ingredient.path == set_.path()) continue;
            if (auto set = DataSet::at(ingredient.path)) others.emplace_back(operand, *std::move(set));
        }
        std::set<std::string> reduced;
        for (const std::string& name : names_) {
            if (is_data(name)) calculate(r, others, name, reduced);
        }
        require_some(!divided_.arrays.empty(), "holds data");
        for (const std::string& name : names_) {
            if (!is_data(name)) beside_calculated(name, reduced);
        }
    }

    /// `reduced` gets the dimensions of which the expression leaves one index.
    void calculate(const CalcRecipe& r, const std::vector<std::pair<std::string, DataSet>>& others,
                   const std::string& name, std::set<std::string>& reduced) {
        require_numbers(name, "computed with");
        CalcRecipe one = r;
        for (auto& [operand, ingredient] : one.operands) {
            if (!ingredient.array && ingredient.path == set_.path()) ingredient.path = set_.path_of(name);
        }
        for (const auto& [operand, set] : others) {
            if (!set.has(name)) {
                throw invalid_argument("{}: it has no array {}, which {} has", set.path(), name, set_.path())
                    .advising(Action::leave_out, "leaves it out", name);
            }
            const auto found = std::ranges::find(one.operands, operand, &NamedIngredients::value_type::first);
            found->second.path = set.path_of(name);
        }
        add(name, std::move(one));
        if (r.expression.find('(') == std::string::npos) return;
        const OpenedRecipe opened = open_recipe(divided_.arrays.back().recipe);
        const Shape shape = opened.source->info().shape;
        const DimensionNames& names = opened.from.dimension_names;
        for (int d = 0; std::cmp_equal(names.size(), shape.rank()) && d < shape.rank(); ++d) {
            const auto& dimension = names[static_cast<std::size_t>(d)];
            const auto axis = dimension ? member(name).axis(*dimension) : std::nullopt;
            if (axis && shape[d] == 1 && member(name).shape[*axis] > 1) reduced.insert(*dimension);
        }
    }

    /// As with dimensions that `reduce` keeps: a coordinate is the mean, and what else lies along one goes.
    void beside_calculated(const std::string& name, const std::set<std::string>& reduced) {
        ReduceRecipe mean{.source = {.path = set_.path_of(name)}, .with = "mean", .keep_dimensions = true};
        for (const auto& dimension : member(name).dimensions) {
            if (dimension && reduced.contains(*dimension)) mean.axes.push_back(*dimension);
        }
        if (mean.axes.empty()) return carry(name);
        if (set_.is_coordinate(name) && is_number(member(name).dtype))
            add(name, Recipe{.make = std::move(mean)}, set_, name);
    }

    void make(const LabelsRecipe& /*recipe*/) { throw unsupported("labels are of one coordinate"); }
    void make(const PyramidRecipe& /*recipe*/) {
        throw unsupported("{}: it holds several arrays, and a pyramid is of one: name it", set_.path());
    }

    const Recipe& recipe_;
    DataSet set_;
    std::set<std::string> names_;
    Of of_;
    View carried_ = {};
    std::optional<SharedSelection> selection_;
    std::set<std::string> scalars_;  ///< coordinates that are stacked
    DividedRecipe divided_{};
};

/// The path of the data set that a recipe is over; nullopt for single arrays.
std::optional<std::string> data_set_of(const Recipe& recipe) {
    std::optional<std::string> found;
    if (const auto* const join = std::get_if<JoinRecipe>(&recipe.make)) {
        // The others are what the first one is, or refused: there may be thousands.
        const bool is_set = !join->parts.empty() && !join->parts.front().array && DataSet::at(join->parts.front().path);
        return is_set ? std::optional(join->parts.front().path) : std::nullopt;
    }
    const auto* const regrid = std::get_if<RegridRecipe>(&recipe.make);
    for_each_ingredient(recipe, [&](const Ingredient& ingredient) {
        const bool is_grid = regrid != nullptr && &ingredient != &regrid->source;
        if (found || is_grid || ingredient.array || ingredient.path.empty()) return;
        if (std::ranges::count(grouping_words(), ingredient.path) > 0) return;
        if (DataSet::at(ingredient.path)) found = ingredient.path;
    });
    return found;
}

}  // namespace

std::optional<DividedRecipe> divided(const Recipe& recipe) {
    const std::optional<std::string> path = data_set_of(recipe);
    if (path) return Divider(recipe, *DataSet::at(*path)).divide();
    const char* const given = !recipe.only.empty() ? "only" : !recipe.leave_out.empty() ? "except" : nullptr;
    if (given != nullptr) throw invalid_argument("{}: only of a group, or of a file of several arrays", given);
    return std::nullopt;
}

std::optional<DividedRecipe> divided_for(const Recipe& recipe, const std::string& destination) {
    if (auto arrays = arrays_of_table(recipe)) return arrays;
    const auto* const copy = std::get_if<CopyRecipe>(&recipe.make);
    const bool copies = copy != nullptr && copy->view.order.empty();  // documents and all
    auto whole = !copies ? divided(recipe) : std::nullopt;
    return whole ? std::move(whole) : divided_with_coordinates(recipe, destination);
}

std::function<bool(const std::string& path)> exclusion(const Recipe& recipe) {
    const auto* const copy = std::get_if<CopyRecipe>(&recipe.make);
    if (copy == nullptr || (recipe.only.empty() && recipe.leave_out.empty())) return nullptr;
    const auto set = copy->source.path.empty() ? std::nullopt : DataSet::at(copy->source.path);
    if (!set)
        throw invalid_argument("{}: only of a group, or of a file of several arrays",
                               recipe.only.empty() ? "except" : "only");
    std::set<std::string> out(set->names().begin(), set->names().end());
    for (const std::string& name : chosen(*set, recipe)) out.erase(name);
    return [out = std::move(out)](const std::string& path) { return out.contains(path); };
}

std::optional<DividedRecipe> divided_with_coordinates(const Recipe& recipe, const std::string& destination) {
    const ArrayFileFormat* const format = named_array_file_format(destination);
    if (format == nullptr || format->groups == nullptr || split_array_path(destination).member) return std::nullopt;
    return divided_with_coordinates(recipe);
}

std::optional<DividedRecipe> divided_with_coordinates(const Recipe& recipe) {
    std::optional<LiftedRecipe> lifted = LiftedRecipe::of(recipe);
    if (!lifted) return std::nullopt;
    const std::string& name = lifted->name;
    DividedRecipe made = Divider(lifted->recipe, lifted->set, Divider::Of::one).divide();
    // A file of one array has it at the top, with the attributes of its group.
    const std::size_t slash = name.rfind('/');
    const std::string group = name.substr(0, slash == std::string::npos ? 0 : slash);
    std::erase_if(made.groups, [&](const ArrayFileGroup& one) { return one.name != group; });
    for (ArrayFileGroup& one : made.groups) one.name.clear();
    for (auto& one : made.arrays) one.path = lifted->mixed && one.path == name ? "data" : last_of(one.path);
    return made;
}

}  // namespace tessera
