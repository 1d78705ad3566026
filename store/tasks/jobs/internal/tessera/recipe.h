// Recipes: what is to be made of which arrays, as one value. The program, the Python module and the files of jobs fill
// it in and hold it; only this file's functions open what it describes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/calc.h>
#include <tessera/error.h>
#include <tessera/locate.h>
#include <tessera/option.h>
#include <tessera/parallel.h>
#include <tessera/pyramid.h>
#include <tessera/rounding.h>
#include <tessera/value.h>
#include <tessera/weights.h>
#include <tessera/write_computed.h>

namespace tessera {

/// An array that a recipe takes: the path where it lies, or an open one that lies nowhere (a pipe, memory).
struct Ingredient {
    std::string path = {};
    std::shared_ptr<const ArraySource> array = nullptr;
    std::string part_of = {};  ///< where the whole array lies, if `array` is a part of one; `path` is empty then
    friend bool operator==(const Ingredient&, const Ingredient&) = default;
};
/// Weights: an array; or, with a name in place of a path, what weights_named() computes.
struct WeightsIngredient : Ingredient {
    [[nodiscard]] bool is_name() const { return array == nullptr && is_weights_name(path); }
};
using NamedIngredients = std::vector<std::pair<std::string, Ingredient>>;

// By their paths; throws unsupported for one without.
[[nodiscard]] Value member_value(const Ingredient& ingredient);
[[nodiscard]] Value member_value(const std::vector<Ingredient>& parts);
[[nodiscard]] Value member_value(const NamedIngredients& operands);
void read_member(const Value& value, Ingredient& ingredient);
void read_member(const Value& value, std::vector<Ingredient>& parts);
void read_member(const Value& value, NamedIngredients& operands);

/// What is copied of an array whose elements stand for others. rounded_for() chooses by the destination.
enum class Elements : std::uint8_t {
    by_file,  ///< text in a .csv, codes elsewhere
    shown,    ///< text in a .csv, values where there is no place for the attributes that say it, codes elsewhere
    codes,
    bare_codes,  ///< codes, with a note, because their attributes have no place there
    values,
    text,
};

/// How elements are seen before they are copied: each of these after the one before, and the dtype before rounding.
struct View {
    std::optional<std::string> where = {};  ///< a condition for the rows of a table, or else for elements
    std::optional<Ingredient> points = {};  ///< the indices of elements; see elements_at()
    std::optional<std::string> cf = {};     ///< "decode" or "encode"
    /// The names of the dimensions in the order that they get; of an array without these names nothing changes.
    std::vector<std::optional<std::string>> order = {};
    bool coordinates = false;  ///< a row for each element, with its coordinates
    std::optional<std::string> keep_bits = {}, max_error = {};
    // Of a Rounding, by its destination.
    Value fills = {};
    bool fill_is_missing = false;
    Elements elements = Elements::by_file;
};

struct CopyRecipe {
    static constexpr std::string_view name = "copy";
    Ingredient source = {};
    View view = {};
};

struct CalcRecipe {
    static constexpr std::string_view name = "calc";
    std::string expression = {};
    NamedIngredients operands = {};
    bool raw = false;  ///< compute with codes; else with what elements stand for (meaning.h)
};

struct ReduceRecipe {
    static constexpr std::string_view name = "reduce";
    Ingredient source = {};
    std::string with = {};
    std::vector<std::string> axes = {};  ///< names or numbers; empty: all
    std::optional<Ingredient> by = {};   ///< a word of grouping_words() in place of a path, or labels
    std::optional<WeightsIngredient> weights = {};
    std::optional<std::string> rolling = {};  ///< NAME=LENGTH: of windows that move along a dimension
    std::optional<std::int64_t> min_count = {};
    bool centred = false;
    bool keep_dimensions = false;
    bool skip_nan = false;  ///< the default, which earlier versions had not
    bool keep_missing = false, raw = false;
    bool no_index = false;  ///< read all, whatever an index of chunks says
};

struct CoarsenRecipe {
    static constexpr std::string_view name = "coarsen";
    Ingredient source = {};
    std::string by = {};  ///< as parse_factors() takes it
    std::string with = "mean";
    bool keep_missing = false, raw = false;
    bool as_stored = false;                 ///< packed as the source is: a level of a pyramid
    bool unrounded = false;                 ///< means of integers as float64
    bool of_bounds = false;                 ///< the array holds both ends of cells, which become those of larger ones
    std::optional<Ingredient> bounds = {};  ///< of a coordinate: its values become the middles of larger cells
};

struct RegridRecipe {
    static constexpr std::string_view name = "regrid";
    Ingredient source = {};
    std::optional<Ingredient> like = {};  ///< an array that has the grid, or a data set of one grid
    std::optional<std::string> to = {};   ///< lat=-90:90:1,lon=0:359:1
    std::string method = "bilinear";
    std::optional<std::string> coordinate = {};  ///< in place of the array the new coordinate of this dimension
};

struct JoinRecipe {
    static constexpr std::string_view name = "join";
    std::vector<Ingredient> parts = {};
    std::string axis = "0";
    bool new_axis = false;
    bool keep_ones = false;                    ///< no new axis where all parts have the length 1 along it
    std::optional<std::string> new_name = {};  ///< of the new dimension
    bool as_given = false;                     ///< parts in the order of their names as text; see arrays_named()
    View view = {};                            ///< of the joined array
};

/// The labels of groups, as the coordinate of what ReduceRecipe::by makes.
struct LabelsRecipe {
    static constexpr std::string_view name = "labels";
    Ingredient source = {};  ///< the coordinate that is grouped
    Ingredient by = {};      ///< as ReduceRecipe::by
};

struct PyramidRecipe {
    static constexpr std::string_view name = "pyramid";
    Ingredient source = {};
    std::string by = "2", with = "mean";
    bool keep_missing = false, raw = false;
    std::optional<std::int64_t> levels = {};
    std::vector<std::string> axes = {};
    std::vector<double> scale = {};
    std::vector<std::optional<std::string>> units = {};
    std::optional<std::string> ome = {};
    bool geo = false;
    std::optional<std::string> crs = {};
    std::vector<double> transform = {};
};

struct Recipe {
    std::variant<CopyRecipe, CalcRecipe, ReduceRecipe, CoarsenRecipe, RegridRecipe, JoinRecipe, PyramidRecipe,
                 LabelsRecipe>
        make = {};
    // Of whole data sets (data_set.h).
    std::vector<std::string> only = {};       ///< of their arrays these, with what belongs to them; empty: all
    std::vector<std::string> leave_out = {};  ///< all but these
    // Of the result, and of each part of a join.
    std::optional<std::string> dtype = {};
    std::optional<std::string> cast = {};
    bool reverse_dims = false;  ///< of a .ra that is read
    // Where there is a view.
    std::optional<bool> header = {};  ///< whether a .csv begins with one
    std::optional<std::string> missing = {};
    /// The part that is copied of what is viewed, or with which is computed. Of several arrays, each takes the items
    /// whose dimensions it has.
    std::optional<std::string> selection = {};

