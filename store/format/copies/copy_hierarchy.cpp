#include <tessera/action.h>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/place.h>
#include <tessera/secrets.h>
#include <tessera/turned.h>
#include <tessera/zip_name.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "array_access.h"
#include "array_state.h"
#include "hierarchy_plan.h"
#include "seal_mark.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// As text for a JSON document: if it is not UTF-8, bytes above ASCII become \xNN.
std::string plain_text(const std::string& text) {
    if (is_utf8(text)) return text;
    std::string plain;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        plain += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    return plain;
}

std::string place_of(const HierarchyCopy& o, const PlannedCopy& job) {
    return job.node.empty() ? o.destination : join_key(o.destination, job.node);
}

/// Time and size of a file, time of a directory. The epoch is that of std::filesystem, because the text is compared
/// with markers that earlier versions left in unfinished copies.
std::string stamp_text(const std::optional<PathFacts>& facts) {
    using std::chrono::file_clock;
    if (!facts) return fmt::format(" {}", fs::file_time_type::min().time_since_epoch().count());
    const std::chrono::sys_time<std::chrono::nanoseconds> modified{std::chrono::nanoseconds(facts->modified)};
    return fmt::format(" {}{}", file_clock::from_sys(modified).time_since_epoch().count(),
                       facts->regular ? fmt::format("/{}", facts->size) : "");
}

/// Text that changes when a file or array does, from file times and sizes alone. `facts` are those of the path.
std::string state_of(const fs::path& path, const std::optional<PathFacts>& facts) {
    // A changed file has a new time. For an array, folders change with every chunk replaced in them.
    std::vector<fs::path> parts;
    std::error_code ignored;
    if (facts && facts->directory) {
        for (const auto& entry : fs::directory_iterator(path, ignored)) parts.push_back(entry.path());
        std::ranges::sort(parts);
    }
    std::string state = stamp_text(facts);
    for (const fs::path& part : parts) state += stamp_text(path_facts(part));
    return state;
}

/// Where the source lies in the file system: the file or directory, without members or paths in it.
fs::path file_of(const ArraySource& from, const Located& at) {
    if (at.format != nullptr) return at.file.path;
    if (at.place && is_local(at.file.path) && !at.is_directory()) return at.place->store->name();
    return split_array_path(from.name()).path;
}

/// The same as state_of(), of what lies in another kind of store. The path of an array may lack a query that reading it
/// needs, but the store that was opened has it.
std::string state_far_away(const ArraySource& from, const Located& at, const StoreOptions& options) {
    if (!at.place) return version_text(find_place(at.file.path, options));
    Place place = *at.place;
    if (const auto* array = as_array(model_of(from))) place.prefix = ArrayAccess::state(*array)->prefix;
    return version_text(place);
}

/// Identifies a copy, to recognise it when it is resumed: the file or array in its present version, and how it is read.
std::string made_from(const ArraySource& from, const HierarchyCopy& o, const std::optional<Selection>& selection) {
    if (o.open) return o.made_from;
    if (o.set) return plain_text(fmt::format("{}: {}", from.name(), o.made_from));
    const ArrayInfo info = from.info();
    const fs::path path = file_of(from, *o.at);
    const bool below = o.at->is_directory() && path != o.at->file.path;
    const std::string state = is_local(path) ? state_of(path, below ? path_facts(path) : o.at->facts)
                                             : state_far_away(from, *o.at, to_read(o.from));
    const CastSource* const cast = as_cast(model_of(from));
    std::string rule = cast == nullptr ? "" : fmt::format(" by {}", cast_name(cast->rule()));
    // They say what becomes of the values.
    if (const Turn* const turn = turn_of(from)) rule += fmt::format(" from {} on", turn->first);
    if (from.model() != nullptr) rule += " with " + attributes_beside_model(from).dump();
    return plain_text(fmt::format("{} in {}, {}{} {}{}{}, changed{}", from.name(),
                                  is_local(path) ? fs::absolute(path).string() : without_secrets(path.string()),
                                  info.dtype.to_string(), rule, info.shape.to_string(),
                                  selection ? fmt::format(" [{}]", selection->to_string()) : "",
                                  o.reverse_dims ? " reversed" : "", state));
}

