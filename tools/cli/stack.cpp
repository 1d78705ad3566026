// tessera stack, concat
#include <fmt/format.h>
#include <glob.h>

#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/byte_io.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/destination.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/fnv.h>
#include <tessera/group.h>
#include <tessera/open_files.h>
#include <tessera/outside.h>
#include <tessera/place.h>
#include <tessera/references.h>
#include <tessera/write_computed.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
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
    std::string axis = "0";
    bool new_axis = false;
    bool as_given = false;
    bool is_virtual = false;
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The digits at the beginning of a text, and those without zeros in front.
std::string_view number_at(std::string_view text) {
    return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
}
std::string_view significant(std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Whether `a` comes before `b` where digits count as numbers: frame-2 before frame-10.
bool naturally_before(std::string_view a, std::string_view b) {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a[0]) && is_digit(b[0])) {
            const std::string_view digits_a = number_at(a);
            const std::string_view digits_b = number_at(b);
            const std::string_view x = significant(digits_a);
            const std::string_view y = significant(digits_b);
            if (x.size() != y.size()) return x.size() < y.size();
            if (x != y) return x < y;
            a.remove_prefix(digits_a.size());
            b.remove_prefix(digits_b.size());
        } else {
            if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    return a.empty() == b.empty() ? whole_a < whole_b : a.empty();
}

/// Only the letters and digits, in lower case: many locales sort names by these.
std::string collated(const std::string& text) {
    std::string key;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0) key += static_cast<char>(std::tolower(u));
    }
    return key;
}

/// Whether names are in an order in which shells expand a pattern, so that the user probably did not choose it.
bool in_shell_order(const std::vector<std::string>& names) {
    return std::ranges::is_sorted(names) || std::ranges::is_sorted(names, {}, collated);
}

/// The files that match a pattern.
std::vector<std::string> matches_of(const std::string& pattern, bool natural) {
    glob_t found{};
    const int failed = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> names(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
    ::globfree(&found);
    if (names.empty()) throw not_found("{}: no file has such a name", pattern);
    if (natural) std::ranges::stable_sort(names, naturally_before);
    return names;
}

bool is_pattern(const std::string& word) {
    std::error_code ignored;
    return word.find_first_of("*?[") != std::string::npos && is_local(word) &&
           !fs::exists(split_array_path(word).path, ignored);
}

/// The arrays that one word of FILES names.
std::vector<std::string> arrays_named(const std::string& word, bool natural) {
    std::vector<std::string> arrays;
    for (const std::string& path : is_pattern(word) ? matches_of(word, natural) : std::vector{word}) {
        const std::vector<std::string> members = several_members(locate(path));
        if (members.empty()) arrays.push_back(path);
        for (const std::string& member : members) arrays.push_back(fmt::format("{}::{}", path, member));
    }
    return arrays;
}

/// As open_source(), but for Python objects throws the error of the file's reader.
std::unique_ptr<ArraySource> open_part(const std::string& path, const TransferOptions& given) {
    return about_path(path, [&] {
        const Located at = locate(path);
        return converted(open_readable_source(at, reading_options(given, at)), given.dtype, given.cast);
    });
}

/// Text with a hash of the state of all files, to recognise an unfinished stack of the same files.
std::string state_of(const std::vector<std::string>& arrays, const StackOptions& o) {
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
    const bool all = !o.transfer.selection;
    return fmt::format("{} joined along axis {}, {:016x}{}", arrays.size(), o.axis, fnv1a(states),
                       all ? "" : fmt::format(" [{}]", *o.transfer.selection));
}

/// Takes options that were not given from the first array.
void take_over(StackOptions& o, const ArraySource& first, int axis, bool new_axis) {
    const auto* array = as_array(first);
    if (array == nullptr || names_array_file(o.transfer.destination)) return;
    const ArrayMetadata m = array->metadata();
    if (!o.transfer.format && format_above(o.transfer.destination) == nullptr) {
        o.transfer.like_format = std::string(array->dialect().name);
    }
    if (o.transfer.fills.empty() && m.fill.bytes && !m.dtype.is_variable()) {
        o.transfer.fills.push_back(element_to_value(m.dtype, m.fill.bytes->data()).dump());
    }
    Value names = m.dimension_names.empty() ? array->attributes().get(dimensions_attribute).value_or(Value())
                                            : dimension_names_json(m.dimension_names);
    if (o.transfer.dimensions || !names.is_array()) return;
    std::string text;
    int d = 0;
    const auto put = [&](const std::string& name) { text += (d++ == 0 ? "" : ",") + name; };
    for (const Value& name : names.as_array()) {
        if (new_axis && d == axis) put("");
        put(name.is_string() ? name.as_string() : "");
    }
    if (new_axis && d == axis) put("");
    o.transfer.dimensions = text;
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
    int axis;
    bool new_axis;
};

/// Whether an array could be another one of those that are joined.
bool fits_beside(const Joining& j, const ArrayInfo& info) {
    const ArrayInfo own = j.first.info();
    if (!info.dtype.equal_but_order(own.dtype) || info.shape.rank() != own.shape.rank()) return false;
    for (int d = 0; d < info.shape.rank(); ++d) {
        if (info.shape[d] != own.shape[d] && (j.new_axis || d != j.axis)) return false;
    }
    return true;
}

/// Whether an array is as long as the first few of the arrays together, as the result of an earlier run of the command
/// is.
bool may_be_earlier_result(const StackOptions& o, const Joining& j, std::int64_t length) {
    if (j.new_axis) return false;
    std::int64_t together = 0;
    for (std::size_t i = 0; i < j.arrays.size() && together < length; ++i) {
        together += open_part(j.arrays[i], o.transfer)->info().shape[j.axis];
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
            const ArrayInfo info = open_part(array, o.transfer)->info();
            if (!fits_beside(j, info)) return;
            if (may_be_earlier_result(o, j, info.shape[std::min(j.axis, info.shape.rank() - 1)])) return;
        }
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        return;  // it cannot be read as an array, so it is no source
    }
    const bool same_kind = std::ranges::count(j.arrays, kind_of(path), kind_of) > 0;
    const bool after_pattern = o.words.size() == 1 && is_pattern(o.words.front());
    if (o.transfer.overwrite && (!same_kind || after_pattern)) return;
    throw invalid_argument(
        "{} is an array like those before it: the destination seems to be missing. Use `tessera {} "
        "FILES… DST`{}",
        path, command,
        o.transfer.overwrite ? "; to replace such an array, remove it first, or choose another name" : "");
}

