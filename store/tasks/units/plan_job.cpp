// The file of a job, and its plan.
#include <tessera/apart.h>
#include <tessera/dimensions.h>
#include <tessera/job.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/byte_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/destination.h>
#include <tessera/divided_recipe.h>
#include <tessera/error_text.h>
#include <tessera/multiscales.h>
#include <tessera/node_facts.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/pyramid.h>
#include <tessera/pyramid_plan.h>
#include <tessera/secrets.h>
#include <tessera/temporary_file.h>
#include <tessera/zip_name.h>

#include "directories.h"
#include "keys.h"
#include "recipe.h"
#include "unit_records.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int job_version = 1;
constexpr std::int64_t most_units = 1'000'000'000;

// ---- ranges

std::int64_t number_in(std::string_view text, std::string_view all, std::int64_t count) {
    std::int64_t number = -1;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || text[0] == '-' || end.ec != std::errc{} || end.ptr != text.data() + text.size()) {
        throw invalid_argument("expected numbers and ranges such as 3-7,9, found '{}'", all);
    }
    if (number >= count) throw invalid_argument("{}: expected numbers from 0 to {}", all, count - 1);
    return number;
}

// ---- the file

Value shape_json(const Shape& shape) {
    return shape_value(shape);
}

Shape shape_from(const Value& list) {
    if (list.as_array().size() > static_cast<std::size_t>(max_rank)) throw corrupt("more than {} dimensions", max_rank);
    Shape shape;
    for (const Value& length : list.as_array()) shape.push_back(length.as_int64());
    return shape;
}

Value optional_value(const std::optional<Value>& value) {
    return value ? *value : Value();
}

std::optional<Value> optional_from(const Value& value) {
    return value.is_null() ? std::nullopt : std::optional(value);
}

/// The number of units of a block in an array.
std::int64_t count_of(const JobArray& array) {
    return ChunkGrid(array.plan.metadata.shape, array.block).chunk_count();
}

Value array_value(const JobArray& array) {
    return {{"node", array.node},
            {"built", array.built.string()},
            {"inode", array.inode},
            {"source", recipe_value(array.source)},
            {"format", array.plan.dialect->name},
            {"metadata", array.plan.dialect->document(array.plan.metadata)},
            {"attributes", optional_value(array.plan.attributes)},
            {"block", shape_json(array.block)},
            {"block_bytes", byte_count(array.block, array.plan.metadata.dtype.size())},
            {"first_unit", array.units.first},
            {"units", array.units.end - array.units.first}};
}

Value to_json(const Job& job) {
    Value value{{"tessera_job", job_version},
                {"about", "a job of tessera: `tessera work` does its units, `tessera finish` ends it"},
                {"id", job.id},
                {"target", job.target},
                {"made_from", job.made_from},
                {"units", job.units()},
                {"parts", job.parts == 0 ? Value() : Value(job.parts)},
                {"memory", job.memory},
                {"overwrite", job.overwrite}};
    Value arrays = Value::array();
    for (const JobArray& array : job.arrays) arrays.push_back(array_value(array));
    value.set("arrays", std::move(arrays));
    Value groups = Value::array();
    for (const PlannedGroup& group : job.groups) {
        groups.push_back(Value{{"node", group.node},
                               {"format", group.dialect == nullptr ? Value() : Value(group.dialect->name)},
                               {"attributes", optional_value(group.attributes)},
                               {"unknown", group.unknown}});
    }
    value.set("groups", std::move(groups));
    value.set("sources", job.sources);
    return value;
}

/// A name below the target, and nothing else.
void require_node(const std::string& node) {
    const fs::path path(node);
    for (const fs::path& part : path) {
        if (path.is_absolute() || part == ".." || part == "." || part == own_folder) {
            throw corrupt("expected a path below the target, found '{}'", node);
        }
    }
}

