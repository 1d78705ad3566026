#include <tessera/recipe.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/calc.h>
#include <tessera/chunk_index.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/elements_at.h>
#include <tessera/error_text.h>
#include <tessera/file_attributes.h>
#include <tessera/indexed_reduction.h>
#include <tessera/joined_meaning.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>
#include <tessera/numbers.h>
#include <tessera/open_files.h>
#include <tessera/part_source.h>
#include <tessera/place.h>
#include <tessera/reduce.h>
#include <tessera/regrid.h>
#include <tessera/rolling.h>
#include <tessera/secrets.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>
#include <tessera/transposed.h>
#include <tessera/weights.h>
#include <tessera/where.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calc_reductions.h"
#include "calc_times.h"
#include "coarse_bounds.h"
#include "constant_elsewhere.h"
#include "converted_source.h"
#include "coordinate_table.h"
#include "group_labels.h"
#include "set_grids.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

const std::string& stored_path(const Ingredient& ingredient) {
    if (!ingredient.part_of.empty()) {
        throw invalid_argument(
            "a part of {}, which has no path of its own: a selection (sel) names the part of all arrays, or copy it "
            "first",
            ingredient.part_of);
    }
    if (ingredient.path.empty())
        throw invalid_argument("an array in memory, which other processes do not see: save it first");
    return ingredient.path;
}

/// Sets `recipe` to an empty one of this name. False if there is none.
template <std::size_t N = 0>
bool choose(std::string_view name, Recipe& recipe, std::string& names) {
    using Make = decltype(recipe.make);
    if constexpr (N == std::variant_size_v<Make>) {
        return false;
    } else {
        using Made = std::variant_alternative_t<N, Make>;
        names.append(N == 0 ? "" : ", ").append(Made::name);
        if (name != Made::name) return choose<N + 1>(name, recipe, names);
        recipe.make.template emplace<N>();
        return true;
    }
}

/// A recipe of this version that decodes says so, because earlier ones computed with codes.
constexpr std::string_view decoded_member = "decoded";

template <class Made>
concept Decodes = requires(Made made) {
    made.raw;
};

/// What a recipe without decoded_member meant.
void take_as_earlier(Recipe& recipe) {
    std::visit(
        [](auto& made) {
            if constexpr (Decodes<decltype(made)>) made.raw = true;
            if constexpr (requires { made.keep_missing; }) made.keep_missing = true;
            if constexpr (requires { made.skip_nan; }) made.keep_missing = !made.skip_nan;
        },
        recipe.make);
}

/// Before 0.1 the georeference of a pyramid was an object.
Value with_flat_geo(Value value) {
    const Value* geo = value.find("geo");
    if (geo == nullptr || !geo->is_object()) return value;
    const Value members = *geo;
    value.set("geo", true);
    for (const auto& [name, member] : members.as_object()) value.set(name, member);
    return value;
}

// ---- Opening

/// The conversion that a recipe asks for.
class CastAsked {
public:
    explicit CastAsked(const Recipe& recipe) {
        if (!recipe.dtype) {
            if (recipe.cast) throw invalid_argument("cast: only with `dtype`");
            return;
        }
        dtype_ = in_context([] { return "dtype"; }, [&] { return DType::parse(*recipe.dtype); });
        if (recipe.cast) rule_ = in_context([] { return "cast"; }, [&] { return parse_cast(*recipe.cast); });
    }
    /// To what holds all elements.
    explicit CastAsked(const DType& common) : dtype_(common), common_(true) {}
    [[nodiscard]] std::unique_ptr<ArraySource> of(std::unique_ptr<ArraySource> source) const {
        if (!dtype_ || source->info().dtype == *dtype_) return source;
        if (const auto times = time_type_of(source->info().dtype); times && common_) {
            Value attributes = source->attribute_values();
            auto convert = [from = *times, to = dtype_->time_unit()](const std::byte* in, std::byte* out, auto n) {
                convert_times(from, to, in, out, n);
            };
            return std::make_unique<ConvertedSource>(std::move(source), *dtype_, std::move(attributes), convert);
        }
        return std::make_unique<CastSource>(std::move(source), *dtype_, rule_);
    }

private:
    std::optional<DType> dtype_;
    bool common_ = false;
    Cast rule_ = Cast::same_kind;
};

