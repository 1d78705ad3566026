#include "hierarchy_plan.h"

#include <tessera/action.h>
#include <tessera/error_text.h>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/own_names.h>
#include <tessera/turned.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "array_state.h"
#include "file_chunks.h"
#include "group_access.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// The error of a file's reader says more than "Python objects"; an empty read triggers it.
std::unique_ptr<ArraySource> readable(std::unique_ptr<ArraySource> source) {
    const ArrayInfo info = source->info();
    if (info.dtype.kind() == Kind::object) {
        const Region nothing(Index::filled(info.shape.rank(), 0), Shape::filled(info.shape.rank(), 0));
        NDArray none(info.dtype, nothing.extent);
        source->read_into(nothing, none, {});
    }
    return source;
}

}  // namespace

std::unique_ptr<ArraySource> open_readable_source(const Located& at, const ArrayFileOptions& options) {
    return readable(open_source(at, options));
}

std::unique_ptr<ArraySource> open_copied(const HierarchyCopy& o, const std::string& path) {
    const ArrayFileOptions options{.reverse_dims = o.reverse_dims, .dtype = o.dtype, .header = o.header};
    std::unique_ptr<ArraySource> source;
    if (o.open) {
        source = o.open();
    } else if (o.set) {
        source = o.set->at(path.substr(o.source.size() + 2)).open();
    } else if (path == o.source) {
        source = open_source(*o.at, options);
    } else if (o.at->format != nullptr) {
        ArrayPath part = o.at->file;
        part.member = path.substr(o.source.size() + 2);
        source = open_file_source(part, options);
    } else if (o.at->place && !o.at->is_directory()) {
        const std::string node = o.at->place->key(path.substr(o.source.size() + 1));
        source = std::make_unique<Array>(Array::open({o.at->place->store, node}));
    } else {
        source = at_located(
            path, [&](const Located& at) { return open_source(at, options); }, to_read(o.from));
    }
    source = readable(std::move(source));
    if (o.selection) {
        const std::string text = o.shared ? o.shared->items_for(*source) : *o.selection;
        source = turned_source(std::move(source), text);
    }
    return o.view ? o.view(std::move(source)) : std::move(source);
}

std::optional<Selection> selection_of(const HierarchyCopy& o, const ArraySource& source, bool say) {
    if (!o.selection) return std::nullopt;
    const std::string text = o.shared ? o.shared->items_for(source) : *o.selection;
    if (text.empty() && o.shared) return std::nullopt;
    const std::string name = (o.at ? o.at->file : split_array_path(o.source)).path.string();  // without a member
    try {
        std::string said;
        const Selection selection = parse_selection(text, source, &said);
        if (o.shared && say) said = o.shared->unsaid(said);
        if (say && !said.empty()) o.tell(fmt::format("{}: {}", o.source, said));
        return selection;
    } catch (const Error& e) {
        if (std::string_view(e.what()).starts_with(name)) throw;
        throw e.within(o.source);
    }
}

bool is_unreadable(const Error& e) {
    return e.code() == ErrorCode::corrupt || e.code() == ErrorCode::unsupported;
}

bool is_excluded(const HierarchyCopy& o, const std::string& path) {
    if (!o.exclude) return false;
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
        if (o.exclude(path.substr(0, end))) return true;
        if (end == std::string::npos) return false;
    }
}

std::vector<std::string> several_members(const Located& at) {
    if (at.kind != PathKind::array_file) return {};
    std::vector<std::string> members = array_members(*at.format, at.file);
    const bool several = at.format->groups != nullptr || (members.size() > 1 && !at.format->is_one(members));
    return several ? members : std::vector<std::string>{};
}

std::vector<ArrayFileGroup> file_groups(const Located& at) {
    const bool has_groups = at.kind == PathKind::array_file && at.format->groups != nullptr;
    return has_groups ? at.format->groups(at.file) : std::vector<ArrayFileGroup>{};
}

std::vector<ArrayFileGroup> member_groups(const HierarchyCopy& o) {
    if (o.set) return o.set->groups;
    return o.at ? file_groups(*o.at) : std::vector<ArrayFileGroup>{};
}

const ArraySet::One& ArraySet::at(std::string_view path) const {
    const auto found = std::ranges::find(arrays, path, &One::path);
    if (found == arrays.end()) throw not_found("there is no array {} in the set", path);
    return *found;
}

