// tessera import, export, copy, rechunk
#include "transfer.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "bundle.h"
#include "destination.h"
#include "hierarchy.h"
#include "options.h"
#include "points.h"
#include "report.h"
#include "tree.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

/// What was made, for the report.
struct Made {
    std::string path;
    DType dtype;
    Shape shape;
    std::optional<Shape> chunk_shape;  ///< none for an array file
    std::int64_t chunks = 0;
    std::uint64_t bytes = 0;  ///< stored

    [[nodiscard]] std::uint64_t logical() const { return static_cast<std::uint64_t>(byte_count(shape, dtype.size())); }
};

Made made_of(const std::string& path, const Array& array) {
    const StoredSize stored = array.stored_size();
    return {path, array.dtype(), array.shape(), array.chunks(), stored.chunks, stored.bytes};
}

Value made_value(const Made& made) {
    Value value = Value::object();
    value.set("path", path_value(made.path));
    value.set("dtype", made.dtype.to_string());
    value.set("shape", shape_value(made.shape));
    if (made.chunk_shape) {
        value.set("chunks", shape_value(*made.chunk_shape));
        value.set("chunks_stored", made.chunks);
    }
    value.set("logical_bytes", made.logical());
    value.set("stored_bytes", made.bytes);
    value.set("ratio", ratio(made.logical(), made.bytes));
    return value;
}

std::string made_text(const Made& made, std::string_view done) {
    const std::string chunks =
        made.chunk_shape ? fmt::format("{} of {}, ", count_text(made.chunks, "chunk"), shape_text(*made.chunk_shape))
                         : "";
    return fmt::format("{} {} {}, {} → {} ({}{}, ratio {})", done, shape_text(made.shape), made.dtype.to_string(),
                       bytes_text(made.logical()), made.path, chunks, bytes_text(made.bytes),
                       ratio_text(made.logical(), made.bytes));
}

/// What is copied, exactly enough to know the same copy again: which file or array, as it is now, and how it is read.
std::string made_from(const ArraySource& from, const TransferOptions& o, const std::optional<Selection>& selection) {
    const ArrayInfo info = from.info();
    fs::path path = fs::absolute(split_array_path(from.name()).path);
    while (!fs::exists(path) && path.has_relative_path()) path = path.parent_path();  // what is in a zip
    // A file changes as a whole; of an array the folders change with every chunk that is replaced in them.
    std::string state;
    std::error_code ignored;
    std::vector<fs::path> parts{path};
    if (fs::is_directory(path, ignored)) {
        for (const auto& entry : fs::directory_iterator(path, ignored)) parts.push_back(entry.path());
        std::ranges::sort(parts);
    }
    for (const fs::path& part : parts) {
        const auto changed = fs::last_write_time(part, ignored).time_since_epoch().count();
        state += fmt::format(" {}", changed);
        if (fs::is_regular_file(part, ignored)) state += fmt::format("/{}", fs::file_size(part, ignored));
    }
    return printable(fmt::format("{} in {}, {} {}{}{}, changed{}", from.name(), path.string(), info.dtype.to_string(),
                                 info.shape.to_string(), selection ? fmt::format(" [{}]", selection->to_string()) : "",
                                 o.reverse_dims ? " reversed" : "", state));
}

std::unique_ptr<ArraySource> open_transferred(const TransferOptions& o, const std::string& path) {
    auto source = open_source(path, {.reverse_dims = o.reverse_dims});
    const ArrayInfo info = source->info();
    if (info.dtype.kind() == Kind::object) {
        // What the file's reader found says more than that there are objects; reading nothing makes it say so.
        const Region nothing(Index::filled(info.shape.rank(), 0), Shape::filled(info.shape.rank(), 0));
        NDArray none(info.dtype, nothing.extent);
        source->read_into(nothing, none, {});
    }
    if (o.points) return elements_at(std::move(source), open_source(*o.points));
    return source;
}

/// One array to be made.
struct Job {
    std::string source;  ///< as open_source takes it
    std::string node;    ///< where below the destination; "" is the destination itself
    PlannedArray plan;
};

std::optional<Selection> selection_of(const TransferOptions& o, const ArraySource& source) {
    return o.selection ? std::optional(Selection::parse(*o.selection, source.info().shape)) : std::nullopt;
}