JobArray array_from(const Value& value, const std::string& target, std::int64_t first) {
    JobArray array{.node = value.at("node").as_string(),
                   .built = value.at("built").as_string(),
                   .inode = value.at("inode").as_uint64(),
                   .plan = {},
                   .source = parse_recipe(value.at("source")),
                   .block = shape_from(value.at("block")),
                   .units = {first, first}};
    require_node(array.node);
    // Nothing is written but in the target's place, or under the hidden name beside it.
    const fs::path place = array.node.empty() ? fs::path(target) : fs::path(target) / array.node;
    fs::path beside = place;
    beside.replace_filename(hidden_name(place, "new"));
    if (array.built != place && array.built != beside) {
        throw corrupt("\"built\": expected {} or {}, found {}", place.string(), beside.string(), array.built.string());
    }
    // Before 0.1 it stood beside the recipe.
    if (const Value* part = value.find("selection"); part != nullptr) read_member(*part, array.source.selection);
    array.plan.dialect = &dialect_named(value.at("format").as_string());
    array.plan.metadata = array.plan.dialect->parse(value.at("metadata").dump());
    array.plan.attributes = optional_from(value.at("attributes"));
    array.plan.recode = "it is a job";
    const ArrayMetadata& m = array.plan.metadata;
    if (array.block.rank() != m.shape.rank()) throw corrupt("\"block\": expected {} lengths", m.shape.rank());
    for (int d = 0; d < m.shape.rank(); ++d) {
        if (array.block[d] > 0 && (array.block[d] % m.chunks[d] == 0 || array.block[d] >= m.shape[d])) continue;
        throw corrupt("\"block\": {} does not consist of whole chunks of {}", array.block.to_string(),
                      m.chunks.to_string());
    }
    array.units.end = checked_add(first, count_of(array), "units");
    if (array.units.end > most_units) throw corrupt("more than {} units", most_units);
    return array;
}

/// A target's parts and groups, planned and not made.
struct PlannedTarget {
    std::vector<PlannedCopy> arrays;
    std::vector<Recipe> recipes;  ///< one for each
    std::vector<PlannedGroup> groups;
};

PlannedTarget plan_pyramid_target(const PyramidRecipe& recipe, const std::string& target, const PlanOptions& o) {
    const std::string& path = recipe.source.path;
    PyramidOptions options = pyramid_options(recipe);
    options.arrays = o.copy.arrays;
    options.overwrite = o.copy.overwrite;
    options.dry_run = true;
    options.io = o.copy.io;
    options.store = o.copy.store;
    PlannedPyramid pyramid = plan_pyramid(open_source(path), path, target, options);
    require_pyramid_place(target, pyramid.levels.size(), *pyramid.group.dialect, o.copy.overwrite);
    PlannedTarget planned{.arrays = std::move(pyramid.levels), .recipes = {}, .groups = {pyramid.group}};
    for (const Shape& by : pyramid.factors) {
        const bool first = planned.recipes.empty();
        planned.recipes.push_back({.make = CoarsenRecipe{.source = recipe.source,
                                                         .by = factors_text(by),
                                                         .with = first ? "nearest" : recipe.with,
                                                         .keep_missing = recipe.keep_missing,
                                                         .raw = recipe.raw,
                                                         .as_stored = true}});
    }
    return planned;
}

/// All arrays of a data set, one after the other.
PlannedTarget plan_set(const DividedRecipe& divided, const std::string& target, HierarchyOptions copy) {
    const auto say = [note = copy.note](const Note& text) {
        if (note) note(text);
    };
    for (const Note& note : divided.notes) say(note);
    make_set(copy, divided, target, say);
    PlannedTarget planned{.arrays = copy_hierarchy(target, target, copy).planned, .recipes = {}, .groups = {}};
    for (const auto& one : divided.arrays) planned.recipes.push_back(one.recipe);
    const Dialect* const dialect = planned.arrays.front().plan.dialect;
    for (const ArrayFileGroup& group : divided.groups) {
        const auto attributes = dialect->has_groups() ? std::optional(group.attributes) : std::nullopt;
        planned.groups.push_back({.node = group.name, .dialect = dialect, .attributes = attributes});
    }
    return planned;
}

PlannedTarget plan_target(const Recipe& recipe, const std::string& target, const PlanOptions& o) {
    if (const auto* pyramid = std::get_if<PyramidRecipe>(&recipe.make)) return plan_pyramid_target(*pyramid, target, o);
    HierarchyOptions copy = o.copy;
    copy.dry_run = true;
    copy.overwrite = true;  // that is looked at when the target is made
    if (const auto parts = divided(recipe)) return plan_set(*parts, target, std::move(copy));
    // What is computed has its selection inside.
    if (recipe.selects_view()) copy.selection = recipe.selection;
    CopiedHierarchy planned;
    if (const auto* copied = std::get_if<CopyRecipe>(&recipe.make)) {
        const std::string& path = copied->source.path;
        copy.view = [recipe, io = o.copy.io](std::unique_ptr<ArraySource>) { return open_recipe(recipe, io).source; };
        planned = copy_hierarchy(path, target, copy);
    } else {
        const OpenedRecipe opened = open_recipe(recipe, o.copy.io);
        planned = write_computed(*opened.source, target, opened.from, copy);
    }
    return {.arrays = std::move(planned.planned), .recipes = {recipe}, .groups = {}};
}