std::optional<Group> group_at(const Located& at) {
    if (at.file.member) return std::nullopt;
    if (at.kind == PathKind::group) return GroupAccess::open_found(*at.place, at.dialect);
    const bool folder = at.kind == PathKind::folder && at.place;
    if (!folder || child_nodes(*at.place).empty()) return std::nullopt;
    // As in Group::open: what is left of a group that is being removed is no plain folder.
    require_present(*at.place);
    return GroupAccess::open_found(*at.place, nullptr);
}

std::string part_path(const HierarchyCopy& o, const std::string& name) {
    return !o.members.empty() ? fmt::format("{}::{}", o.source, name) : join_key(o.source, name);
}

void require_distinct(const std::string& source, const std::vector<std::string>& members) {
    std::set<std::string> names;
    for (const std::string& member : members) {
        if (names.insert(member).second) continue;
        throw invalid_argument(
            "{0} holds two members of the name {1}, of which only the last can be read: import that one by "
            "itself, {0}::{1}, or write the file anew",
            source, member);
    }
}

namespace {

/// The fill requested for one array.
std::optional<Value> fill_of(const HierarchyCopy& o, const std::string& node) {
    std::optional<Value> fill = o.arrays.fill;
    for (const auto& [name, value] : o.fills) {
        if (name == node) fill = value;
    }
    return fill;
}

PlannedCopy plan_job(const HierarchyCopy& o, const ArraySource& opened, std::string source, std::string node) {
    ArrayWishes wishes = o.arrays;
    wishes.fill = fill_of(o, node);
    if (o.fill_code && wishes.fill) {
        wishes.fill = in_context([&] { return source + ": fill"; }, [&] { return o.fill_code(opened, *wishes.fill); });
    }
    if (o.set && o.set->at(node).complete) o.set->at(node).complete(wishes);
    const std::optional<Selection> selection = selection_of(o, opened, true);
    if (o.shared) o.places->add(node, opened, selection);
    const auto where = [&](const Error& e) {
        const std::string place = node.empty() ? o.destination : join_key(o.destination, node);
        // A wrong option concerns the new array alone. What a format cannot express concerns the source, too.
        return e.code() == ErrorCode::invalid_argument ? place : fmt::format("{} → {}", source, place);
    };
    PlannedArray plan = [&] {
        try {
            return plan_array(opened, wishes, selection);
        } catch (const Error& e) {
            throw e.within(where(e));
        }
    }();
    if (plan.recode && o.dry_run) {  // the copy itself is refused, which says the same
        if (auto note = large_chunk_note(plan.metadata, o.io.max_memory)) {
            plan.changes.push_back(*std::move(note));
        }
    }
    return {std::move(source), std::move(node), std::move(plan)};
}

/// Plans one array of several. Arrays that cannot be opened go to `plan.unreadable`.
void plan_one_of(const HierarchyCopy& o, HierarchyPlan& plan, std::string source, std::string node) {
    std::unique_ptr<ArraySource> opened;
    try {
        opened = open_copied(o, source);
    } catch (const Error& e) {
        if (!plan.hierarchy || !is_unreadable(e)) throw;
        plan.unreadable.push_back({std::move(node), std::move(source), e.what()});
        return;
    }
    plan.jobs.push_back(plan_job(o, *opened, std::move(source), std::move(node)));
}

/// A member's name becomes a path below the destination, and must stay there.
void require_plain_name(const std::string& file, const std::string& member) {
    const fs::path path(member);
    const bool plain = !member.empty() && path.is_relative() && std::ranges::none_of(path, [](const fs::path& part) {
        return part.empty() || part == "." || part == ".." || part.string().starts_with(own_folder);
    });
    if (!plain) {
        throw invalid_argument("{}: the member '{}' cannot be the name of an array; import it alone: {}::{}", file,
                               member, file, member);
    }
}

PlannedGroup plan_group(const HierarchyCopy& o, const Group& group, std::string node) {
    const Dialect* to = o.arrays.format ? &dialect_named(*o.arrays.format) : group.dialect();
    Value attributes = group.attributes().all();
    if (to != nullptr && !to->has_groups() && !attributes.as_object().empty()) {
        if (!o.drop_attributes) {
            throw unsupported("{}: {} has no groups, and so no place for the attributes of this one", group.name(),
                              to->name)
                .advising(Action::drop_attributes, "leaves them out");
        }
        std::string names;
        for (const auto& [name, value] : attributes.as_object()) names += (names.empty() ? "" : ", ") + name;
        o.tell(fmt::format("{}: attributes are left out, because {} has no groups: {}", group.name(), to->name, names));
        attributes = Value::object();
    }
    Value unknown = group.unknown();
    if (to != group.dialect()) {
        std::string names;
        for (const auto& [name, value] : unknown.as_object()) names += (names.empty() ? "" : ", ") + name;
        if (!names.empty()) {
            o.tell(fmt::format("{}: members that only {} has are left out: {}", group.name(), group.dialect()->name,
                               names));
        }
        unknown = Value::object();
    }
    return {std::move(node), to, std::move(attributes), std::move(unknown)};
}

/// If some arrays of a hierarchy name their dimensions, xarray requires it of all: a scalar gets an empty list.
void name_no_dimensions(HierarchyPlan& plan) {
    const auto keeps = [](const PlannedCopy& job) {
        const std::optional<Value>& attributes = job.plan.attributes;
        return !job.plan.dialect->dimension_names && attributes && attributes->find(dimensions_attribute) != nullptr;
    };
    if (std::ranges::none_of(plan.jobs, keeps)) return;
    for (PlannedCopy& job : plan.jobs) {
        if (!job.plan.metadata.shape.empty() || job.plan.dialect->dimension_names || keeps(job)) continue;
        if (!job.plan.attributes) job.plan.attributes = Value::object();
        job.plan.attributes->set(dimensions_attribute, Value::array());
        ArrayMetadata& m = job.plan.metadata;
        if (job.plan.dialect->fill_is_missing && m.fill.bytes == zero_element(m.dtype)) {
            m.fill = null_fill();  // or xarray would take a zero for missing
            job.plan.recode = "its fill_value becomes null";
        }
        job.plan.changes.push_back(fmt::format("the attribute {} [] is added, for xarray", dimensions_attribute));
    }
}

/// Plans everything at and below a group, each group before its members.
void plan_group_below(const HierarchyCopy& o, const Group& root, HierarchyPlan& plan) {
    const Place& place = *o.at->place;
    if (!place.store->lists()) {
        o.tell({fmt::format("{}: the server lists nothing: copied is what metadata at the top name",
                            place.store->name())});
    }
    Hierarchy hierarchy = hierarchy_below(place);
    plan.passed = std::move(hierarchy.passed);
    plan.groups.push_back(plan_group(o, root, ""));
    for (const tessera::Node& node : hierarchy.nodes) {
        if (o.io.stop.stop_requested()) throw cancelled("stopped on request");
        if (is_excluded(o, node.path)) continue;
        if (node.kind == NodeKind::array) {
            plan_one_of(o, plan, join_key(o.source, node.path), node.path);
        } else {
            plan.groups.push_back(plan_group(o, root.open_group(node.path), node.path));
        }
    }
    std::erase_if(plan.passed, [&](const PassedFolder& folder) { return is_excluded(o, folder.path); });
    // A selection may leave no dimension of an array that had some.
    if (o.shared || (root.dialect() != nullptr && root.dialect()->dimension_names)) name_no_dimensions(plan);
}

/// Members of a file become arrays in groups, if the format has groups.
void plan_member_groups(const HierarchyCopy& o, const std::vector<std::string>& members,
                        std::vector<PlannedGroup>& groups) {
    const Dialect* dialect = o.arrays.format        ? &dialect_named(*o.arrays.format)
                             : o.set && o.set->like ? o.set->like
                                                    : &default_format(o.arrays.preferred_format);
    if (!dialect->has_groups()) return;
    std::map<std::string, std::optional<Value>> folders{{"", std::nullopt}};
    for (const std::string& member : members) {
        for (fs::path folder = fs::path(member).parent_path(); !folder.empty(); folder = folder.parent_path()) {
            folders.emplace(folder.string(), std::nullopt);
        }
    }
    for (ArrayFileGroup& group : member_groups(o)) {
        if (!is_excluded(o, group.name)) folders[group.name] = std::move(group.attributes);
    }
    for (auto& [folder, attributes] : folders) groups.push_back({folder, dialect, std::move(attributes)});
}

/// Each fill of an individual array must name one of several arrays.
void require_named(const HierarchyCopy& o, const HierarchyPlan& plan) {
    for (const auto& [name, value] : o.fills) {
        if (std::ranges::find(plan.jobs, name, &PlannedCopy::node) != plan.jobs.end()) continue;
        throw invalid_argument("fill {}={}: {} holds no array {}", name,
                               value.is_string() ? value.as_string() : value.dump(), o.source, name);
    }
}

/// What groups and grid mappings say of the place, as it is of the parts.
void place_parts(const HierarchyCopy& o, HierarchyPlan& plan) {
    if (!o.shared) return;
    for (PlannedGroup& group : plan.groups) {
        if (group.attributes) group.attributes = o.places->of_group(group.node, *std::move(group.attributes));
    }
    for (PlannedCopy& job : plan.jobs) {
        if (job.plan.attributes) job.plan.attributes = o.places->of_array(job.node, *std::move(job.plan.attributes));
    }
}

/// Each length of chunks by name must be that of a dimension.
void require_dimensions(const HierarchyCopy& o, const HierarchyPlan& plan) {
    if (o.arrays.named_chunks.empty()) return;
    std::set<std::string> known;
    for (const PlannedCopy& job : plan.jobs) {
        const auto& in_metadata = job.plan.metadata.dimension_names;
        const Value* const listed = job.plan.attributes ? job.plan.attributes->find(dimensions_attribute) : nullptr;
        for (const auto& name : in_metadata) known.insert(name.value_or(""));
        for (const Value& name : listed != nullptr && listed->is_array() ? listed->as_array() : Value::Array{}) {
            if (name.is_string()) known.insert(name.as_string());
        }
    }
    known.erase("");
    for (const auto& [name, length] : o.arrays.named_chunks) {
        if (known.contains(name)) continue;
        throw invalid_argument("chunks: no array has a dimension '{}'; {}", name, names_there(known));
    }
}

/// Throws, before anything is written, if members cannot all be arrays of one directory: equal names, one inside
/// another, or the name of a metadata document.
void require_apart(const std::string& source, const std::vector<std::string>& members) {
    require_distinct(source, members);
    const std::set<std::string> names(members.begin(), members.end());
    for (const std::string& member : members) {
        for (const fs::path& part : fs::path(member)) {
            for (const Dialect* dialect : dialect_table()) {
                if (std::ranges::count(dialect->documents, part.string()) == 0) continue;
                throw invalid_argument("{}::{}: {} is the name of a metadata document; import it by itself", source,
                                       member, part.string());
            }
        }
    }
    for (const std::string& member : members) {
        for (fs::path above = fs::path(member).parent_path(); !above.empty(); above = above.parent_path()) {
            if (!names.contains(above.string())) continue;
            throw invalid_argument("{} holds {} and {}, and nothing can lie in an array; import each by itself", source,
                                   above.string(), member);
        }
    }
}

}  // namespace