/// That of decoded parts: the finer unit of times, or what NumPy makes of two numbers.
DType holding_both(const DType& a, const DType& b) {
    if (a.kind() == Kind::datetime && b.kind() == Kind::datetime) {
        return a.time_unit().base > b.time_unit().base ? a : native_dtype(b);
    }
    return is_number(a) && is_number(b) ? promoted(a, native_dtype(b)) : a;
}

bool is_word(const Ingredient& by) {
    return by.array == nullptr && std::ranges::count(grouping_words(), by.path) > 0;
}

std::unique_ptr<ArraySource> opened_ingredient(const Ingredient& ingredient, const OpenIngredient& open) {
    return ingredient.array ? shared_source(ingredient.array) : open(ingredient.path);
}

/// Opens one recipe's ingredients.
class Kitchen {
public:
    Kitchen(const Recipe& recipe, const OpenIngredient& open, const IoOptions& io)
        : recipe_(recipe), open_(open), io_(io) {}

    OpenedRecipe open() {
        std::visit([&](const auto& made) { make(made); }, recipe_.make);
        opened_.from.paths = paths_of(recipe_);
        return std::move(opened_);
    }

private:
    [[nodiscard]] std::unique_ptr<ArraySource> take(const Ingredient& ingredient) const {
        auto array = opened_ingredient(ingredient, open_);
        const bool whole = recipe_.view() != nullptr || !recipe_.selection;
        return whole ? std::move(array) : part_source(std::move(array), *recipe_.selection);
    }
    /// As what its elements stand for, unless the codes are wanted.
    [[nodiscard]] std::unique_ptr<ArraySource> take(const Ingredient& ingredient, bool raw) const {
        return raw ? take(ingredient) : decoded_source(take(ingredient));
    }

    void make(const CopyRecipe& r) { opened_.source = seen(take(r.source)); }

    void make(const CalcRecipe& r) {
        const bool lossy = recipe_.dtype && DType::parse(*recipe_.dtype).kind() == Kind::real;
        const std::vector<CalcOperand> kept = open_operands(r, open_, lossy, recipe_.selection);
        for (const CalcOperand& operand : kept) opened_.kept.push_back(operand.array);
        auto source = noted_calc_source(r.expression, kept, computing_memory(io_), opened_.notes);
        opened_.from = calculated_from(kept, *source);
        source = constant_elsewhere(std::move(source), r.expression, kept, r.raw, io_);
        opened_.source = converted(std::move(source));
    }

    void make(const ReduceRecipe& r) {
        auto opened = opened_ingredient(r.source, open_);
        std::optional<Selection> part;
        auto index = r.no_index ? nullptr : ChunkIndex::there(r.source.array ? *r.source.array : *opened, r.raw);
        std::unique_ptr<ArraySource> array = taken(std::move(opened), index, part);
        if (!r.raw) array = decoded_source(std::move(array));
        const ArraySource& like = *array;
        if (r.rolling) return roll(r, std::move(array));
        if (r.min_count || r.centred)
            throw invalid_argument("{}: only with `rolling`", r.centred ? "centred" : "min_count");
        if (r.skip_nan && r.keep_missing) throw invalid_argument("keep_missing: not with skip_nan");
        ReduceOptions options{.with = in_context([] { return "with"; }, [&] { return parse_reduction(r.with); }),
                              .percent = parse_percent(r.with),
                              .keep_dimensions = r.keep_dimensions,
                              .skip_nan = !r.keep_missing,
                              .memory = computing_memory(io_)};
        in_context([] { return "axes"; },
                   [&] {
                       for (const std::string& axis : r.axes) options.axes.push_back(find_dimension(axis, like));
                   });
        if (r.by) options.groups = groups(r, like, options.axes);
        if (r.weights)
            options.weights = in_context([] { return "weights"; }, [&] { return weights(*r.weights, like); });
        opened_.from = reduced_from(like, options);
        opened_.source = converted(reduce_by_index(std::move(array), options, std::move(index), part));
    }