/// What --fill says of one array: NAME=VALUE of the array of that name, else what is said of all.
std::optional<std::string> fill_of(const TransferOptions& o, const std::string& node) {
    std::optional<std::string> fill;
    for (const std::string& given : o.fills) {
        const std::size_t equals = given.find('=');
        if (node.empty() || equals == std::string::npos) {
            if (!fill) fill = given;
        } else if (given.compare(0, equals, node) == 0) {
            fill = given.substr(equals + 1);
        }
    }
    return fill;
}

Job plan_job(const TransferOptions& o, const ArraySource& opened, std::string source, std::string node) {
    TransferOptions own = o;
    own.fill = fill_of(o, node);
    PlannedArray plan = plan_array(opened, own, selection_of(o, opened));
    return {std::move(source), std::move(node), std::move(plan)};
}

/// An array of several that cannot be read.
struct Unreadable {
    std::string node;
    std::string why;
};

/// Everything that is to be made.
struct Plan {
    std::vector<PlannedGroup> groups;
    std::vector<Job> jobs;
    bool hierarchy = false;  ///< of which arrays that cannot be read are left out
    std::vector<Unreadable> unreadable;
};

/// Whether the others can be copied all the same: it is about what an array holds, and not about the place or the time.
bool is_unreadable(const Error& e) {
    return e.code() == ErrorCode::corrupt || e.code() == ErrorCode::unsupported;
}

/// Plans one array of several; what cannot be opened is kept apart.
void plan_one_of(const TransferOptions& o, Plan& plan, std::string source, std::string node) {
    std::unique_ptr<ArraySource> opened;
    try {
        opened = open_transferred(o, source);
    } catch (const Error& e) {
        if (!plan.hierarchy || !is_unreadable(e)) throw;
        plan.unreadable.push_back({std::move(node), e.what()});
        return;
    }
    plan.jobs.push_back(plan_job(o, *opened, std::move(source), std::move(node)));
}

std::string place_of(const TransferOptions& o, const Job& job) {
    return job.node.empty() ? o.destination : join_key(o.destination, job.node);
}

/// Copies the elements of a job into the array that was made for it.
void run_job(Session& session, const TransferOptions& o, const Job& job, const ArraySource* source, Array& array,
             bool resumed) {
    const std::optional<Selection> selection = selection_of(o, *source);
    const auto* stored = dynamic_cast<const Array*>(source);
    if (stored != nullptr && !job.plan.recode) {
        (void)copy_chunks(*stored, array, o.link, session.io());
        return;
    }
    if (o.link) session.note(fmt::format("{}: nothing is linked: {}", place_of(o, job), *job.plan.recode));
    CopyOptions options{.io = session.io(), .selection = selection};
    if (resumed) options.done = [&](const Region& region) { return array.is_stored(region); };
    copy_array(*source, array, options);
}

Value planned_value(const TransferOptions& o, const Job& job) {
    const ArrayMetadata& m = job.plan.metadata;
    const ChunkLayout layout = chunk_layout(m);
    Value value = Value::object();
    value.set("source", path_value(job.source));
    value.set("path", path_value(place_of(o, job)));
    value.set("format", job.plan.dialect->name);
    value.set("dtype", m.dtype.to_string());
    value.set("shape", shape_value(m.shape));
    value.set("chunks", shape_value(layout.chunks));
    if (!layout.shards.empty()) value.set("shards", shape_value(layout.shards));
    value.set("codec", codecs_text(layout.codecs));
    value.set("chunks_copied_as_they_are", !job.plan.recode);
    value.set("because", job.plan.recode ? Value(*job.plan.recode) : Value());
    Value changes = Value::array();
    for (const std::string& change : job.plan.changes) changes.push_back(change);
    value.set("changes", std::move(changes));
    return value;
}

std::string planned_text(const TransferOptions& o, const Job& job) {
    const ArrayMetadata& m = job.plan.metadata;
    const ChunkLayout layout = chunk_layout(m);
    std::string text = printable(fmt::format(
        "{} → {}: {} {}, {}, chunks {}{}, {}", job.source, place_of(o, job), shape_text(m.shape), m.dtype.to_string(),
        job.plan.dialect->name, shape_text(layout.chunks),
        layout.shards.empty() ? "" : " in shards " + shape_text(layout.shards), codecs_text(layout.codecs)));
    text += "\n";
    text += job.plan.recode ? printable(fmt::format("  chunks are encoded anew: {}", *job.plan.recode))
                            : fmt::format("  chunk files are {} as they are", o.link ? "linked" : "copied");
    for (const std::string& change : job.plan.changes) text += "\n" + printable("  " + change);
    return text + "\n";
}