/// The sources that the recipes name, without repetition.
Value identities(const std::vector<Recipe>& recipes) {
    Value all = Value::array();
    std::vector<std::string> seen;
    for (const Recipe& recipe : recipes) {
        for (const std::string& path : paths_of(recipe)) {
            if (std::ranges::count(seen, path) > 0) continue;
            seen.push_back(path);
            all.push_back(source_identity(path));
        }
    }
    return all;
}

void require_target(const std::string& target) {
    const bool far = !is_local(target) && store_kind_of(target).place(target, {.read_only = true}).store->is_far();
    if (!far) require_local(target, "the target of a job");
    if (named_array_file_format(target) != nullptr || is_zip_name(target)) {
        throw unsupported("{}: one file cannot be written by several processes: the target of a job is a folder",
                          target);
    }
}

Job job_from(const Value& value, const fs::path& file) {
    const Value* version = value.is_object() ? value.find("tessera_job") : nullptr;
    if (version == nullptr) throw corrupt("it is not the file of a job, which `tessera plan` makes");
    if (version->as_int64() != job_version) {
        throw unsupported("\"tessera_job\": expected {}, found {}", job_version, version->dump());
    }
    Job job{.file = fs::absolute(file),
            .id = value.at("id").as_string(),
            .target = value.at("target").as_string(),
            .made_from = value.at("made_from").as_string(),
            .memory = value.at("memory").as_uint64(),
            .overwrite = value.at("overwrite").as_bool(),
            .sources = value.at("sources")};
    require_target(job.target);
    if (const Value& planned = value.at("parts"); !planned.is_null()) job.parts = planned.as_int64();
    for (const Value& array : value.at("arrays").as_array()) {
        job.arrays.push_back(array_from(array, job.target, job.units()));
    }
    if (job.arrays.empty()) throw corrupt("\"arrays\": expected at least one");
    for (const Value& group : value.at("groups").as_array()) {
        require_node(group.at("node").as_string());
        const Value& format = group.at("format");
        job.groups.push_back({.node = group.at("node").as_string(),
                              .dialect = format.is_null() ? nullptr : &dialect_named(format.as_string()),
                              .attributes = optional_from(group.at("attributes")),
                              .unknown = group.at("unknown")});
    }
    return job;
}

Job parse_job(std::string_view text, const fs::path& file) {
    return in_context([&] { return file.string(); }, [&] { return job_from(Value::parse(text), file); });
}

/// A block of units: so large that chunks of the source are decoded once, if memory allows it, not so small that
/// records matter, and enough of them for all who work.
Shape unit_block(const ArrayInfo& from, const ArrayInfo& to, CopyOptions way, std::int64_t parts) {
    constexpr std::uint64_t usual = std::uint64_t{256} << 20;
    constexpr std::uint64_t least = std::uint64_t{4} << 10;
    constexpr std::int64_t ample = std::int64_t{64} << 20;
    const std::int64_t wanted = parts > 0 ? 2 * parts : 16;
    way.ample = std::clamp(byte_count(to.shape, to.dtype.size()) / (4 * wanted), std::int64_t{1} << 20, ample);
    if (way.io.max_memory == 0) way.io.max_memory = usual;
    Shape block = independent_block(from, to, way);
    while (way.io.max_memory > least && element_count(to.shape) > 0 &&
           ChunkGrid(to.shape, block).chunk_count() < wanted) {
        way.io.max_memory /= 2;
        try {
            block = independent_block(from, to, way);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::budget) throw;
            break;
        }
    }
    return block;
}

/// Chooses the block of units of an array, and resolves the selection to indices.
void divide(JobArray& array, const ArrayInfo& to, const PlanOptions& o) {
    const OpenedRecipe opened = open_recipe(array.source, o.copy.io);
    CopyOptions way{.io = o.copy.io};
    auto& selection = array.source.selection;
    if (selection && array.source.selects_view()) {
        way.selection = parse_selection(*selection, *opened.source);
        selection = way.selection->to_string();  // the indices that its names and values mean now
    }
    array.block = in_context([&] { return opened.source->name(); },
                             [&] { return unit_block(opened.source->info(), to, way, o.parts); });
}

}  // namespace