    /// The part that is computed with. An index of the array is given up where the part is none of what is stored.
    [[nodiscard]] std::unique_ptr<ArraySource> taken(std::unique_ptr<ArraySource> opened,
                                                     std::shared_ptr<const ChunkIndex>& index,
                                                     std::optional<Selection>& part) const {
        if (!recipe_.selection) return opened;
        const ArraySource* const stored = opened.get();
        auto taken = part_source(std::move(opened), *recipe_.selection);
        if (index != nullptr && &whole_of(*taken) == stored) {
            part = parse_selection(*recipe_.selection, *stored);
        } else {
            index = nullptr;
        }
        return taken;
    }

    /// `reduce` of windows, which keep all dimensions.
    void roll(const ReduceRecipe& r, std::unique_ptr<ArraySource> array) {
        if (!r.axes.empty() || r.by || r.weights || r.keep_dimensions || r.keep_missing) {
            throw invalid_argument("rolling: not with axes, by, weights, keep_dimensions and keep_missing");
        }
        const ArraySource& like = *array;
        RollingOptions options{.with = in_context([] { return "with"; }, [&] { return parse_reduction(r.with); }),
                               .percent = parse_percent(r.with),
                               .least = r.min_count,
                               .centred = r.centred,
                               .memory = computing_memory(io_)};
        in_context([] { return "rolling"; },
                   [&] {
                       const std::size_t equals = r.rolling->rfind('=');
                       if (equals == std::string::npos)
                           throw invalid_argument("expected NAME=LENGTH, such as time=30, found '{}'", *r.rolling);
                       options.axis = find_dimension(r.rolling->substr(0, equals), like);
                       read_member(Value(r.rolling->substr(equals + 1)), options.length);
                   });
        opened_.from = coarsened_from(like, like.info().shape);
        opened_.source = converted(rolling_source(std::move(array), options));
    }

    [[nodiscard]] std::shared_ptr<const ArraySource> weights(const WeightsIngredient& given,
                                                             const ArraySource& like) const {
        return given.is_name() ? weights_named(like, given.path) : weights_from(like, take(given, false));
    }

    std::shared_ptr<const Grouping> groups(const ReduceRecipe& r, const ArraySource& like,
                                           const std::vector<int>& axes) const {
        const auto by = [](const auto& body) { return in_context([] { return "by"; }, body); };
        if (axes.size() > 1)
            throw invalid_argument("by: groups are made along one dimension, and {} are named", axes.size());
        if (r.keep_dimensions) {
            throw invalid_argument("keep_dimensions: the dimension stays, with one index for each group");
        }
        if (is_word(*r.by)) {
            return by([&] { return group_by_time(like, axes.empty() ? time_dimension(like) : axes[0], r.by->path); });
        }
        auto labels = by([&] { return take(*r.by); });
        if (axes.empty() && like.info().shape.rank() != 1) {
            throw invalid_argument("axes: expected the one of {} dimensions that the labels are of",
                                   like.info().shape.rank());
        }
        return by([&] { return group_by_labels(like, axes.empty() ? 0 : axes[0], std::move(labels)); });
    }

    void make(const CoarsenRecipe& r) {
        std::unique_ptr<ArraySource> array = take(r.source, r.raw || r.as_stored || r.of_bounds);
        if (r.unrounded && array->info().dtype.kind() != Kind::real) {
            array = std::make_unique<CastSource>(std::move(array), DType::of<double>(), Cast::same_kind);
        }
        const ArraySource& like = *array;
        const Coarsening with = in_context([] { return "with"; }, [&] { return parse_coarsening(r.with); });
        const Shape by = in_context([] { return "by"; }, [&] { return parse_factors(r.by, like); });
        if (r.of_bounds || r.bounds) return coarsen_cells(r, std::move(array), by[0]);
        auto source = r.as_stored && !r.raw ? coarsened_as_stored(std::move(array), by, with, !r.keep_missing)
                                            : coarsen_source(std::move(array), by, with, !r.keep_missing);
        opened_.from = coarsened_from(like, source->info().shape);
        opened_.source = converted(std::move(source));
    }

