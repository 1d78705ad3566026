// tessera stack, concat
#include <fmt/format.h>
#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/byte_io.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/derived_source.h>
#include <tessera/destination.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/fnv.h>
#include <tessera/group.h>
#include <tessera/joined_meaning.h>
#include <tessera/outside.h>
#include <tessera/part_names.h>
#include <tessera/place.h>
#include <tessera/references.h>
#include <tessera/write_computed.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "transfer.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

struct StackOptions {
    TransferOptions transfer;
    std::vector<std::string> words;  ///< FILES and DST
    bool new_axis = false;
    bool is_virtual = false;

    [[nodiscard]] JoinRecipe& join() { return std::get<JoinRecipe>(transfer.recipe.make); }
};

/// Text with a hash of the state of all files, to recognise an unfinished stack of the same files.
std::string state_of(const std::vector<std::string>& arrays, const JoinRecipe& join,
                     const std::optional<std::string>& selection) {
    std::string states;
    for (const std::string& array : arrays) {
        const fs::path named = split_array_path(array).path;
        if (!is_local(named)) {
            states += fmt::format("{}\n{}\n", array, version_text(find_place(named, {.read_only = true})));
            continue;
        }
        const fs::path path = fs::absolute(named);
        std::error_code ignored;
        const auto changed = fs::last_write_time(path, ignored).time_since_epoch().count();
        const std::uint64_t size = fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0;
        states += fmt::format("{}\n{}\n{} {}\n", array, path.string(), changed, size);
    }
    return fmt::format("{} joined along axis {}, {:016x}{}", arrays.size(), join.axis, fnv1a(states),
                       selection ? fmt::format(" [{}]", *selection) : "");
}

/// "npy", "zarr" …: what a path is, by its extension; "" of any directory.
std::string kind_of(const std::string& path) {
    const fs::path file = split_array_path(path).path;
    std::error_code ignored;
    return fs::is_directory(file, ignored) ? std::string() : file.extension().string();
}

/// The arrays to be joined, and how.
struct Joining {
    const std::vector<std::string>& arrays;
    const ArraySource& first;
    JoinOptions how;
    const OpenIngredient& open;
};

/// Whether an array could be another one of those that are joined.
bool fits_beside(const Joining& j, const ArrayInfo& info) {
    const ArrayInfo own = j.first.info();
    if (!info.dtype.equal_but_order(own.dtype) || info.shape.rank() != own.shape.rank()) return false;
    for (int d = 0; d < info.shape.rank(); ++d) {
        if (info.shape[d] != own.shape[d] && (j.how.new_axis || d != j.how.axis)) return false;
    }
    return true;
}

/// Whether an array is as long as the first few of the arrays together, as the result of an earlier run of the command
/// is.
bool may_be_earlier_result(const Joining& j, std::int64_t length) {
    if (j.how.new_axis) return false;
    std::int64_t together = 0;
    for (std::size_t i = 0; i < j.arrays.size() && together < length; ++i) {
        together += j.open(j.arrays[i])->info().shape[j.how.axis];
        if (i > 0 && together == length) return true;
    }
    return false;
}

/// Throws if the destination is an array like the sources: then the real destination was probably forgotten, and the
/// last source must not be lost. With --overwrite, a destination after a single pattern, or of another kind than all
/// sources, is accepted.
void require_destination_named(const StackOptions& o, const Joining& j, std::string_view command) {
    const std::string& path = o.transfer.destination;
    if (!is_anything_at(split_array_path(path).path)) return;
    try {
        for (const std::string& array : arrays_named(path, true)) {
            const ArrayInfo info = j.open(array)->info();
            if (!fits_beside(j, info)) return;
            if (may_be_earlier_result(j, info.shape[std::min(j.how.axis, info.shape.rank() - 1)])) return;
        }
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        return;  // it cannot be read as an array, so it is no source
    }
    const bool same_kind = std::ranges::count(j.arrays, kind_of(path), kind_of) > 0;
    const bool after_pattern = o.words.size() == 1 && is_pattern(o.words.front());
    if (o.transfer.result.overwrite && (!same_kind || after_pattern)) return;
    throw invalid_argument(
        "{} is an array like those before it: the destination seems to be missing. Use `tessera {} "
        "FILES… DST`{}",
        path, command,
        o.transfer.result.overwrite ? "; to replace such an array, remove it first, or choose another name" : "");
}