    /// Whether `selection` is a part of what is viewed, which the copy takes; else it is inside of what opens.
    [[nodiscard]] bool selects_view() const { return view() != nullptr && !view()->coordinates; }
    [[nodiscard]] const View* view() const;  ///< null: none
    [[nodiscard]] View* view();
};

// ---- Their fields, for a `visit` that takes (const Option&, member&).

template <class Given, class Of>
concept OptionsOf = std::same_as<std::remove_const_t<Given>, Of>;

inline constexpr Option source_option{"path", "array"};
inline constexpr Option raw_option{"raw", "raw", "--raw", "",
                                   "compute with the stored codes, not with what they stand for"};
inline constexpr Option keep_missing_option{"keep_missing", "keep_missing", "--keep-missing", "",
                                            "a missing element, NaN or NaT makes its result missing"};
inline constexpr Option coarsening_option{"with", "how", "--with", "WORD", "mean (default), max, min, mode or nearest"};

template <OptionsOf<View> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit({"cf", "cf"}, r.cf);  // two flags of the program
    visit({"keep_bits", "keep_bits", "--keep-bits", "N|auto",
           "round floats to so many bits of their fraction, so that they take less room; auto: as many as hold\n"
           "99 % of the information. The attribute rounded keeps the bound",
           false, true},
          r.keep_bits);
    visit({"max_error", "max_error", "--max-error", "E", "round numbers by at most so much; likewise", false, true},
          r.max_error);
    visit({"fills"}, r.fills);
    visit({"fill_is_missing"}, r.fill_is_missing);
    visit({"order"}, r.order);
    visit({"coordinates", "coordinates", "--coordinates", "",
           "a table: a row for each element, with the coordinates of its dimensions, as for a .csv"},
          r.coordinates);
    visit({"points", "points"}, r.points);
    visit({"where", "where", "--where", "CONDITION",
           "of a table only rows for which this holds, as in `tessera calc`: 'close > 100',\n"
           "\"station == 'Graz'\"; SELECTION is then a part of these. Of any other array 'value > 40':\n"
           "elements for which it does not hold are missing"},
          r.where);
}