/// What a transfer reports with --json, whatever it made: one array or several, directories or a file.
Value transfer_value(const TransferOptions& o, Value arrays, const std::vector<Unreadable>& unreadable) {
    Value left_out = Value::array();
    for (const Unreadable& array : unreadable) {
        Value one = Value::object();
        one.set("source", path_value(join_key(o.source, array.node)));
        one.set("because", array.why);
        left_out.push_back(std::move(one));
    }
    Value value = Value::object();
    value.set("path", path_value(o.destination));
    value.set("dry_run", o.dry_run);
    value.set("arrays", std::move(arrays));
    value.set("left_out", std::move(left_out));
    return value;
}

void report_plan(Session& session, const TransferOptions& o, const Plan& plan) {
    if (session.options().json) {
        Value list = Value::array();
        for (const Job& job : plan.jobs) list.push_back(planned_value(o, job));
        print_json(transfer_value(o, std::move(list), plan.unreadable));
        return;
    }
    for (const Job& job : plan.jobs) print(planned_text(o, job));
}

void require_free_file(const TransferOptions& o) {
    const fs::path path = split_array_path(o.destination).path;
    if (fs::is_directory(path)) {
        throw invalid_argument(fmt::format("{} is a directory; choose another name for the file", path.string()));
    }
    if (fs::exists(path) && !o.overwrite) {
        throw already_exists(fmt::format("{} exists; --overwrite replaces it", path.string()));
    }
}

/// Says that a .ra which was replaced left something to its successor: it may not be about the new data.
void note_trailing(Session& session, const fs::path& path) {
    if (path.extension() != ".ra") return;
    const Value trailing = find_array_file_format(path)->describe({path}).at("trailing_bytes");
    if (trailing == Value(0)) return;
    session.note(
        fmt::format("{}: the {} bytes behind the data of the old file are kept", path.string(), trailing.dump()));
}

Made copy_to_file(Session& session, const TransferOptions& o) {
    const ArrayPath path = split_array_path(o.destination);
    const std::unique_ptr<ArraySource> stored = open_transferred(o, o.source);
    ArrayFileOptions options{.order = stored->info().order,
                             .reverse_dims = o.reverse_dims,
                             .durable = session.options().durability != Durability::none,
                             .object_strings = o.object_strings};
    const auto converted = convert_for_array_file(path, *stored, options, session.io());
    const ArraySource* source = converted ? converted.get() : stored.get();
    std::optional<Selection> selection;
    if (o.selection) selection = Selection::parse(*o.selection, source->info().shape);
    if (o.order) options.order = parse_order("--order", *o.order);
    if (o.deflate) options.deflate_level = parse_number("--deflate", *o.deflate, 0, 9);

    const Shape shape = selection ? selection->shape() : source->info().shape;
    const auto sink = create_array_file(path, source->info().dtype, shape, options);
    copy_array(*source, *sink, {.io = session.io(), .selection = selection});
    note_trailing(session, path.path);
    return {o.destination, sink->info().dtype, shape, {}, 0, fs::file_size(path.path)};
}

/// The members of a file of several arrays that a path names as a whole; empty for everything else.
std::vector<std::string> several_members(const std::string& name) {
    const ArrayPath path = split_array_path(name);
    if (path.member || !fs::is_regular_file(path.path)) return {};
    const ArrayFileFormat* format = find_array_file_format(path.path);
    if (format == nullptr) return {};
    std::vector<std::string> members = format->members(path.path);
    return members.size() > 1 ? members : std::vector<std::string>{};
}

/// The group that a path names (a plain folder or zip with arrays in it is one too); nothing for an array or a file.
std::optional<Group> group_at(const std::string& path) {
    const std::optional<Place> place = probe_place(path, {.read_only = true});
    if (!place || probe_dialect(*place->store, place->prefix) != nullptr) return {};
    if (place->prefix.empty() && occupant(path) == Occupant::unfinished) return {};
    const bool group = probe_group_dialect(*place->store, place->prefix) != nullptr ||
                       !child_nodes(*place->store, place->prefix).empty();
    return group ? std::optional(Group::open(place->store, place->prefix)) : std::nullopt;
}

