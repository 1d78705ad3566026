#include <tessera/result_options.h>

#include <memory>
#include <set>
#include <utility>
#include <variant>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/dialect.h>
#include <tessera/divided_recipe.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>

#include <fmt/format.h>

namespace tessera {

namespace {

/// Whether fills are of one array, for which any text is a value.
bool makes_one_array(const Recipe& recipe) {
    const auto* copy = std::get_if<CopyRecipe>(&recipe.make);
    if (copy == nullptr || copy->source.array) return true;
    try {
        (void)open_source(copy->source.path);
        return true;
    } catch (const Error&) {
        return false;
    }
}

void set_fills(const Recipe& recipe, const ResultOptions& result, HierarchyOptions& options) {
    for (const Value& fill : result.fills) {
        const std::string text = fill.is_string() ? fill.as_string() : "";
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos && !makes_one_array(recipe)) {
            options.fills.emplace_back(text.substr(0, equals), json_or_text(text.substr(equals + 1)));
        } else if (!options.arrays.fill) {
            options.arrays.fill = fill;
        }
    }
}

/// A fill of an array that is packed is given as what it stands for: a missing one as NaN. Markers of others, and null,
/// are what they are.
Value code_of_fill(const ArraySource& array, const Value& fill) {
    const Meaning meaning = meaning_of(array);
    const bool signs = !(meaning.stored == meaning.held);
    const bool counts = meaning.time && !fill.is_string();
    if (fill.is_null() || counts || (!meaning.packing.scaled && !signs && !meaning.time)) return fill;
    const ElementBytes code = code_from_text(meaning, fill.is_string() ? fill.as_string() : fill.dump());
    return element_to_value(meaning.held, code.data());
}

/// Throws for options of the other kind of destination, rather than ignoring them.
/// `views`: names of dimensions may be an order, which files have, too.
void require_of_kind(const ResultOptions& result, const std::string& destination, bool to_file, bool views) {
    visit_options(result, [&](const Option& option, const auto& member) {
        if (views && option.name == "dims") return;
        if ((option.only & (to_file ? only_arrays : only_files)) == 0 || !is_given(member)) return;
        throw invalid_argument("{}: only for {}, but {} {}", option.name, to_file ? "arrays" : "array files",
                               destination, to_file ? "is an array file" : "becomes an array");
    });
}

bool is_viewed(const Recipe& recipe) {
    bool given = recipe.dtype.has_value() || recipe.view()->elements > Elements::codes;
    visit_options(*recipe.view(), [&](const Option& /*option*/, const auto& m) { given = given || is_given(m); });
    return given;
}

/// A condition is about one array: in a group it would be about coordinates, too. `masked`: the one that came first.
void require_one_masked(const ArraySource& opened, std::string& masked) {
    if (opened.info().dtype.kind() == Kind::structure) return;
    if (masked.empty()) masked = opened.name();
    if (masked == opened.name()) return;
    throw invalid_argument("where: expected one array, or tables, found {} and {}", masked, opened.name());
}

/// What the options of reading are, and the format that values have which are computed.
void read_as_given(const Recipe& recipe, const Ingredient& source, HierarchyOptions& options) {
    const View& view = *recipe.view();
    if ((view.cf || rounding_of(view)) && !options.arrays.like_format) {
        const auto* array = source.array ? as_array(*source.array) : nullptr;
        const Dialect* dialect = array != nullptr ? &array->dialect()
                                 : source.array   ? nullptr
                                                  : locate(source.path).dialect;
        if (dialect != nullptr) options.arrays.like_format = std::string(dialect->name);
    }
    if (source.array || (!recipe.header && !recipe.dtype && !recipe.missing)) return;
    const ArrayFileOptions reading = reading_options(recipe, locate(source.path));
    options.dtype = reading.dtype;
    options.header = reading.header;
    if (!recipe.missing) return;
    if (options.resume) throw invalid_argument("resume: not with `missing`; such a file is read from its beginning");
    options.open = [path = source.path, reading] { return open_source(locate(path), reading); };
}

}  // namespace

ArrayWishes wishes_of(const ResultOptions& r) {
    ArrayWishes wishes{.codec = r.codec,
                       .format = r.format,
                       .separator = r.separator,
                       .structures = r.structures,
                       .order = r.order,
                       .dimension_names = r.dimensions};
    if (r.chunks) wishes.named_chunks = r.chunks->named;
    if (r.chunks && r.chunks->named.empty()) ChunkLengths(*r.chunks).give(wishes.chunks, wishes.edges);
    if (r.shards) ChunkLengths(*r.shards).give(wishes.shards, wishes.shard_edges);
    if (r.dimensions) in_context([] { return "dims"; }, [&] { require_distinct_names(*r.dimensions); });
    return wishes;
}