    void coarsen_cells(const CoarsenRecipe& r, std::unique_ptr<ArraySource> array, std::int64_t by) {
        const std::shared_ptr<const ArraySource> of = std::move(array);
        opened_.source = r.bounds ? middles_of(*take(*r.bounds), by, *of) : coarse_bounds(*of, by);
        if (opened_.source == nullptr) throw unsupported("{}: its cells do not touch", of->name());
        opened_.kept.push_back(of);
        opened_.from = coarsened_from(*of, opened_.source->info().shape);
    }

    void make(const RegridRecipe& r) {
        std::unique_ptr<ArraySource> array = take(r.source, false);
        const ArraySource& like = *array;
        const auto grid = r.like ? grid_of(*r.like) : nullptr;
        const Regridding method = in_context([] { return "method"; }, [&] { return parse_regridding(r.method); });
        Regridded made =
            regridded(std::move(array), {.like = grid.get(), .ranges = r.to}, method, computing_memory(io_));
        if (r.coordinate) return take_coordinate(std::move(made), *r.coordinate, like);
        opened_.coordinates = std::move(made.coordinates);
        opened_.from = regridded_from(like);
        opened_.source = converted(std::move(made.source));
    }

    /// A selection is of the array alone.
    [[nodiscard]] std::unique_ptr<ArraySource> grid_of(const Ingredient& like) const {
        return like.array ? shared_source(like.array) : open_(grid_at(like.path));
    }

    /// `like` is what was interpolated.
    void take_coordinate(Regridded made, const std::string& dimension, const ArraySource& like) {
        for (const auto& [name, values] : made.coordinates) {
            if (name == dimension) opened_.source = shared_source(values);
        }
        if (opened_.source == nullptr) throw invalid_argument("coordinate: {} has no new values", dimension);
        opened_.kept.emplace_back(std::move(made.source));
        opened_.from = {.like = &like, .dimension_names = {dimension}, .named = true};
    }

    void make(const JoinRecipe& r) {
        std::vector<std::string> names;
        const OpenIngredient open_stored = opening_parts(r.parts, names);
        if (names.empty()) throw invalid_argument("no arrays are given");
        // Outlive this call: parts are opened when they are read, by any thread.
        const bool decode = r.view.cf == "decode";
        const OpenIngredient open = decode ? opening_decoded(open_stored) : open_stored;
        const std::shared_ptr<const ArraySource> stored = open_stored(names.front());
        const std::shared_ptr<const ArraySource> of = decode ? decode_cf(shared_source(stored)) : stored;
        const auto meaning =
            std::make_shared<const JoinedMeaning>(*of, Advice{Action::decode_cf, "decodes each of them before", {}});
        CastAsked cast(recipe_);
        const JoinOptions options = join_options(r, *of);
        if (decode || meaning->has_place())
            survey(names, open, *meaning, options, decode && !recipe_.dtype ? &cast : nullptr);
        const auto open_part = [open, meaning, cast](const std::string& path) {
            return cast.of(meaning->joined(open(path)));
        };
        const std::shared_ptr<const ArraySource> first = cast.of(shared_source(of));
        opened_.kept = {stored, first};
        opened_.from = joined_from(*first, options);
        if (decode) opened_.from.like = stored.get();
        if (r.new_name) name_new(r, options);
        auto joined = join_sources(std::move(names), open_part, options);
        Value attributes = attributes_of_joined(*first, joined->info().shape, options);
        if (r.new_name) erase_coordinate(attributes, *r.new_name);
        opened_.source = seen(shared_source(std::move(joined), std::move(attributes)));
    }

    void name_new(const JoinRecipe& r, const JoinOptions& options) {
        DimensionNames& names = opened_.from.dimension_names;
        if (names.empty() && options.axis == 0) names.resize(1);
        const auto axis = static_cast<std::size_t>(options.axis);
        if (!options.new_axis || axis >= names.size()) return;
        names[axis] = r.new_name;
        opened_.from.named = true;
    }