/// A member's name becomes a path below the destination, and must stay there.
void require_plain_name(const std::string& file, const std::string& member) {
    const fs::path path(member);
    const bool plain = !member.empty() && path.is_relative() && std::ranges::none_of(path, [](const fs::path& part) {
        return part.empty() || part == "." || part == ".." || part.string().starts_with(".tessera");
    });
    if (!plain) {
        throw invalid_argument(fmt::format(
            "{}: the member '{}' cannot be the name of an array; import it alone: {}::{}", file, member, file, member));
    }
}

PlannedGroup plan_group(Session& session, const TransferOptions& o, const Group& group, std::string node) {
    const Dialect* to = o.format ? &dialect_named(*o.format) : group.dialect();
    Value attributes = group.attributes().all();
    if (to != nullptr && to->save_group == nullptr && !attributes.as_object().empty()) {
        throw unsupported(fmt::format("{}: {} has no groups, and so no place for the attributes of this one",
                                      group.name(), to->name));
    }
    Value unknown = group.unknown();
    if (to != group.dialect()) {
        std::string names;
        for (const auto& [name, value] : unknown.as_object()) names += (names.empty() ? "" : ", ") + name;
        if (!names.empty()) {
            session.note(fmt::format("{}: members that only {} has are left out: {}", group.name(),
                                     group.dialect()->name, names));
        }
        unknown = Value::object();
    }
    return {std::move(node), to, std::move(attributes), std::move(unknown)};
}

/// xarray opens a hierarchy in which arrays name their dimensions only where all do; a scalar has none to name.
void name_no_dimensions(Plan& plan) {
    const auto keeps = [](const Job& job) {
        const std::optional<Value>& attributes = job.plan.attributes;
        return !job.plan.dialect->dimension_names && attributes && attributes->find(dimensions_attribute) != nullptr;
    };
    if (std::ranges::none_of(plan.jobs, keeps)) return;
    for (Job& job : plan.jobs) {
        if (!job.plan.metadata.shape.empty() || job.plan.dialect->dimension_names || keeps(job)) continue;
        if (!job.plan.attributes) job.plan.attributes = Value::object();
        job.plan.attributes->set(dimensions_attribute, Value::array());
        job.plan.changes.push_back(fmt::format("the attribute {} [] is added, for xarray", dimensions_attribute));
    }
}

/// Everything at and below a group, each group before what is in it.
void plan_hierarchy(Session& session, const TransferOptions& o, const Group& root, Plan& plan) {
    plan.groups.push_back(plan_group(session, o, root, ""));
    for (const tessera::Node& node : root.nodes()) {
        if (node.kind == NodeKind::array) {
            plan_one_of(o, plan, join_key(o.source, node.path), node.path);
        } else {
            plan.groups.push_back(plan_group(session, o, root.open_group(node.path), node.path));
        }
    }
    if (root.dialect() != nullptr && root.dialect()->dimension_names) name_no_dimensions(plan);
}

/// Members of a file become arrays in groups, where the generation has groups.
void plan_member_groups(const TransferOptions& o, const std::vector<std::string>& members,
                        std::vector<PlannedGroup>& groups) {
    const Dialect* dialect = o.format ? &dialect_named(*o.format) : nullptr;
    if (dialect == nullptr || dialect->save_group == nullptr) return;
    std::set<std::string> folders{""};
    for (const std::string& member : members) {
        for (fs::path folder = fs::path(member).parent_path(); !folder.empty(); folder = folder.parent_path()) {
            folders.insert(folder.string());
        }
    }
    for (const std::string& folder : folders) groups.push_back({folder, dialect, std::nullopt});
}

/// Each NAME of --fill must be an array of several.
void require_named(const TransferOptions& o, const Plan& plan) {
    for (const std::string& given : o.fills) {
        const std::size_t equals = given.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = given.substr(0, equals);
        if (std::ranges::find(plan.jobs, name, &Job::node) != plan.jobs.end()) continue;
        throw invalid_argument(fmt::format("--fill {}: {} holds no array {}", given, o.source, name));
    }
}