template <OptionsOf<CopyRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
}

template <OptionsOf<CalcRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit({"expression", "expression"}, r.expression);
    visit({"operands", "operands"}, r.operands);
    visit(raw_option, r.raw);
}

template <OptionsOf<ReduceRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
    visit({"axes", "axis", "--axis", "DIMS",
           "the dimensions to reduce, by name or number: time or 0,2; -1 is the last (default: all)"},
          r.axes);
    visit({"with", "how", "--with", "WORD",
           "min, max, sum, mean, std, var, count, argmin, argmax, any, all, median or a percentile: p95, p2.5", true},
          r.with);
    visit({"by", "by", "--by", "WORD|PATH",
           "a result for each year, month (of each year: year-month, too), month-of-year, day-of-year, hour-of-day or "
           "season\n"
           "of its times, or for each label in an array: labels.zarr"},
          r.by);
    visit({"weights", "weights", "--weights", "NAME|PATH",
           "of mean, sum, std and var: area (of cells on the earth), a dimension such as latitude (the cosine of its\n"
           "degrees), or an array that has some of the reduced dimensions: areas.nc::cell_area"},
          r.weights);
    visit({"rolling", "rolling", "--rolling", "NAME=LENGTH",
           "in place of --axis: a result for each window of that length along a dimension, at its end: time=30", false,
           true},
          r.rolling);
    visit(
        {"min_count", "min_count", "--min-count", "N",
         "with --rolling: the elements that a window needs, missing ones and those outside not counted (default: all)"},
        r.min_count);
    visit({"centred", "center", "--center", "", "with --rolling: each window lies around its element"}, r.centred);
    visit({"keep_dimensions", "keepdims", "--keep-dims", "", "dimensions that go stay as length 1"}, r.keep_dimensions);
    visit(keep_missing_option, r.keep_missing);
    visit(raw_option, r.raw);
    visit({"no_index", "no_index", "--no-index", "", "read all, whatever the index of chunks says (tessera index)"},
          r.no_index);
    visit({"skip_nan", "skip_nan", "--skip-nan", "", "leave missing elements, NaN and NaT out: the default"},
          r.skip_nan);
}

template <OptionsOf<CoarsenRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
    visit({"by", "by", "--by", "FACTORS",
           "a factor for each dimension, or one for all: 4,4; or for those that are named: lat=4,lon=2", true, true},
          r.by);
    visit(coarsening_option, r.with);
    visit(keep_missing_option, r.keep_missing);
    visit(raw_option, r.raw);
    visit({"as_stored", "as_stored"}, r.as_stored);
    visit({"unrounded"}, r.unrounded);
    visit({"of_bounds"}, r.of_bounds);
    visit({"bounds"}, r.bounds);
}

template <OptionsOf<RegridRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
    visit({"like", "like", "--like", "GRID",
           "whose latitudes and longitudes the result gets: an array, or a data set of one grid"},
          r.like);
    visit({"to", "to", "--to", "RANGES", "or these, with both ends and a step: lat=-90:90:1,lon=0:359:1"}, r.to);
    visit({"method", "method", "--method", "WORD", "bilinear (default), nearest or conservative"}, r.method);
    visit({"coordinate"}, r.coordinate);
}

/// The program's help of the axis differs between stack and concat, which declare it.
template <OptionsOf<JoinRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit({"paths", "arrays"}, r.parts);
    visit({"axis", "axis", "--axis", "", "", false, true}, r.axis);
    visit({"new_axis", "new_axis"}, r.new_axis);
    visit({"keep_ones", "keep_ones"}, r.keep_ones);
    visit({"new_name"}, r.new_name);
    visit({"as_given", "as_given", "--as-given", "",
           "keep the given order; sort the matches of a pattern as text: frame-10 before frame-2"},
          r.as_given);
}

template <OptionsOf<LabelsRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
    visit({"by", "by"}, r.by);
}