void require_fitting(const Recipe& recipe, const ResultOptions& r, const std::string& destination) {
    const auto* format = named_array_file_format(destination);
    require_of_kind(r, destination, format != nullptr, recipe.view() != nullptr);
    if (recipe.cast && !recipe.dtype) throw invalid_argument("cast: only with `dtype`");
    if (const View* view = recipe.view()) {
        if (view->cf && view->cf != "decode" && view->cf != "encode") {
            throw invalid_argument("cf: expected decode or encode, found '{}'", *view->cf);
        }
        if (rounding_of(*view) && r.link) {
            throw invalid_argument("link: chunks cannot be linked when numbers are rounded");
        }
    }
    if (r.link && recipe.dtype) throw invalid_argument("link: chunks cannot be linked when the dtype changes");
    if (r.deflate < 0 || r.deflate > 9) {
        throw invalid_argument("deflate: expected a whole number from 0 to 9, found '{}'", r.deflate);
    }
    if (!r.unlimited.empty() && (format->groups == nullptr || !format->main.empty())) {
        throw invalid_argument("unlimited: only for .nc, .nc4 and .h5, but found {}", destination);
    }
    if (r.deflate > 0 && !format->deflates) {
        throw invalid_argument("deflate: only for .npz, .h5, .nc4 and .tif, but found {}", destination);
    }
}

void require_planned(const ResultOptions& result) {
    visit_options(result, [](const Option& option, const auto& member) {
        if ((option.only & only_now) != 0 && is_given(member)) {
            throw invalid_argument("{}: it cannot be planned", option.name);
        }
    });
}

Recipe rounded_for(Recipe recipe, const ResultOptions& r, const std::string& destination) {
    View* const view = recipe.view();
    if (view != nullptr && r.dimensions) view->order = *r.dimensions;
    if (view != nullptr && view->elements < Elements::codes) {
        const auto* format = named_array_file_format(destination);
        const bool text = format != nullptr && format->recognise == nullptr && !recipe.dtype;
        const bool keeps = format != nullptr ? format->keeps_attributes : view->elements != Elements::shown;
        const Elements bare = view->elements == Elements::shown ? Elements::values : Elements::bare_codes;
        view->elements = text ? Elements::text : keeps ? Elements::codes : bare;
    }
    auto rounding = view == nullptr ? std::nullopt : rounding_of(*view);
    if (!rounding) return recipe;
    HierarchyOptions options{.arrays = {.format = r.format}};
    set_fills(recipe, r, options);
    rounding->copied_to(destination, options);
    view->fills = Value::Array(rounding->fills.begin(), rounding->fills.end());
    view->fill_is_missing = rounding->fill_is_missing;
    return recipe;
}

HierarchyOptions hierarchy_options(const Recipe& given, const ResultOptions& r, const std::string& destination,
                                   const IoOptions& io, const std::function<void(const Note&)>& say) {
    HierarchyOptions options{.arrays = wishes_of(r),
                             .selection = given.selects_view() ? given.selection : std::nullopt,
                             .overwrite = r.overwrite,
                             .resume = r.resume,
                             .link = r.link,
                             .verify = r.verify,
                             .dry_run = r.dry_run,
                             .drop_attributes = r.drop_attributes,
                             .skip_unreadable = r.skip_unreadable,
                             .deflate_level = static_cast<int>(r.deflate),
                             .unlimited = r.unlimited,
                             .object_strings = r.object_strings,
                             .reverse_dims = given.reverse_dims,
                             .io = io};
    set_fills(given, r, options);
    options.fill_code = code_of_fill;
    options.exclude = exclusion(given);
    if (const auto* copy = std::get_if<CopyRecipe>(&given.make)) {
        read_as_given(given, copy->source, options);
        Recipe seen = rounded_for(given, r, destination);
        if (is_viewed(seen)) {
            const auto said = std::make_shared<std::set<std::string>>();  // arrays are opened more than once
            const auto masked = std::make_shared<std::string>();
            options.view = [recipe = std::move(seen), said, masked, say, io](std::unique_ptr<ArraySource> opened) {
                std::vector<Note> notes;
                if (recipe.view()->where) require_one_masked(*opened, *masked);
                opened = viewed(std::move(opened), recipe, open_by_path(), io, notes);
                for (const Note& note : notes) {
                    if (said->insert(note.text).second) say(note);
                }
                return opened;
            };
        }
    }
    return options;
}

}  // namespace tessera