/// Members that cannot all be arrays of one directory: two of one name, one that would lie in another, and one with the
/// name of a metadata document. Refused before anything is written.
void require_apart(const std::string& source, const std::vector<std::string>& members) {
    std::set<std::string> names;
    for (const std::string& member : members) {
        if (!names.insert(member).second) {
            throw invalid_argument(fmt::format("{} holds two members {}; import each by itself", source, member));
        }
        for (const fs::path& part : fs::path(member)) {
            for (const Dialect& dialect : dialect_table()) {
                if (std::ranges::count(dialect.documents, part.string()) == 0) continue;
                throw invalid_argument(fmt::format("{}::{}: {} is the name of a metadata document; import it by itself",
                                                   source, member, part.string()));
            }
        }
    }
    for (const std::string& member : members) {
        for (fs::path above = fs::path(member).parent_path(); !above.empty(); above = above.parent_path()) {
            if (!names.contains(above.string())) continue;
            throw invalid_argument(
                fmt::format("{} holds {} and {}, and nothing can lie in an array; import each by itself", source,
                            above.string(), member));
        }
    }
}

/// All the arrays that the source names: itself, its members, or what is below it.
Plan plan_jobs(Session& session, const TransferOptions& o) {
    Plan plan;
    const std::vector<std::string> members = several_members(o.source);
    for (const std::string& member : members) require_plain_name(o.source, member);
    require_apart(o.source, members);
    const std::optional<Group> root = members.empty() ? group_at(o.source) : std::nullopt;
    if (!root && members.empty()) {
        plan.jobs.push_back(plan_job(o, *open_transferred(o, o.source), o.source, ""));
        return plan;
    }
    plan.hierarchy = root.has_value();
    if (root) plan_hierarchy(session, o, *root, plan);
    for (const char* option : {o.selection ? "--sel" : nullptr, o.dimensions ? "--dims" : nullptr}) {
        if (option == nullptr) continue;
        const std::string one = members.empty()
                                    ? join_key(o.source, plan.jobs.empty() ? "NAME" : plan.jobs.front().node)
                                    : o.source + "::" + members.front();
        throw invalid_argument(fmt::format("{}: {} holds several arrays; name one of them: {}", option, o.source, one));
    }
    if (occupant(o.destination) == Occupant::array) {
        throw already_exists(
            fmt::format("{} is an array, and {} holds several, which need a directory", o.destination, o.source));
    }
    if (!members.empty()) plan_member_groups(o, members, plan.groups);
    for (const std::string& member : members) plan_one_of(o, plan, o.source + "::" + member, member);
    if (plan.jobs.empty() && !plan.unreadable.empty()) throw unsupported(plan.unreadable.front().why);
    require_named(o, plan);
    return plan;
}

/// A group is made, or replaced on request; its arrays are refused one by one where others lie.
void require_free_group(const TransferOptions& o) {
    if (o.overwrite || o.resume) return;
    if (const std::optional<Group> there = group_at(o.destination)) {
        throw already_exists(
            fmt::format("{}: a group is there already; --overwrite replaces what {} has too", there->name(), o.source));
    }
}

/// Makes an array. Of a hierarchy, one that turns out to be unreadable is taken back, and the others go on: false.
bool make_array(Session& session, const TransferOptions& o, const Job& job, Destination& destination, Plan& plan) {
    const std::unique_ptr<ArraySource> source = open_transferred(o, job.source);
    for (const std::string& change : job.plan.changes) session.note(fmt::format("{}: {}", place_of(o, job), change));
    Array& array = destination.add(job.node, job.plan, made_from(*source, o, selection_of(o, *source)));
    try {
        run_job(session, o, job, source.get(), array, destination.resumed());
        return true;
    } catch (const Error& e) {
        if (!plan.hierarchy || !is_unreadable(e) || o.resume || !destination.drop()) throw;
        plan.unreadable.push_back({job.node, e.what()});
        return false;
    }
}

/// A free name beside the destination, for what must not replace what is there.
std::string incomplete_name(const std::string& destination) {
    const fs::path path =
        fs::path(destination).has_filename() ? fs::path(destination) : fs::path(destination).parent_path();
    for (int n = 1;; ++n) {
        fs::path beside = path;
        beside += n == 1 ? ".incomplete" : fmt::format(".incomplete-{}", n);
        beside += path.extension() == ".zip" ? ".zip" : "";
        if (!fs::exists(fs::symlink_status(beside))) return beside.string();
    }
}