/// Copies the elements of a job into the array that was made for it.
void run_job(const HierarchyCopy& o, const PlannedCopy& job, const ArraySource* source, Array& array, bool resumed) {
    const std::optional<Selection> selection = selection_of(o, *source);
    const auto* stored = as_array(*source);
    if (stored != nullptr && !job.plan.recode) {
        (void)copy_chunks(*stored, array, {.link = o.link, .verify = o.verify, .fresh = !resumed, .io = o.io});
        return;
    }
    if (o.link) o.tell(fmt::format("{}: nothing is linked: {}", place_of(o, job), *job.plan.recode));
    CopyOptions options{.io = o.io, .selection = selection};
    // Where chunks differ in length, blocks share some, and one that is stored may lack a part.
    if (resumed && array.metadata().edges.empty())
        options.done = [&](const Region& region) { return array.is_stored(region); };
    const FillValue& fill = array.metadata().fill;
    options.skip_absent =
        may_omit(fill) && source->info().dtype == array.dtype() && source->absent_element() == fill.bytes;
    if (const auto note = one_thread_note(source->info(), array.info(), options))
        o.tell({fmt::format("{}: {}", place_of(o, job), note->text), note->advice});
    copy_array(*source, array, options);
}

/// A group is created, or replaced on request. Existing arrays inside it are refused one by one.
void require_free_group(const HierarchyCopy& o) {
    if (o.overwrite || o.resume) return;
    if (const std::optional<Group> there = group_at(locate(o.destination, to_read(o.store)))) {
        throw already_exists("{} is already a group", there->name())
            .advising(Action::overwrite, fmt::format("replaces those of its arrays that {} has too", o.source));
    }
}

/// The result for one of several arrays.
enum class Outcome : std::uint8_t {
    made,
    dropped,  ///< unreadable, and removed again
    spoilt,   ///< unreadable, and the destination cannot remove it: everything must be made again without it
};

Outcome make_array(const HierarchyCopy& o, const PlannedCopy& job, Destination& destination, HierarchyPlan& plan) {
    const std::shared_ptr<const ArraySource> source = plan.only ? plan.only : open_copied(o, job.source);
    for (const Note& change : job.plan.changes) {
        o.tell({fmt::format("{}: {}", place_of(o, job), change.text), change.advice});
    }
    Array& array = destination.add(job.node, job.plan, made_from(*source, o, selection_of(o, *source)));
    try {
        run_job(o, job, source.get(), array, destination.resumed());
        return Outcome::made;
    } catch (const Error& e) {
        // A copy holds a chunk of either side, decoded and encoded.
        if (e.code() == ErrorCode::budget && large_chunk_note(job.plan.metadata, o.io.max_memory / 2)) {
            throw e.within(fmt::format("{}: chunks of {} are large", place_of(o, job),
                                       chunk_layout(job.plan.metadata).chunks.to_string()));
        }
        if (!plan.hierarchy || !is_unreadable(e) || o.resume) throw;
        plan.unreadable.push_back({job.node, job.source, e.what()});
        return destination.drop() ? Outcome::dropped : Outcome::spoilt;
    }
}

/// The arrays that were made, and whether the destination must be made again.
struct Attempt {
    std::set<const PlannedCopy*> made;
    bool spoilt = false;
};

/// Makes groups and arrays in the order of their paths, a group before its members. Once the destination is spoilt, the
/// rest is only read, so that the next attempt knows all unreadable arrays.
Attempt make_all(const HierarchyCopy& o, HierarchyPlan& plan, Destination& destination) {
    std::map<fs::path, const PlannedGroup*> groups_left;
    std::map<fs::path, const PlannedCopy*> jobs_left;
    for (const PlannedGroup& group : plan.groups) groups_left.emplace(group.node, &group);
    for (const PlannedCopy& job : plan.jobs) jobs_left.emplace(job.node, &job);
    const auto add_groups = [&](auto end) {
        for (auto it = groups_left.begin(); it != end; it = groups_left.erase(it)) destination.add_group(*it->second);
    };
    Attempt attempt;
    for (const auto& entry : jobs_left) {
        const PlannedCopy& job = *entry.second;
        if (attempt.spoilt) {
            if (auto why = why_unreadable(o, job.source))
                plan.unreadable.push_back({job.node, job.source, *std::move(why)});
            continue;
        }
        add_groups(groups_left.upper_bound(entry.first));
        const Outcome outcome = make_array(o, job, destination, plan);
        if (outcome == Outcome::made) attempt.made.insert(&job);
        attempt.spoilt = outcome == Outcome::spoilt;
    }
    if (!attempt.spoilt) add_groups(groups_left.end());
    return attempt;
}