/// References lead to the bytes in the files. Options that would change these are refused.
void require_virtual_options(const TransferOptions& t) {
    const std::pair<bool, const char*> changing[] = {
        {t.chunks.has_value(), "--chunks"},
        {t.shards.has_value(), "--shard"},
        {t.codec.has_value(), "--codec"},
        {!t.fills.empty(), "--fill"},
        {t.format.has_value(), "--format"},
        {t.separator.has_value(), "--separator"},
        {t.structures.has_value(), "--structures"},
        {t.order.has_value(), "--order"},
        {t.deflate.has_value(), "--deflate"},
        {t.dtype.has_value(), "--dtype"},
        {t.cast.has_value(), "--cast"},
        {t.selection.has_value(), "--sel"},
        {t.points.has_value(), "--points"},
        {t.header.has_value(), "--header"},
        {t.object_strings, "--object-strings"},
        {t.reverse_dims, "--reverse-dims"},
        {t.resume, "--resume"},
    };
    for (const auto& [given, name] : changing) {
        if (given) throw invalid_argument("{} cannot be combined with --virtual, which copies no elements", name);
    }
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
    value.set("dry_run", t.dry_run);
    value.set("files", static_cast<std::int64_t>(files));
    value.set("references", static_cast<std::int64_t>(refs.size()));
    value.set("shape", document.at("shape"));
    value.set("chunks", grid == nullptr ? document.at("chunks") : grid->at("configuration").at("chunk_shapes"));
    Shape shape;
    for (const Value& length : document.at("shape").as_array()) shape.push_back(length.as_int64());
    report(session, value,
           fmt::format("{} {} of {} files → {} ({})", t.dry_run ? "would refer to" : "referred to", shape_text(shape),
                       files, t.destination, count_text(std::ssize(refs), "reference")));
}