/// Makes the groups and arrays in the order of their paths, a group before what is in it. Returns the arrays made.
std::set<const Job*> make_all(Session& session, const TransferOptions& o, Plan& plan, Destination& destination) {
    std::map<fs::path, const PlannedGroup*> groups_left;
    std::map<fs::path, const Job*> jobs_left;
    for (const PlannedGroup& group : plan.groups) groups_left.emplace(group.node, &group);
    for (const Job& job : plan.jobs) jobs_left.emplace(job.node, &job);
    const auto add_groups = [&](auto end) {
        for (auto it = groups_left.begin(); it != end; it = groups_left.erase(it)) destination.add_group(*it->second);
    };
    std::set<const Job*> made;
    for (const auto& entry : jobs_left) {
        add_groups(groups_left.upper_bound(entry.first));
        if (make_array(session, o, *entry.second, destination, plan)) made.insert(entry.second);
    }
    add_groups(groups_left.end());
    return made;
}

/// Copies what the plan has, apart from what cannot be read, and makes it all appear.
std::vector<Made> copy_planned(Session& session, const TransferOptions& o, Plan& plan,
                               const DestinationLock& building) {
    const bool replaces = o.overwrite && fs::exists(o.destination) && !o.skip_bad;
    if (replaces && !plan.unreadable.empty()) {
        TransferOptions beside = o;
        beside.destination = incomplete_name(o.destination);
        beside.overwrite = false;
        const DestinationLock building_beside(beside.destination, session.store());
        std::vector<Made> made = copy_planned(session, beside, plan, building_beside);
        session.note(
            fmt::format("{} is as it was: the copy lacks {}, and lies in {}; --skip-bad replaces it all the same",
                        o.destination, count_text(std::ssize(plan.unreadable), "array"), beside.destination));
        return made;
    }
    std::unique_ptr<Destination> destination = open_destination(
        o.destination, {.overwrite = o.overwrite, .resume = o.resume, .store = session.store(), .lock = &building});
    std::set<const Job*> done;
    try {
        done = make_all(session, o, plan, *destination);
    } catch (const Error& e) {
        if (!o.resume) throw;
        const std::string kept = destination->keep();
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(
            fmt::format("interrupted; what is written stays in {}: the same command goes on with it", kept));
    }
    if (done.empty() && !plan.unreadable.empty()) throw unsupported(plan.unreadable.front().why);
    if (replaces && !plan.unreadable.empty()) {
        std::erase_if(plan.jobs, [&](const Job& job) {
            return std::ranges::find(plan.unreadable, job.node, &Unreadable::node) != plan.unreadable.end();
        });
        destination.reset();
        return copy_planned(session, o, plan, building);
    }
    destination->commit();
    std::vector<Made> made;
    for (const Job& job : plan.jobs) {
        if (!done.contains(&job)) continue;
        const std::string place = place_of(o, job);
        made.push_back(made_of(place, Array::open(place, {.read_only = true})));
    }
    return made;
}

/// `left_out` becomes the arrays that could not be read.
std::vector<Made> copy_to_arrays(Session& session, const TransferOptions& o, const DestinationLock& building,
                                 std::vector<Unreadable>& left_out) {
    Plan plan = plan_jobs(session, o);
    if (o.dry_run) {
        report_plan(session, o, plan);
    } else if (!plan.groups.empty() && plan.groups.front().attributes) {
        require_free_group(o);
    }
    std::vector<Made> made = o.dry_run ? std::vector<Made>() : copy_planned(session, o, plan, building);
    for (const Unreadable& array : plan.unreadable) {
        session.note(fmt::format("{} is left out: {}", join_key(o.source, array.node), array.why));
    }
    left_out = std::move(plan.unreadable);
    return made;
}

/// Refuses options of the other kind of destination, rather than ignoring them.
void require_fitting_options(const TransferOptions& o, bool to_file) {
    const auto refuse = [&](const std::optional<std::string>& given, const char* option) {
        if (!given) return;
        throw invalid_argument(
            to_file ? fmt::format("{}: only for arrays, but {} is an array file", option, o.destination)
                    : fmt::format("{}: only for array files, but {} becomes an array", option, o.destination));
    };
    if (to_file) {
        refuse(o.chunks, "--chunks");
        refuse(o.codec, "--codec");
        refuse(o.fills.empty() ? std::nullopt : std::optional(o.fills.front()), "--fill");
        refuse(o.dimensions, "--dims");
        refuse(o.format, "--format");
        refuse(o.shards, "--shard");
        refuse(o.separator, "--separator");
        if (o.link) throw invalid_argument("--link: only chunk files can be linked, and an array file has none");
        if (o.dry_run) throw invalid_argument("--dry-run: only for arrays");
        if (o.resume) throw invalid_argument("--resume: only for arrays; a file is written afresh");
        if (o.deflate && split_array_path(o.destination).path.extension() != ".npz") {
            throw invalid_argument(fmt::format("--deflate: only for .npz, but found {}", o.destination));
        }
    } else {
        refuse(o.deflate, "--deflate");
    }
}