/// Links to groups that were copied by another path become links in the copy. Other links stay in `passed`.
void make_links(const fs::path& destination, std::vector<PassedFolder>& passed) {
    if (!is_local(destination)) return;
    std::erase_if(passed, [&](const PassedFolder& link) {
        const fs::path place = destination / link.path;
        std::error_code error;
        if (link.why != PassedFolder::Why::second_way || !fs::is_directory(destination / link.target, error)) {
            return false;
        }
        const fs::path target = (destination / link.target).lexically_relative(place.parent_path());
        if (fs::is_symlink(place, error)) return fs::read_symlink(place, error) == target;  // from an earlier copy
        fs::create_directories(place.parent_path(), error);
        fs::create_directory_symlink(target, place, error);
        return !error;
    });
}

/// A file of a dataset becomes a group as xarray writes it: with consolidated metadata, where readers look for them.
void consolidate_dataset(const HierarchyCopy& o) {
    if (is_local(o.destination) && !fs::is_directory(o.destination)) return;
    const auto there = group_at(locate(o.destination, to_read(o.store)));
    if (!there || there->dialect() == nullptr || !there->dialect()->has_groups()) return;
    Group::open(o.destination, o.store).consolidate();
}

/// What lies beside the arrays and groups of the source: consolidated metadata are written anew, a seal is not copied.
void follow_source(const HierarchyCopy& o, const HierarchyPlan& plan) {
    if (o.set && o.set->consolidated) consolidate_dataset(o);
    if (o.at && o.at->format != nullptr && o.at->format->groups != nullptr && plan.hierarchy) consolidate_dataset(o);
    if (!o.at || !o.at->place) return;
    const Place& from = *o.at->place;
    if (from.store->contains(from.key(seal_sums_key))) {
        o.tell({fmt::format("{} is sealed, and {} is not", o.source, o.destination),
                {{Action::seal, "seals it", o.destination}}});
    }
    if (!plan.hierarchy) return;
    const std::optional<Group> group = group_at(*o.at);
    if (!group || !group->consolidated_state().present) return;
    const bool folder = !is_local(o.destination) || fs::is_directory(o.destination);
    if (!folder || !group_at(locate(o.destination, to_read(o.store)))) {
        o.tell(fmt::format("the consolidated metadata of {} are not copied: {} cannot hold them", o.source,
                           o.destination));
        return;
    }
    Group there = Group::open(o.destination, o.store);
    if (there.dialect() != nullptr && there.dialect()->has_groups()) there.consolidate();
}

/// Makes all arrays of the plan. What is written stays after an interruption, if the copy can be resumed.
Attempt make_or_keep(const HierarchyCopy& o, HierarchyPlan& plan, Destination& destination) {
    try {
        return make_all(o, plan, destination);
    } catch (const Error& e) {
        if (!o.resume) throw;
        const std::string kept = destination.keep();
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled("interrupted; what is written stays in {}: the same command goes on with it", kept);
    }
}

CopiedHierarchy copied_hierarchy(const HierarchyCopy& o, const HierarchyPlan& plan) {
    const bool folder = is_local(o.destination) && fs::is_directory(o.destination);
    const auto whole = folder ? std::nullopt : probe_place(o.destination, to_read(o.store));
    CopiedHierarchy result{.path = o.destination};
    for (const PlannedCopy& job : plan.jobs) {
        const std::string place = place_of(o, job);
        const Array array =
            whole ? Array::open({whole->store, whole->key(job.node)}) : Array::open(place, to_read(o.store));
        result.made.push_back(copied_array(place, array));
        result.bytes += result.made.back().bytes.value_or(0);
    }
    return result;
}