/// Writes the array as references. The elements stay in the files.
int join_virtually(Session& session, const TransferOptions& t, const std::vector<std::string>& arrays, int axes,
                   JoinedReferences options) {
    require_virtual_options(t);
    require_local(t.destination, "`stack --virtual`");
    DestinationLock building;
    if (!t.dry_run && fs::is_directory(fs::absolute(t.destination).parent_path())) {
        building = DestinationLock(t.destination, session.store());
    }
    require_free_file(t.destination, t.overwrite);
    options.folder = fs::path(t.destination).parent_path();
    options.allow_outside = outside_allowed();
    if (t.dimensions) {
        const auto names = in_context([] { return "--dims"; }, [&] { return parse_names(*t.dimensions); });
        if (std::cmp_not_equal(names.size(), axes)) {
            throw invalid_argument("--dims: {} names, but {} dimensions", names.size(), axes);
        }
        options.attributes.set(dimensions_attribute, dimension_names_json(names));
    }
    const Value made = joined_references(arrays, options);
    if (!t.dry_run) {
        const std::string text = fmt::format("{}\n", made.dump({.indent = 1}));
        const auto sink = create_file(t.destination, session.options().durability != Durability::none);
        sink->append(std::as_bytes(std::span(text)));
        sink->finish();
    }
    report_virtual(session, t, made, arrays.size());
    return exit_done;
}

int join(Session& session, const StackOptions& given, bool stack) {
    if (given.words.size() < 2) throw invalid_argument("FILES and DST: at least two paths are needed");
    require_distinct_dims(given.transfer.dimensions);
    StackOptions o = given;
    o.transfer.destination = o.words.back();
    std::vector<std::string> arrays;
    o.words.pop_back();
    const bool sort = !o.as_given && in_shell_order(o.words);
    if (sort) std::ranges::stable_sort(o.words, naturally_before);
    for (const std::string& word : o.words) {
        for (std::string& array : arrays_named(word, !o.as_given)) arrays.push_back(std::move(array));
    }
    require_apart(arrays, o.transfer.destination);

    const auto first = open_part(arrays.front(), o.transfer);
    const Shape shape = first->info().shape;
    const int axes = shape.rank() + (stack ? 1 : 0);
    if (axes == 0) throw invalid_argument("{}: it has no dimension; `tessera stack` makes one", arrays[0]);
    // A new dimension has no name yet.
    const DimensionNames names = stack ? DimensionNames() : dimension_names_of(*first);
    const int along = in_context([] { return "--axis"; }, [&] { return find_dimension(o.axis, names, axes); });
    const bool has_axis = along < shape.rank() && shape[along] == 1;
    const bool new_axis = stack && (o.new_axis || !has_axis);
    require_destination_named(o, {arrays, *first, along, new_axis}, stack ? "stack" : "concat");
    if (o.is_virtual) {
        return join_virtually(session, o.transfer, arrays, new_axis ? shape.rank() + 1 : shape.rank(),
                              {.axis = along, .new_axis = new_axis});
    }
    take_over(o, *first, along, new_axis);
    Value attributes = first->attribute_values();
    attributes.erase(dimensions_attribute);
    attributes.erase(null_fill_attribute);

    o.transfer.source = fmt::format("{} files", arrays.size());
    o.transfer.state = state_of(arrays, o);
    const JoinOptions options{
        .axis = along, .new_axis = new_axis, .most_open = static_cast<int>(share_of_open_files(8, 16, 1000))};
    // Made once, because this looks at every file; `open` is called more than once.
    const std::shared_ptr<const ArraySource> joined = join_sources(
        arrays, [parts = o.transfer](const std::string& path) { return open_part(path, parts); }, options);
    o.transfer.open = [joined, attributes] { return shared_source(joined, attributes); };
    Value paths = Value::array();
    for (const std::string& array : arrays) paths.push_back(array);
    o.transfer.recipe = Value{{"do", "join"}, {"paths", std::move(paths)}, {"axis", along}, {"new_axis", new_axis}};
    return transfer(session, o.transfer, stack ? "stacked" : "joined");
}

Run declare_join(CLI::App& app, bool stack) {
    auto o = std::make_shared<StackOptions>();
    app.add_option("FILES…", o->words,
                   "arrays, array files, quoted patterns; the last one is DST, where the array is made")
        ->required()
        ->expected(2, -1)
        ->option_text(" ");
    app.add_option("--axis", o->axis,
                   stack ? "the new dimension (default 0; -1: the last)"
                         : "the dimension that grows, by name or number (default 0; -1: the last)")
        ->option_text(stack ? "N" : "DIM");
    if (stack)
        app.add_flag("--new-axis", o->new_axis, "a new dimension also where all files have the length 1 along it");
    app.add_flag("--as-given", o->as_given,
                 "keep the given order; sort the matches of a pattern as text: frame-10 before frame-2");
    app.add_flag("--virtual", o->is_virtual,
                 "copy nothing: DST.json refers to the bytes of .npy, plain .ra, stored .npz and HDF5 files");
    declare_transfer_options(app, o->transfer);
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