HierarchyPlan plan_hierarchy(const HierarchyCopy& o) {
    HierarchyPlan plan;
    const std::vector<std::string>& members = o.members;
    for (const std::string& member : members) require_plain_name(o.source, member);
    require_apart(o.source, members);
    const std::optional<Group> root = members.empty() && o.at ? group_at(*o.at) : std::nullopt;
    if (!root && members.empty()) {
        plan.only = open_copied(o, o.source);
        plan.jobs.push_back(plan_job(o, *plan.only, o.source, ""));
        require_dimensions(o, plan);
        return plan;
    }
    plan.hierarchy = root.has_value() || (o.at && o.at->format != nullptr && o.at->format->groups != nullptr);
    if (root) plan_group_below(o, *root, plan);
    if (o.arrays.dimension_names) {
        const std::string one = members.empty()
                                    ? join_key(o.source, plan.jobs.empty() ? "NAME" : plan.jobs.front().node)
                                    : o.source + "::" + members.front();
        throw invalid_argument("{} holds several arrays; name one of them: {}", o.source, one)
            .advising(Action::dimension_names, "names those of one array");
    }
    if (occupant(o.destination, o.store) == Occupant::array) {
        throw already_exists("{} is an array, and {} holds several, which need a directory", o.destination, o.source);
    }
    if (!members.empty()) plan_member_groups(o, members, plan.groups);
    for (const std::string& member : members) {
        if (is_excluded(o, member)) continue;
        plan_one_of(o, plan, o.source + "::" + member, member);
    }
    if (plan.jobs.empty() && !plan.unreadable.empty()) throw unsupported(plan.unreadable.front().why);
    require_named(o, plan);
    require_dimensions(o, plan);
    place_parts(o, plan);
    if (o.shared) in_context([&] { return o.source; }, [&] { o.shared->require_found(); });
    return plan;
}

}  // namespace tessera