/// Copies everything in the plan except unreadable arrays, and commits it.
CopiedHierarchy copy_planned(const HierarchyCopy& o, HierarchyPlan& plan, const DestinationLock& building) {
    const bool replaces = o.overwrite && is_anything_at(o.destination, o.store) && !o.skip_unreadable;
    if (replaces && !plan.unreadable.empty()) {
        HierarchyCopy beside = o;
        beside.destination = incomplete_name(o.destination, o.store);
        beside.overwrite = false;
        const DestinationLock building_beside(beside.destination, o.store);
        return copy_planned(beside, plan, building_beside);
    }
    std::unique_ptr<Destination> destination = open_destination(
        o.destination, {.overwrite = o.overwrite, .resume = o.resume, .store = o.store, .lock = &building});
    const Attempt attempt = make_or_keep(o, plan, *destination);
    const std::size_t had = plan.jobs.size();
    std::erase_if(plan.jobs, [&](const PlannedCopy& job) {
        return std::ranges::find(plan.unreadable, job.node, &LeftOut::node) != plan.unreadable.end();
    });
    if (plan.jobs.empty() && !plan.unreadable.empty()) throw unsupported(plan.unreadable.front().why);
    if (attempt.spoilt || (replaces && plan.jobs.size() < had)) {
        destination.reset();
        return copy_planned(o, plan, building);
    }
    destination->commit();
    make_links(o.destination, plan.passed);
    return copied_hierarchy(o, plan);
}

/// The lock to hold from before the first look at the destination until it is complete.
DestinationLock lock_for(const HierarchyCopy& o) {
    return o.dry_run ? DestinationLock() : lock_destination(o.destination, o.store);
}

/// Chooses the format of the group around the destination, unless one is given.
void follow_group_above(HierarchyCopy& o) {
    const Dialect* above = o.arrays.format ? nullptr : format_above(o.destination, o.store);
    if (above == nullptr) return;
    o.arrays.format = above->name;
    const bool is_node = o.at && (o.at->kind == PathKind::array || o.at->kind == PathKind::group);
    if (!is_node || o.at->dialect != above) {
        o.tell({fmt::format("{} is made in format {}, like the group around it", o.destination, above->name),
                {{Action::format, "chooses another"}}});
    }
}

/// The arrays of a source of several that become one file; empty if the source is one array.
std::vector<std::string> bundled(const HierarchyCopy& o, std::vector<PassedFolder>& passed) {
    if (o.open) return {};
    if (o.members.empty()) return arrays_below(o, passed);
    const ArrayFileFormat* format = named_array_file_format(o.destination);
    const bool takes_several = format != nullptr && format->holds_several();
    if (!takes_several || split_array_path(o.destination).member) return {};  // opening it throws that it holds several
    require_distinct(o.source, o.members);
    std::vector<std::string> names = o.members;
    std::erase_if(names, [&](const std::string& name) { return is_excluded(o, name); });
    return names;
}

/// plan_hierarchy(). If the arrays cannot all be made as asked in the format that they would have, they all get v3, or,
/// where they come from a file, v2.
HierarchyPlan plan_in_one_format(HierarchyCopy& o) {
    const bool members = !o.members.empty(), in_file = o.set != nullptr || (o.at && o.at->format != nullptr);
    if (o.arrays.format || (!in_file && !(o.at && o.at->kind == PathKind::group))) return plan_hierarchy(o);
    if (members || !in_file) o.arrays.may_take_v3 = false;
    try {
        return plan_hierarchy(o);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported || !(in_file || asks_for_a_format(o.arrays))) throw;
        for (const std::string_view format : {"v3", "v2"}) {
            if (format == "v2" && !in_file) continue;
            o.arrays.format = format;
            try {
                HierarchyPlan plan = plan_hierarchy(o);
                o.tell({fmt::format("{} is made in format {}, because {}", o.destination, format, e.what()),
                        {{Action::format, "chooses another"}}});
                return plan;
            } catch (const Error&) {
                o.arrays.format.reset();  // it is not the format
            }
        }
        throw;
    }
}

CopiedHierarchy copy_to_arrays(HierarchyCopy& o, const DestinationLock& building) {
    follow_group_above(o);
    HierarchyPlan plan = plan_in_one_format(o);
    CopiedHierarchy result{.path = o.destination};
    if (!o.dry_run) {
        if (!plan.groups.empty() && plan.groups.front().attributes) require_free_group(o);
        result = copy_planned(o, plan, building);
        if (result.path == o.destination) follow_source(o, plan);
    }
    result.planned = std::move(plan.jobs);
    result.left_out = std::move(plan.unreadable);
    result.passed = std::move(plan.passed);
    return result;
}