template <OptionsOf<PyramidRecipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    visit(source_option, r.source);
    visit({"by", "by", "--by", "FACTORS",
           "the factor between levels (default 2), for dimensions of space; or one for each", false, true},
          r.by);
    visit({"levels", "levels", "--levels", "N", "how many, the first included (default: until 256 elements long)"},
          r.levels);
    visit(coarsening_option, r.with);
    visit(keep_missing_option, r.keep_missing);
    visit(raw_option, r.raw);
    visit({"axes", "axes", "--axes", "NAMES", "names of the dimensions: t,c,z,y,x, as many as there are"}, r.axes);
    visit({"scale", "scale", "--scale", "NUMBERS", "distances between neighbours in the first level: 1,0.5,0.5"},
          r.scale);
    visit({"units", "units", "--units", "NAMES", "units of the distances: micrometer,micrometer"}, r.units);
    visit({"ome", "ome", "--ome", "VERSION", "version of OME-Zarr: 0.4 (in v2), 0.5 or 0.6 (0.6rc0; in v3)"}, r.ome);
    visit({"geo", "geo", "--geo", "",
           "GeoZarr's metadata (multiscales, spatial, proj) in place of OME-Zarr's; both with --ome. SRC has a "
           "georeference, as from GeoTIFF, or these options say one"},
          r.geo);
    visit({"crs", "crs", "--crs", "CODE", "the coordinate reference system: EPSG:4326, or WKT2, or PROJJSON"}, r.crs);
    visit({"transform", "transform", "--transform", "NUMBERS",
           "a,b,c,d,e,f: x = a*column + b*row + c, y = d*column + e*row + f"},
          r.transform);
}

template <OptionsOf<Recipe> R, class Visit>
void visit_options(R& r, const Visit& visit) {
    std::visit([&](auto& made) { visit_options(made, visit); }, r.make);
    // A pyramid is of one array, and of all of it.
    const bool whole = std::holds_alternative<PyramidRecipe>(r.make);
    if (!whole) {
        visit({"only", "only", "--only", "NAMES", "of a group or a file: these arrays, with their coordinates: t,wind"},
              r.only);
        visit({"except", "exclude", "--except", "NAMES", "of a group or a file: all arrays but these"}, r.leave_out);
    }
    if (r.view() == nullptr) {
        if (!whole) {
            visit({"selection", "sel", "--sel", "SELECTION",
                   "compute with this part alone: '10:20, ::2, 5, ...' or 'time=2020-01:2020-06, lat~45'"},
                  r.selection);
        }
        visit({"dtype", "dtype", "--dtype", "DTYPE", "convert the results: f4, '<i2'"}, r.dtype);
        visit({"cast", "cast", "--cast", "RULE", "safe, same_kind (default), unsafe, round or clip"}, r.cast);
        visit({"reverse_dims", "reverse_dims"}, r.reverse_dims);
        return;
    }
    visit({"dtype", "dtype", "--dtype", "DTYPE",
           "convert the elements: f4, '<i2', S8; of a .csv what it holds: \"[('a', '<i4'), ...]\""},
          r.dtype);
    visit({"cast", "cast", "--cast", "RULE",
           "what may become of values: safe, same_kind (default), unsafe (as NumPy's astype), round, clip"},
          r.cast);
    visit({"header", "header", "--header", "yes|no",
           "whether a .csv begins with a line of names: yes or no (default: found out)"},
          r.header);
    visit({"missing", "missing", "--missing", "VALUE",
           "what stands where a .csv has no number, but nothing or NA: -9999, nan (default: NaN among floats;\n"
           "integers must not be missing)",
           false, true},
          r.missing);
    visit({"reverse_dims", "reverse_dims", "--reverse-dims", "",
           "reverse the dimensions of a .ra, as row-major readers show it"},
          r.reverse_dims);
    visit_options(*r.view(), visit);
    visit({"selection", "sel", "--sel", "SELECTION",
           "copy only this part: '10:20, ::2, 5, ...' or 'time=2020-01:2020-06, lat~45'"},
          r.selection);
}

/// Calls each(ingredient) for all of a recipe.
template <class R, class Each>
void for_each_ingredient(R& recipe, const Each& each) {
    visit_options(recipe, [&](const Option& /*option*/, auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, Ingredient>) {
            each(member);
        } else if constexpr (std::is_same_v<Member, std::optional<Ingredient>>) {
            if (member) each(*member);
        } else if constexpr (std::is_same_v<Member, std::optional<WeightsIngredient>>) {
            if (member && !member->is_name())
                each(static_cast<std::conditional_t<std::is_const_v<R>, const Ingredient&, Ingredient&>>(*member));
        } else if constexpr (std::is_same_v<Member, std::vector<Ingredient>>) {
            for (auto& part : member) each(part);
        } else if constexpr (std::is_same_v<Member, NamedIngredients>) {
            for (auto& [name, operand] : member) each(operand);
        }
    });
}