/// References lead to the bytes in the files. Options that would change these are refused.
void require_virtual_options(const TransferOptions& t) {
    const auto refuse = [](const Option& option, const auto& member) {
        static constexpr std::string_view fitting[] = {"paths",    "axis", "new_axis", "keep_ones",
                                                       "as_given", "dims", "dry_run",  "overwrite"};
        if (!is_given(member) || std::ranges::count(fitting, option.name) > 0) return;
        const std::string_view typed = option.typed.empty() ? "--decode-cf and --encode-cf" : option.typed;
        throw invalid_argument("{} cannot be combined with --virtual, which copies no elements",
                               typed.substr(0, typed.find(',')));
    };
    visit_options(t.result, refuse);
    visit_options(t.recipe, refuse);
    if (fs::path(t.destination).extension() == ".json") return;
    throw invalid_argument("{}: the name of a references file must end in .json, for example {}.refs.json",
                           t.destination, t.destination);
}

void report_virtual(Session& session, const TransferOptions& t, const Value& made, std::size_t files) {
    const Value::Object& refs = made.at("refs").as_object();
    const Value document = Value::parse(refs.front().second.as_string());
    const Value* const grid = document.find("chunk_grid");  // of v3, where chunks differ in length
    Value value = Value::object();
    value.set("path", path_value(t.destination));
    value.set("dry_run", t.result.dry_run);
    value.set("files", static_cast<std::int64_t>(files));
    value.set("references", static_cast<std::int64_t>(refs.size()));
    value.set("shape", document.at("shape"));
    value.set("chunks", grid == nullptr ? document.at("chunks") : grid->at("configuration").at("chunk_shapes"));
    Shape shape;
    for (const Value& length : document.at("shape").as_array()) shape.push_back(length.as_int64());
    report(session, value,
           fmt::format("{} {} of {} files → {} ({})", t.result.dry_run ? "would refer to" : "referred to",
                       shape_text(shape), files, t.destination, count_text(std::ssize(refs), "reference")));
}

/// References convert nothing.
void require_same_meaning(const std::vector<std::string>& arrays, const ArraySource& first, const JoinOptions& how,
                          const OpenIngredient& open) {
    const JoinedMeaning meaning(first, {Action::without_references, "converts what it can", {}});
    std::int64_t begin = 0;
    for (const std::string& array : arrays) {
        const auto part = open(array);
        meaning.require_same(*part, how.new_axis ? -1 : how.axis, begin);
        if (how.axis < part->info().shape.rank()) begin += part->info().shape[how.axis];
    }
}

/// Writes the array as references. The elements stay in the files.
int join_virtually(Session& session, const TransferOptions& t, const std::vector<std::string>& arrays, int axes,
                   JoinedReferences options) {
    require_local(t.destination, "`stack --virtual`");
    DestinationLock building;
    if (!t.result.dry_run && fs::is_directory(fs::absolute(t.destination).parent_path())) {
        building = DestinationLock(t.destination, session.store());
    }
    require_free_file(t.destination, t.result.overwrite);
    options.folder = fs::path(t.destination).parent_path();
    options.allow_outside = outside_allowed();
    if (const auto& names = t.result.dimensions) {
        if (std::cmp_not_equal(names->size(), axes)) {
            throw invalid_argument("--dims: {} names, but {} dimensions", names->size(), axes);
        }
        options.attributes.set(dimensions_attribute, dimension_names_json(*names));
    }
    const Value made = joined_references(arrays, options);
    if (!t.result.dry_run) {
        const std::string text = fmt::format("{}\n", made.dump({.indent = 1}));
        const auto sink = create_file(t.destination, session.options().durability != Durability::none);
        sink->append(std::as_bytes(std::span(text)));
        sink->finish();
    }
    report_virtual(session, t, made, arrays.size());
    return exit_done;
}