/// A non-owning source.
class BorrowedSource final : public ArraySource {
public:
    explicit BorrowedSource(const ArraySource& source) : source_(source) {}
    [[nodiscard]] ArrayInfo info() const override { return source_.info(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        source_.read_into(region, out, io);
    }
    [[nodiscard]] const std::string& name() const override { return source_.name(); }
    [[nodiscard]] Value attribute_values() const override { return source_.attribute_values(); }

private:
    const ArraySource& source_;
};

}  // namespace

CopiedArray copied_array(const std::string& path, const Array& array) {
    const StoredSize stored = array.stored_size();
    return {path,          array.dtype(), array.shape(),        array.chunks(),
            stored.chunks, stored.bytes,  array.dialect().name, array.info().shards};
}

CopiedHierarchy copy_hierarchy(const ArraySource& source, const std::string& destination,
                               const HierarchyOptions& options) {
    HierarchyOptions own = options;
    own.open = [&source]() -> std::unique_ptr<ArraySource> {
        if (const auto* array = as_array(source)) return std::make_unique<Array>(*array);
        return std::make_unique<BorrowedSource>(source);
    };
    if (own.made_from.empty()) own.made_from = source.name();
    return copy_hierarchy(source.name(), destination, own);
}

namespace {

/// Throws already_exists for what would be replaced without leave. An array is added to a file where its format can.
void require_free_member(const std::string& destination, bool overwrite) {
    ArrayPath path = split_array_path(destination);
    const ArrayFileFormat& format = *named_array_file_format(destination);
    if (!path.member || !format.adds_members || !fs::is_regular_file(path.path)) {
        return require_free_file(path.path, overwrite);
    }
    const std::string name = *std::exchange(path.member, std::nullopt);
    const std::vector<std::string> members = format.members(path);  // it is a file of this format, and can be read
    if (!overwrite && std::ranges::find(members, name) != members.end()) {
        throw already_exists("{} exists", destination).advising(Action::overwrite, "replaces it in the file");
    }
}

/// Throws if a copy of a group would lie in the group.
void require_outside(const std::string& group, const std::string& destination) {
    if (!real_path(destination).string().starts_with(real_path(group).string() + '/')) return;
    throw invalid_argument("{}: lies in {}, which is copied; choose another place", destination, group);
}

}  // namespace

CopiedHierarchy copy_hierarchy(const std::string& source, const std::string& destination,
                               const HierarchyOptions& options) {
    require_destination(destination);
    HierarchyCopy o{options, source, destination};
    const DestinationLock building = lock_for(o);
    if (!o.open && !o.set) o.at = locate(source, to_read(o.from));
    if (o.at) o.members = several_members(*o.at);
    for (const auto& one : o.set ? o.set->arrays : std::vector<ArraySet::One>{}) o.members.push_back(one.path);
    const bool to_file = named_array_file_format(destination) != nullptr;
    if (!to_file && !is_zip_name(destination) && o.at && o.at->kind == PathKind::group) {
        require_outside(source, destination);
    }
    if (o.selection && (!o.members.empty() || (o.at && group_at(*o.at)))) {
        o.shared = in_context([&] { return source; }, [&] { return std::make_shared<SharedSelection>(*o.selection); });
    }
    // Groups, names of dimensions and attributes stay what other programs read.
    const ArrayFileFormat* const file = o.at ? o.at->format : nullptr;
    const bool described = file != nullptr && (file->groups != nullptr || file->keeps_attributes);
    if (described && o.arrays.preferred_format.empty()) o.arrays.preferred_format = "v3";
    std::vector<PassedFolder> passed;
    const std::vector<std::string> bundle = to_file ? bundled(o, passed) : std::vector<std::string>{};
    if (to_file && bundle.empty()) require_free_member(destination, o.overwrite);
    if (to_file && !bundle.empty()) require_free_file(split_array_path(destination).path, o.overwrite);
    const bool existed = is_anything_at(split_array_path(destination).path, o.store);
    try {
        if (!to_file) return copy_to_arrays(o, building);
        CopiedHierarchy result = bundle.empty() ? copy_to_file(o) : copy_to_bundle(o, bundle);
        result.passed = std::move(passed);
        return result;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled || o.resume) throw;
        throw cancelled(existed ? fmt::format("interrupted; {} is as it was before", destination)
                                : fmt::format("interrupted; nothing is left at {}", destination));
    }
}

}  // namespace tessera