    /// Opens parts by `names`: by their paths, and those in memory by names of their own.
    [[nodiscard]] OpenIngredient opening_parts(const std::vector<Ingredient>& parts,
                                               std::vector<std::string>& names) const {
        std::map<std::string, std::shared_ptr<const ArraySource>> in_memory;
        for (const Ingredient& part : parts) {
            const bool stored = part.array == nullptr || !part.path.empty();
            names.push_back(stored ? part.path : fmt::format("part {}, in memory", names.size() + 1));
            if (!stored) in_memory.emplace(names.back(), part.array);
        }
        if (in_memory.empty()) return open_;
        return [open = open_, in_memory](const std::string& name) -> std::unique_ptr<ArraySource> {
            const auto found = in_memory.find(name);
            return found == in_memory.end() ? open(name) : shared_source(found->second);
        };
    }

    [[nodiscard]] static OpenIngredient opening_decoded(const OpenIngredient& open) {
        return [open](const std::string& path) { return decode_cf(open(path)); };
    }

    /// Looks at all parts before any is read: at where they lie, and for `cast` at a dtype that holds all decoded ones.
    static void survey(const std::vector<std::string>& names, const OpenIngredient& open, const JoinedMeaning& meaning,
                       const JoinOptions& options, CastAsked* cast) {
        std::optional<DType> common;
        std::int64_t begin = 0;
        for (const std::string& name : names) {
            const auto part = open(name);
            const ArrayInfo info = part->info();
            meaning.require_place(*part, options.new_axis ? -1 : options.axis, begin);
            if (options.axis < info.shape.rank()) begin += info.shape[options.axis];
            common = common ? holding_both(*common, info.dtype) : native_dtype(info.dtype);
        }
        if (cast != nullptr) *cast = CastAsked(*common);
    }

    void make(const LabelsRecipe& r) {
        const std::shared_ptr<const ArraySource> coordinate = take(r.source);
        const std::string name = label_name(r);
        const auto grouping =
            in_context([] { return "by"; },
                       [&] {
                           return is_word(r.by) ? group_by_time(*coordinate, 0, r.by.path)
                                                : group_by_labels(*coordinate, 0, opened_ingredient(r.by, open_));
                       });
        opened_.source = labels_source(*grouping, *coordinate, name);
        opened_.kept.push_back(coordinate);
        opened_.from = {.like = coordinate.get(), .dimension_names = {name}, .named = true};
    }

    void make(const PyramidRecipe& /*recipe*/) {
        throw unsupported("a pyramid is several arrays, and no source of another recipe");
    }

    [[nodiscard]] std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source) const {
        return tessera::converted(std::move(source), recipe_);
    }
    [[nodiscard]] std::unique_ptr<ArraySource> seen(std::unique_ptr<ArraySource> source) {
        return viewed(std::move(source), recipe_, open_, io_, opened_.notes);
    }

    const Recipe& recipe_;
    const OpenIngredient& open_;
    const IoOptions& io_;
    OpenedRecipe opened_{};
};

}  // namespace

Value member_value(const Ingredient& ingredient) {
    return stored_path(ingredient);
}
Value member_value(const std::vector<Ingredient>& parts) {
    Value list = Value::array();
    for (const Ingredient& part : parts) list.push_back(stored_path(part));
    return list;
}
Value member_value(const NamedIngredients& operands) {
    Value all = Value::object();
    for (const auto& [name, operand] : operands) all.set(name, stored_path(operand));
    return all;
}

void read_member(const Value& value, Ingredient& ingredient) {
    ingredient = {.path = value.as_string()};
}
void read_member(const Value& value, std::vector<Ingredient>& parts) {
    parts.clear();
    for (const Value& part : value.as_array()) parts.push_back({.path = part.as_string()});
}
void read_member(const Value& value, NamedIngredients& operands) {
    operands.clear();
    for (const auto& [name, operand] : value.as_object()) operands.push_back({name, {.path = operand.as_string()}});
}

Recipe recipe_named(std::string_view name) {
    Recipe recipe;
    std::string names;
    if (!choose(name, recipe, names)) throw invalid_argument("expected one of {}, found {}", names, name);
    return recipe;
}