// ---- Whole recipes. Messages about a field begin with its name: "by: …".

/// A recipe of this name without values. Throws invalid_argument for another name, listing those that there are.
[[nodiscard]] Recipe recipe_named(std::string_view name);
/// {"do": "reduce", "path": …}; members with their default values are left out. Ingredients need paths.
[[nodiscard]] Value recipe_value(const Recipe& recipe);
/// The reverse, which also takes what earlier versions wrote. Throws corrupt, naming the member.
[[nodiscard]] Recipe parse_recipe(const Value& value);
/// Where the ingredients lie, without repetition. Words of grouping_words() are none.
[[nodiscard]] std::vector<std::string> paths_of(const Recipe& recipe);
/// The same recipe with absolute paths.
[[nodiscard]] Recipe absolute_recipe(Recipe recipe);

/// The name of the coordinate of groups: the word, or the name of the labels.
[[nodiscard]] std::string label_name(const LabelsRecipe& recipe);

/// How parts are joined of which `first` is the first. Throws invalid_argument for an axis that there is not.
[[nodiscard]] JoinOptions join_options(const JoinRecipe& recipe, const ArraySource& first);

/// Opens what lies at a path. It outlives the call: parts of a join are opened again and again, by any thread.
using OpenIngredient = std::function<std::unique_ptr<ArraySource>(const std::string& path)>;
/// Opens by open_readable_source() as a recipe reads; errors begin with the path.
[[nodiscard]] OpenIngredient open_by_path(const Recipe& recipe = {});

/// As what their elements stand for. `lossy`: marked integers of 64 bits may lose digits.
/// `selection`: of each operand the items whose dimensions it has.
[[nodiscard]] std::vector<CalcOperand> open_operands(const CalcRecipe& recipe, const OpenIngredient& open,
                                                     bool lossy = false,
                                                     const std::optional<std::string>& selection = std::nullopt);

struct OpenedRecipe {
    std::unique_ptr<ArraySource> source;
    ComputedFrom from;
    std::vector<std::shared_ptr<const ArraySource>> kept;  ///< that `from` refers to
    std::vector<Note> notes;                               ///< sentences about the view
    /// New coordinates of the result's dimensions, by their names.
    std::vector<std::pair<std::string, std::shared_ptr<const ArraySource>>> coordinates;
};
/// What a recipe makes, as a source; not of a pyramid, which is several arrays. Throws invalid_argument for fields that
/// do not fit the arrays, and what opening them throws.
[[nodiscard]] OpenedRecipe open_recipe(const Recipe& recipe, const OpenIngredient& open, const IoOptions& io = {});

/// The same, with ingredients opened by their paths.
[[nodiscard]] OpenedRecipe open_recipe(const Recipe& recipe, const IoOptions& io = {});
/// For a file of text: missing elements as no text, and times in ISO 8601.
void show_as_text(OpenedRecipe& opened);
/// Notes which integer of 64 bits stands for missing elements where attributes have no place: in some files, and in
/// memory (nullopt).
void note_marks(OpenedRecipe& opened, const std::optional<std::string>& destination);
/// Whether what is computed is so shown there: without a dtype, in a .csv. What is viewed is as its view says.
[[nodiscard]] bool becomes_text(const Recipe& recipe, const std::string& destination);
/// The array with the recipe's dtype.
[[nodiscard]] std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> array, const Recipe& recipe);
/// The array as the recipe's view and dtype have it. `notes` gets sentences about it.
[[nodiscard]] std::unique_ptr<ArraySource> viewed(std::unique_ptr<ArraySource> array, const Recipe& recipe,
                                                  const OpenIngredient& open, const IoOptions& io,
                                                  std::vector<Note>& notes);

/// Options for reading an ingredient. Throws invalid_argument for those of a .csv at a file that is none. `text`: it is
/// one.
[[nodiscard]] ArrayFileOptions reading_options(const Recipe& recipe, const Located& at);
[[nodiscard]] ArrayFileOptions reading_options(const Recipe& recipe, bool text, std::string_view name);

/// Factors as parse_factors() takes them: "4,2".
[[nodiscard]] std::string factors_text(const Shape& factors);
/// How a view rounds, if it does. Throws invalid_argument.
[[nodiscard]] std::optional<Rounding> rounding_of(const View& view);

/// The options of a pyramid, without those of the new arrays and of the work.
[[nodiscard]] PyramidOptions pyramid_options(const PyramidRecipe& recipe);

}  // namespace tessera