/// Before the first look at the destination, until it is complete.
DestinationLock lock_destination(const Session& session, const TransferOptions& o, bool to_file) {
    const fs::path path = to_file ? split_array_path(o.destination).path : fs::path(o.destination);
    // The folder of a file is not made where there is none, and then the file cannot be made either.
    const bool is_file = to_file || path.extension() == ".zip";
    if (o.dry_run || (is_file && !fs::is_directory(fs::absolute(path).parent_path()))) return {};
    return DestinationLock(path, session.store());
}

void report_bundle(Session& session, const TransferOptions& o, const std::vector<std::string>& names,
                   std::string_view done) {
    const std::uint64_t bytes = fs::file_size(o.destination);
    if (session.options().json) {
        Value members = Value::array();
        for (const std::string& name : names) {
            Value member = Value::object();
            member.set("source", path_value(join_key(o.source, name)));
            member.set("path", path_value(o.destination + "::" + name));
            members.push_back(std::move(member));
        }
        Value value = transfer_value(o, std::move(members), {});
        value.set("stored_bytes", bytes);
        print_json(value);
    } else if (!session.options().quiet) {
        print(
            printable(fmt::format("{} {} → {} ({})", done, count_text(static_cast<std::int64_t>(names.size()), "array"),
                                  o.destination, bytes_text(bytes))) +
            "\n");
    }
}

}  // namespace

void declare_object_strings(CLI::App& app, TransferOptions& o) {
    app.add_flag("--object-strings", o.object_strings,
                 "strings of variable length as Python objects in .npy and .npz, not padded to the longest");
}

bool names_array_file(const std::string& path) {
    const fs::path extension = split_array_path(path).path.extension();
    return std::ranges::any_of(array_file_formats(), [&](const auto& f) { return extension == f.extension; });
}

namespace {

/// With the format of the group around the destination, unless one is chosen.
TransferOptions following(Session& session, const TransferOptions& o) {
    TransferOptions own = o;
    const Dialect* above = o.format ? nullptr : format_above(o.destination);
    if (above == nullptr) return own;
    own.format = above->name;
    const std::optional<Place> source = probe_place(o.source, {.read_only = true});
    const auto node = source ? probe_node(*source->store, source->prefix) : std::nullopt;
    if (!node || node->dialect != above) {
        session.note(
            fmt::format("{}: {}, as the group around it is; --format chooses another", o.destination, above->name));
    }
    return own;
}

}  // namespace

int transfer(Session& session, const TransferOptions& o, std::string_view done) {
    const bool to_file = names_array_file(o.destination);
    require_fitting_options(o, to_file);
    const std::vector<std::string> bundle = to_file ? arrays_below(o.source) : std::vector<std::string>{};
    const DestinationLock building = lock_destination(session, o, to_file);
    if (to_file) require_free_file(o);

    const bool existed = fs::exists(split_array_path(o.destination).path);
    std::vector<Made> made;
    std::vector<Unreadable> left_out;
    try {
        if (!bundle.empty()) {
            write_bundle(session, o, bundle);
        } else if (to_file) {
            made.push_back(copy_to_file(session, o));
        } else {
            made = copy_to_arrays(session, following(session, o), building, left_out);
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled || o.resume) throw;
        throw cancelled(existed ? fmt::format("interrupted; {} is as it was before", o.destination)
                                : fmt::format("interrupted; nothing is left at {}", o.destination));
    }
    session.clear_progress();

    const int exit = left_out.empty() ? exit_done : exit_differences;
    if (o.dry_run) return exit;
    if (!bundle.empty()) {
        report_bundle(session, o, bundle, done);
    } else if (session.options().json) {
        Value list = Value::array();
        std::uint64_t bytes = 0;
        for (const Made& one : made) {
            list.push_back(made_value(one));
            bytes += one.bytes;
        }
        Value value = transfer_value(o, std::move(list), left_out);
        value.set("stored_bytes", bytes);
        print_json(value);
    } else if (!session.options().quiet) {
        for (const Made& one : made) print(printable(made_text(one, done)) + "\n");
    }
    return exit;
}