Value recipe_value(const Recipe& recipe) {
    Value value = std::visit(
        [](const auto& made) {
            return Value{{"do", std::decay_t<decltype(made)>::name}};
        },
        recipe.make);
    visit_options(recipe, [&](const Option& option, const auto& member) {
        Value written = member_value(member);
        if (is_given(member) && !written.is_null()) value.set(option.name, std::move(written));
    });
    std::visit(
        [&](const auto& made) {
            if constexpr (Decodes<decltype(made)>) {
                if (!made.raw) value.set(decoded_member, true);
            }
        },
        recipe.make);
    return value;
}

Recipe parse_recipe(const Value& given) {
    const Value value = with_flat_geo(given);
    Recipe recipe = recipe_named(value.at("do").as_string());
    std::vector<std::string_view> known{"do", decoded_member};
    visit_options(recipe, [&](const Option& option, auto& member) {
        known.push_back(option.name);
        const Value* found = value.find(option.name);
        if (found == nullptr || found->is_null()) return;
        in_context([&] { return fmt::format("\"{}\"", option.name); }, [&] { read_member(*found, member); });
    });
    for (const auto& [name, member] : value.as_object()) {
        if (std::ranges::count(known, name) == 0) throw corrupt("\"{}\": no member of {}", name, value.at("do").dump());
    }
    if (value.find(decoded_member) == nullptr && value.find(raw_option.name) == nullptr) take_as_earlier(recipe);
    return recipe;
}

std::vector<std::string> paths_of(const Recipe& recipe) {
    std::vector<std::string> paths;
    for_each_ingredient(recipe, [&](const Ingredient& ingredient) {
        const std::string& path = ingredient.part_of.empty() ? ingredient.path : ingredient.part_of;
        if (path.empty() || is_word(ingredient)) return;
        if (std::ranges::count(paths, path) == 0) paths.push_back(path);
    });
    return paths;
}

Recipe absolute_recipe(Recipe recipe) {
    for_each_ingredient(recipe, [](Ingredient& ingredient) {
        const ArrayPath file = split_array_path(ingredient.path);
        if (ingredient.path.empty() || is_word(ingredient) || !is_local(file.path)) return;
        ingredient.path = fs::absolute(file.path).lexically_normal().string();
        if (file.member) ingredient.path += "::" + *file.member;
    });
    return recipe;
}

JoinOptions join_options(const JoinRecipe& r, const ArraySource& first) {
    const Shape shape = first.info().shape;
    const int rank = shape.rank() + (r.new_axis ? 1 : 0);
    if (rank == 0) throw invalid_argument("{}: it has no dimension to join along", first.name());
    // A new dimension has no name yet.
    const DimensionNames names = r.new_axis ? DimensionNames() : dimension_names_of(first);
    const int along = in_context([] { return "axis"; }, [&] { return find_dimension(r.axis, names, rank); });
    const bool is_one = along < shape.rank() && shape[along] == 1;
    return {.axis = along,
            .new_axis = r.new_axis && !(r.keep_ones && is_one),
            .most_open = static_cast<int>(share_of_open_files(8, 16, 1000))};
}

OpenIngredient open_by_path(const Recipe& recipe) {
    return [recipe](const std::string& path) {
        return at_located(path,
                          [&](const Located& at) { return open_readable_source(at, reading_options(recipe, at)); });
    };
}

std::vector<CalcOperand> open_operands(const CalcRecipe& recipe, const OpenIngredient& open, bool lossy,
                                       const std::optional<std::string>& selection) {
    std::vector<CalcOperand> operands;
    std::optional<SharedSelection> shared;
    if (selection && recipe.operands.size() > 1) shared.emplace(*selection);
    for (const auto& [name, operand] : recipe.operands) {
        auto array = opened_ingredient(operand, open);
        const std::string items = shared ? shared->items_for(*array) : selection.value_or("");
        if (!items.empty()) array = part_source(std::move(array), items);
        if (!recipe.raw) array = marks_as_nan(decoded_source(std::move(array), Times::dates), lossy);
        operands.push_back({name, std::move(array)});
    }
    if (shared) shared->require_found();
    return operands;
}