std::vector<UnitRange> parse_unit_ranges(std::string_view text, std::int64_t count) {
    std::vector<UnitRange> ranges;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const std::string_view part = text.substr(at, end - at);
        const std::size_t dash = part.find('-', 1);
        const std::int64_t first = number_in(part.substr(0, dash), text, count);
        const std::int64_t last =
            dash == std::string_view::npos ? first : number_in(part.substr(dash + 1), text, count);
        if (last < first) throw invalid_argument("{}: {} is after {}", text, first, last);
        ranges.push_back({first, last + 1});
        at = end + 1;
    }
    return ranges;
}

std::string unit_ranges_text(const std::vector<UnitRange>& ranges) {
    std::string text;
    for (const UnitRange& range : ranges) {
        if (!text.empty()) text += ',';
        text += range.end - range.first == 1 ? fmt::format("{}", range.first)
                                             : fmt::format("{}-{}", range.first, range.end - 1);
    }
    return text;
}

Job Job::open(const fs::path& file) {
    require_local(file, "a job");
    const auto source = open_file(file);
    if (source->size() > metadata_limit) throw corrupt("{}: it is too long for the file of a job", file.string());
    const Buffer bytes = read_all(*source);
    return parse_job({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

UnitRange Job::part(std::int64_t number, std::int64_t of) const {
    if (of < 1 || number < 0 || number >= of) {
        throw invalid_argument("part {} of {}: parts are numbered from 0 to {}", number, of, of - 1);
    }
    const auto begin = [&](std::int64_t n) {
        const std::int64_t more = units() % of;
        return units() / of * n + std::min(n, more);
    };
    return {begin(number), begin(number + 1)};
}

std::pair<const JobArray*, Region> Job::place_of(std::int64_t unit) const {
    for (const JobArray& array : arrays) {
        if (unit < array.units.first || unit >= array.units.end) continue;
        const ChunkGrid blocks(array.plan.metadata.shape, array.block);
        return {&array, blocks.chunk_region(blocks.index(unit - array.units.first))};
    }
    throw invalid_argument("{}: there is no unit {}: expected 0 to {}", file.string(), unit, units() - 1);
}

std::uint64_t Job::bytes_of(std::int64_t unit) const {
    const auto [array, region] = place_of(unit);
    return static_cast<std::uint64_t>(byte_count(region.extent, array->plan.metadata.dtype.size()));
}

namespace {

void write_job_file(const fs::path& file, std::string_view text, bool has_secret, bool durable) {
    const auto bytes = std::as_bytes(std::span(text));
    if (!has_secret) {
        const auto sink = create_file(file, durable);
        sink->append(bytes);
        return sink->finish();
    }
    // Nobody else may read it at any moment.
    TemporaryFile made(AT_FDCWD, S_IRUSR | S_IWUSR, file.parent_path().string());
    if (!made || !write_all(made.file(), bytes) || (durable && !made.sync()) || !made.close() ||
        !made.rename(file.c_str())) {
        throw io_error("writing", file.string(), errno);
    }
}

void require_one_shape(const PlannedTarget& planned, const std::string& target) {
    for (const PlannedCopy& copy : planned.arrays) {
        if (copy.plan.metadata.edges.empty()) continue;
        throw unsupported(
            "{}: its chunks are to differ in length, and the units of a job are of one shape and end where chunks do",
            join_key(target, copy.node))
            .advising(Action::chunks, "gives chunks of one shape");
    }
}

/// Begins an array of the job; returns the file whose time is that of the beginning.
fs::path begin_array(Job& job, const PlannedCopy& copy, const Recipe& recipe, Destination& made,
                     const std::string& target, const PlanOptions& o) {
    for (const Note& change : copy.plan.changes) {
        if (o.copy.note) o.copy.note({fmt::format("{}: {}", join_key(target, copy.node), change.text), change.advice});
    }
    JobArray array{.node = copy.node, .built = {}, .plan = copy.plan, .source = recipe};
    const Array& begun = made.add(copy.node, copy.plan, job.made_from);
    array.built = is_local(job.target) ? fs::path(begun.name()) : place_of_array(job, array);
    array.inode = folder_id(array.built).value_or(FileId{}).inode;
    fs::path marker = array.built / unfinished_marker_key;
    divide(array, begun.info(), o);
    array.units.first = job.units();
    array.units.end = checked_add(array.units.first, count_of(array), "units");
    if (array.units.end > most_units) {
        throw unsupported("{}: the job would have {} units, more than {}", target, array.units.end, most_units);
    }
    job.arrays.push_back(std::move(array));
    return marker;
}

/// Notes what the sources are, now that changes of them are noticed.
void note_sources(Job& job, const Value& before, const fs::path& marker) {
    job.sources = Value::array();
    for (Value source : before.as_array()) {
        source.set("since", present_time(source, marker));
        job.sources.push_back(std::move(source));
    }
    for (const JobArray& array : job.arrays) {
        if (is_local(array.built)) fs::create_directories(array.built / units_key);
    }
    constexpr std::chrono::milliseconds tick{12};  // of the clocks of file systems: later changes have a later time
    std::this_thread::sleep_for(tick);
}

void save_job(const Job& job, const fs::path& file, const PlanOptions& o) {
    const std::string text = to_json(job).dump({.indent = 1}) + "\n";
    // What the file says can be done: the sources are made from it as `work` makes them.
    for (const JobArray& array : parse_job(text, file).arrays) (void)unit_source(array, o.copy.io);
    // Of plans that were killed.
    remove_temporaries<fs::directory_iterator>(job.file.parent_path());
    const bool has_secret = !secrets_in(text).empty();
    if (has_secret && o.copy.note) {
        o.copy.note({fmt::format("{} holds the query of a URL, which may be a secret, for the workers: only you may "
                                 "read it (mode 600)",
                                 file.string()),
                     {}});
    }
    write_job_file(file, text, has_secret, o.copy.store.durability != Durability::none);
}

}  // namespace

Job plan_job(const Recipe& given, const std::string& named, const fs::path& file, const PlanOptions& o) {
    require_target(named);
    const std::string target = is_local(named) ? fs::absolute(named).lexically_normal().string() : named;
    require_local(file, "a job");
    require_free_file(file, o.copy.overwrite);
    if (o.parts < 0 || o.parts > most_units) throw invalid_argument("parts: expected at least 1, found {}", o.parts);
    const Recipe recipe = absolute_recipe(given);
    PlannedTarget planned = plan_target(recipe, target, o);
    require_one_shape(planned, target);
    const Value before = identities(planned.recipes);
    for (const Value& source : before.as_array()) require_apart({source.at("path").as_string()}, target);

    Job job{.file = fs::absolute(file),
            .id = new_id(),
            .target = {},
            .made_from = {},
            .parts = o.parts,
            .memory = o.copy.io.max_memory,
            .overwrite = o.copy.overwrite,
            .groups = std::move(planned.groups)};
    job.made_from = fmt::format("job {}: {}", job.id, without_secrets(planned.arrays.front().source));
    const DestinationLock building = lock_destination(target, o.copy.store);
    job.target = building.place().string();
    const auto made = open_destination(
        target, {.overwrite = o.copy.overwrite, .store = o.copy.store, .lock = &building, .resumable = false});
    for (const PlannedGroup& group : job.groups) made->add_group(group);
    fs::path marker;
    for (std::size_t n = 0; n < planned.arrays.size(); ++n) {
        marker = begin_array(job, planned.arrays[n], planned.recipes[n], *made, target, o);
    }
    // Nothing has changed between the look at the sources and the moment from which on changes are noticed.
    if (identities(planned.recipes) != before) {
        throw invalid_argument("a source changes while the job is planned");
    }
    note_sources(job, before, marker);
    save_job(job, file, o);
    (void)made->keep();
    return job;
}

std::vector<UnitRange> parts_with(const Job& job, const std::vector<UnitRange>& units) {
    std::vector<UnitRange> parts;
    for (std::int64_t n = 0, at = 0; n < job.parts && at < std::ssize(units);) {
        const UnitRange part = job.part(n, job.parts);
        const UnitRange& wanted = units[static_cast<std::size_t>(at)];
        if (wanted.end <= part.first) {
            ++at;
            continue;
        }
        if (wanted.first < part.end) {
            if (!parts.empty() && parts.back().end == n) {
                ++parts.back().end;
            } else {
                parts.push_back({n, n + 1});
            }
        }
        ++n;
    }
    return parts;
}

}  // namespace tessera