namespace {

void declare_selection(CLI::App& app, TransferOptions& o) {
    app.add_option("--sel", o.selection, "copy only this part: '10:20, ::2, 5, ...'")->option_text("SELECTION");
    app.add_flag("--overwrite", o.overwrite, "replace what lies at the destination, once the new one is complete");
}

void declare_array_options(CLI::App& app, TransferOptions& o, bool chunks_required) {
    app.add_option("--chunks", o.chunks, "lengths of a chunk")
        ->required(chunks_required)
        ->option_text(chunks_required ? "SHAPE (required)" : "SHAPE");
    app.add_flag("--resume", o.resume, "go on with an unfinished copy, and leave one when interrupted");
    app.add_option("--codec", o.codec, "codecs in order, such as blosc:zstd:5:shuffle, delta,zstd:3 or none")
        ->option_text("CODECS");
    app.add_option("--shard", o.shards, "lengths of a shard, a multiple of chunks (v3); none takes shards apart")
        ->option_text("SHAPE");
    app.add_option("--fill", o.fills, "fill value, JSON or text; NAME=VALUE of one array of a group (repeatable)")
        ->allow_extra_args(false)
        ->option_text("VALUE");
    app.add_option("--format", o.format,
                   "generation: zmeta, v1, v2 or v3 (default: that of the group around the destination, else the "
                   "source's, for array files zmeta)")
        ->option_text("FORMAT");
    app.add_option("--dims", o.dimensions, "names of the dimensions: time,y,x")->option_text("NAMES");
    app.add_flag("--skip-bad", o.skip_bad, "of a group: replace what is there also where some arrays cannot be read");
    app.add_option("--separator", o.separator, "between the indices of chunk keys: . or / (v2, v3)")
        ->option_text(".|/");
    app.add_option("--order", o.order, "order of the elements in a chunk, or in an array file")->option_text("C|F");
    app.add_flag("--dry-run", o.dry_run, "say what would be made, and whether chunk files stay valid; make nothing");
}

void declare_file_options(CLI::App& app, TransferOptions& o) {
    app.add_option("--deflate", o.deflate, "compress an .npz: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    declare_object_strings(app, o);
}

void declare_reverse_dims(CLI::App& app, TransferOptions& o) {
    app.add_flag("--reverse-dims", o.reverse_dims, "reverse the dimensions of a .ra, as row-major readers show it");
}

}  // namespace

Run declare_import(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("FILE", o->source, "an array file, or a member: file.npz::name")->required()->option_text(" ");
    app.add_option("PATH", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, false);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (names_array_file(o->destination)) {
            throw invalid_argument(
                fmt::format("import makes an array directory, but {} is named as an array file; "
                            "use `tessera copy`, or another name",
                            o->destination));
        }
        return transfer(session, *o, "imported");
    };
}

Run declare_export(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("PATH", o->source, "an array")->required()->option_text(" ");
    app.add_option("FILE", o->destination, "the file to write: .npy, .npz, file.npz::name, .ra or .mldf")
        ->required()
        ->option_text(" ");
    app.add_option("--order", o->order, "order of the elements in an array file")->option_text("C|F");
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) {
        if (!names_array_file(o->destination)) {
            std::string extensions;
            for (const auto& format : array_file_formats()) {
                extensions += fmt::format("{}{}", extensions.empty() ? "" : ", ", format.extension);
            }
            throw invalid_argument(
                fmt::format("export writes an array file, and the extension says which kind: expected "
                            "one of {}, found {}",
                            extensions, o->destination));
        }
        return transfer(session, *o, "exported");
    };
}

Run declare_copy(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, a group, an array file or a member of one")
        ->required()
        ->option_text(" ");
    app.add_option("DST", o->destination, "a directory, or a .zip or array file by its extension")
        ->required()
        ->option_text(" ");
    declare_array_options(app, *o, false);
    app.add_flag("--link", o->link, "hard links in place of copies of chunk files that stay valid");
    declare_file_options(app, *o);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) { return transfer(session, *o, "copied"); };
}

Run declare_rechunk(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    app.add_option("SRC", o->source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", o->destination, "where the array is made: a directory")->required()->option_text(" ");
    declare_array_options(app, *o, true);
    declare_reverse_dims(app, *o);
    declare_selection(app, *o);
    return [o](Session& session) { return transfer(session, *o, "rechunked"); };
}

}  // namespace tessera::cli