std::string label_name(const LabelsRecipe& recipe) {
    if (is_word(recipe.by)) return std::string(grouping_name(recipe.by.path));
    const ArrayPath lies = split_array_path(recipe.by.path);
    return lies.member ? lies.member->substr(lies.member->rfind('/') + 1) : lies.path.stem().string();
}

OpenedRecipe open_recipe(const Recipe& recipe, const OpenIngredient& open, const IoOptions& io) {
    return Kitchen(recipe, open, io).open();
}

OpenedRecipe open_recipe(const Recipe& recipe, const IoOptions& io) {
    return open_recipe(recipe, open_by_path(recipe), io);
}

bool becomes_text(const Recipe& recipe, const std::string& destination) {
    const auto* const format = named_array_file_format(destination);
    return format != nullptr && format->name == "csv" && recipe.view() == nullptr && !recipe.dtype;
}

void show_as_text(OpenedRecipe& opened) {
    const std::shared_ptr<const ArraySource> computed = std::move(opened.source);
    opened.kept.push_back(computed);
    opened.source = text_source(shared_source(computed, attributes_in_file(*computed, opened.from)));
}

void note_marks(OpenedRecipe& opened, const std::optional<std::string>& destination) {
    const auto* const format = destination ? named_array_file_format(*destination) : nullptr;
    const bool keeps = destination && (format == nullptr || format->keeps_attributes || format->recognise == nullptr);
    if (keeps || !opened.source->info().marks_missing) return;
    opened.notes.emplace_back(fmt::format("{}: missing elements are {} there, and nothing says so",
                                          destination.value_or("the result"), std::numeric_limits<std::int64_t>::min()),
                              std::vector<Advice>{{Action::dtype, "makes them NaN", "f8"}});
}

std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> array, const Recipe& recipe) {
    return CastAsked(recipe).of(std::move(array));
}

namespace {

/// Says that elements are copied without what says what they stand for, unless they are decoded.
void note_codes(const ArraySource& array, bool decode, std::vector<Note>& notes) {
    const Meaning meaning = meaning_of(array);
    const bool encoded = meaning.is_encoded(array.info().dtype);
    if (!encoded && !meaning.time) return;
    const bool decodes = meaning.time ? meaning.has_datetimes() : !meaning.marks_missing();
    if (decodes && decode) return;
    std::vector<Advice> way_out;
    if (decodes) way_out.push_back({Action::decode_cf, "copies what they stand for", {}});
    notes.emplace_back(
        fmt::format("{}: the stored codes are copied, without the attributes that say what they stand for",
                    array.name()),
        std::move(way_out));
}

}  // namespace

std::unique_ptr<ArraySource> viewed(std::unique_ptr<ArraySource> array, const Recipe& recipe,
                                    const OpenIngredient& open, const IoOptions& io, std::vector<Note>& notes) {
    const CastAsked cast(recipe);
    const View* const view = recipe.view();
    if (view == nullptr) return cast.of(std::move(array));
    // First, because it is about what is stored, of which there may be an index.
    if (view->where) array = rows_or_elements_where(std::move(array), *view->where, io);
    if (view->elements == Elements::text && !view->coordinates) array = text_source(std::move(array));
    if (view->elements == Elements::bare_codes && view->cf != "encode") note_codes(*array, view->cf == "decode", notes);
    if (view->elements == Elements::values && !meaning_of(*array).marks_missing()) array = decoded(std::move(array));
    if (reorders(*array, view->order)) array = transposed_source(std::move(array), view->order);
    if (view->points) array = elements_at(std::move(array), opened_ingredient(*view->points, open));
    std::string why;
    if (view->cf == "decode") array = decode_cf(std::move(array), &why);
    if (view->cf == "encode") array = encode_cf(std::move(array));
    if (!why.empty()) notes.emplace_back(std::exchange(why, {}));
    if (view->coordinates && recipe.selection) array = part_source(std::move(array), *recipe.selection);
    if (view->coordinates) array = coordinate_table(std::move(array));
    array = cast.of(std::move(array));
    if (const auto rounding = rounding_of(*view)) array = rounded(std::move(array), *rounding, &why, io);
    if (!why.empty()) notes.emplace_back(std::move(why));
    return array;
}