/// Joins whole data sets, array by array.
int join_sets(Session& session, StackOptions& o, const std::vector<std::string>& sets, std::string_view done) {
    if (o.is_virtual)
        throw invalid_argument("--virtual: only of single arrays; name one of each: {}::NAME", sets.front());
    TransferOptions& t = o.transfer;
    const bool after_pattern = o.words.size() == 1 && is_pattern(o.words.front());
    const bool like_others = kind_of(t.destination) == kind_of(sets.front());
    if (!after_pattern && like_others && is_anything_at(t.destination) && DataSet::at(t.destination)) {
        throw invalid_argument(
            "{} holds arrays like those before it: the destination seems to be missing. Remove it first, or choose "
            "another name",
            t.destination);
    }
    t.source = fmt::format("{} data sets", sets.size());
    t.state = state_of(sets, o.join(), t.recipe.selection);
    return make_recipe(session, t, done);
}

int join(Session& session, const StackOptions& given, bool stack) {
    if (given.words.size() < 2) throw invalid_argument("FILES and DST: at least two paths are needed");
    StackOptions o = given;
    o.transfer.destination = o.words.back();
    o.words.pop_back();
    JoinRecipe& joined = o.join();
    const std::vector<std::string> arrays = arrays_named(o.words, joined.as_given);
    require_apart(arrays, o.transfer.destination);
    for (const std::string& array : arrays) joined.parts.push_back({.path = array});
    joined.new_axis = stack;
    joined.keep_ones = !o.new_axis;
    if (DataSet::at(arrays.front())) return join_sets(session, o, arrays, stack ? "stacked" : "joined");
    const OpenIngredient open = [by_path = open_by_path(o.transfer.recipe)](const std::string& path) {
        return about_path(path, [&] { return by_path(path); });
    };
    return about_recipe(o.transfer, [&] {
        const auto first = converted(open(arrays.front()), o.transfer.recipe);
        const JoinOptions how = join_options(joined, *first);
        require_destination_named(o, {arrays, *first, how, open}, stack ? "stack" : "concat");
        if (o.is_virtual) {
            require_virtual_options(o.transfer);
            require_same_meaning(arrays, *first, how, open);
            return join_virtually(session, o.transfer, arrays, first->info().shape.rank() + (how.new_axis ? 1 : 0),
                                  {.axis = how.axis, .new_axis = how.new_axis});
        }
        o.transfer.source = fmt::format("{} files", arrays.size());
        o.transfer.state = state_of(arrays, joined, o.transfer.recipe.selection);
        return make_recipe(session, o.transfer, stack ? "stacked" : "joined");
    });
}

Run declare_join(CLI::App& app, bool stack) {
    auto o = std::make_shared<StackOptions>();
    o->transfer.recipe.make = JoinRecipe();
    app.add_option("FILES…", o->words,
                   "arrays, array files, quoted patterns; the last one is DST, where the array is made")
        ->required()
        ->expected(2, -1)
        ->option_text(" ");
    const Choose own = only_named({"axis", "as_given"});
    declare_options(app, o->join(), own);
    app.get_option("--axis")
        ->description(stack ? "the new dimension (default 0; -1: the last)"
                            : "the dimension that grows, by name or number (default 0; -1: the last)")
        ->option_text(stack ? "N" : "DIM");
    if (stack)
        app.add_flag("--new-axis", o->new_axis, "a new dimension also where all files have the length 1 along it");
    app.add_flag("--virtual", o->is_virtual,
                 "copy nothing: DST.json refers to the bytes of .npy, plain .ra, stored .npz and HDF5 files");
    declare_transfer(app, o->transfer,
                     [own](const Option& option) { return !own(option) && without(only_chunks)(option); });
    return [o, stack](Session& session) { return join(session, *o, stack); };
}

}  // namespace

Run declare_stack(CLI::App& app) {
    return declare_join(app, true);
}

Run declare_concat(CLI::App& app) {
    return declare_join(app, false);
}

}  // namespace tessera::cli