ArrayFileOptions reading_options(const Recipe& recipe, const Located& at) {
    const ArrayFileFormat* format = at.kind == PathKind::nothing ? named_array_file_format(at.path) : at.format;
    return reading_options(recipe, format != nullptr && format->recognise == nullptr, at.path);
}

ArrayFileOptions reading_options(const Recipe& recipe, bool text, std::string_view name) {
    ArrayFileOptions options{.reverse_dims = recipe.reverse_dims};
    if (recipe.view() == nullptr) return options;
    if (!text && recipe.missing) throw invalid_argument("missing: only for .csv, but found {}", name);
    if (!text && recipe.header) throw invalid_argument("header: only for .csv, but found {}", name);
    options.missing = recipe.missing;
    options.header = recipe.header;
    if (text && recipe.dtype) {
        options.dtype = in_context([] { return "dtype"; }, [&] { return DType::parse(*recipe.dtype); });
    }
    return options;
}

std::optional<Rounding> rounding_of(const View& view) {
    if (view.keep_bits && view.max_error) throw invalid_argument("max_error: choose it or `keep_bits`");
    const std::string_view option = view.max_error ? "max_error" : "keep_bits";
    auto rounding =
        in_context([&] { return option; },
                   [&] { return Rounding::parse(view.keep_bits.value_or(""), view.max_error.value_or("")); });
    if (rounding) {
        if (view.fills.is_array()) rounding->fills = view.fills.as_array();
        rounding->fill_is_missing = view.fill_is_missing;
    }
    return rounding;
}

const View* Recipe::view() const {
    if (const auto* copy = std::get_if<CopyRecipe>(&make)) return &copy->view;
    const auto* join = std::get_if<JoinRecipe>(&make);
    return join == nullptr ? nullptr : &join->view;
}

View* Recipe::view() {
    return const_cast<View*>(std::as_const(*this).view());
}

std::string factors_text(const Shape& factors) {
    return fmt::format("{}", fmt::join(factors.begin(), factors.end(), ","));
}

PyramidOptions pyramid_options(const PyramidRecipe& r) {
    const auto about = [](const char* field, const auto& body) { return in_context([&] { return field; }, body); };
    PyramidOptions options{.name = fs::path(without_secrets(r.source.path)).stem().string(),
                           .axes = r.axes,
                           .by = about("by", [&] { return parse_shape(r.by); }),
                           .with = about("with", [&] { return parse_coarsening(r.with); }),
                           .keep_missing = r.keep_missing,
                           .raw = r.raw,
                           .scale = r.scale,
                           .units = r.units};
    constexpr std::int64_t most_levels = 30;
    if (r.levels && (*r.levels < 1 || *r.levels > most_levels)) {
        throw invalid_argument("levels: expected a whole number from 1 to {}, found '{}'", most_levels, *r.levels);
    }
    if (r.levels) options.levels = static_cast<int>(*r.levels);
    if (std::ranges::any_of(r.scale, [](double v) { return !(v > 0); })) {
        throw invalid_argument("scale: expected numbers above 0, found {}", member_value(r.scale).dump());
    }
    if (r.ome) options.ome = about("ome", [&] { return ome_version_named(*r.ome); });
    if (!r.geo && (r.crs || !r.transform.empty())) {
        throw invalid_argument("{}: only with geo", r.crs ? "crs" : "transform");
    }
    if (r.geo) options.geo = GeoWishes{.transform = std::nullopt, .crs = r.crs};
    if (!r.transform.empty()) {
        std::array<double, 6> transform{};
        if (r.transform.size() != transform.size() ||
            !std::ranges::all_of(r.transform, [](double v) { return std::isfinite(v); })) {
            throw invalid_argument("transform: expected six numbers a,b,c,d,e,f, found {}",
                                   member_value(r.transform).dump());
        }
        std::ranges::copy(r.transform, transform.begin());
        options.geo->transform = transform;
    }
    return options;
}

}  // namespace tessera
