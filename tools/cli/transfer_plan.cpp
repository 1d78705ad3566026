#include "transfer_plan.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/cast.h>
#include <tessera/copy.h>
#include <tessera/place.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include "options.h"
#include "points.h"

namespace tessera::cli {

namespace fs = std::filesystem;

std::unique_ptr<ArraySource> open_transferred(const TransferOptions& o, const std::string& path) {
    std::unique_ptr<ArraySource> source;
    if (o.open) {
        source = o.open();
    } else if (o.archive && path.starts_with(o.source + '/')) {
        const std::string node = join_key(o.archive->prefix, path.substr(o.source.size() + 1));
        source = std::make_unique<Array>(Array::open(o.archive->store, node));
    } else {
        source = open_source(path, reading_options(o, path));
    }
    const ArrayInfo info = source->info();
    if (info.dtype.kind() == Kind::object) {
        // What the file's reader found says more than that there are objects; reading nothing makes it say so.
        const Region nothing(Index::filled(info.shape.rank(), 0), Shape::filled(info.shape.rank(), 0));
        NDArray none(info.dtype, nothing.extent);
        source->read_into(nothing, none, {});
    }
    if (o.points) source = elements_at(std::move(source), open_source(*o.points));
    return converted(std::move(source), o.dtype, o.cast);
}

std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source, const std::optional<std::string>& dtype,
                                       const std::optional<std::string>& cast) {
    if (!dtype) return source;
    const DType wanted = in_context([] { return "--dtype"; }, [&] { return DType::parse(*dtype); });
    const Cast rule = cast ? in_context([] { return "--cast"; }, [&] { return parse_cast(*cast); }) : Cast::same_kind;
    if (source->info().dtype == wanted) return source;
    return std::make_unique<CastSource>(std::move(source), wanted, rule);
}

std::optional<Selection> selection_of(const TransferOptions& o, const ArraySource& source) {
    if (!o.selection) return std::nullopt;
    return about_path(o.source, [&] { return Selection::parse(*o.selection, source.info().shape); });
}

std::string place_of(const TransferOptions& o, const Job& job) {
    return job.node.empty() ? o.destination : join_key(o.destination, job.node);
}

bool is_unreadable(const Error& e) {
    return e.code() == ErrorCode::corrupt || e.code() == ErrorCode::unsupported;
}

std::vector<std::string> several_members(const std::string& name) {
    const ArrayPath path = split_array_path(name);
    if (path.member || !fs::is_regular_file(path.path)) return {};
    const ArrayFileFormat* format = find_array_file_format(path.path);
    if (format == nullptr) return {};
    std::vector<std::string> members = array_members(*format, path.path);
    return members.size() > 1 ? members : std::vector<std::string>{};
}

std::optional<Group> group_at(const std::string& path) {
    for (;;) {
        const std::optional<Place> place = probe_place(path, {.read_only = true});
        if (!place || probe_dialect(*place->store, place->prefix) != nullptr) return {};
        if (place->prefix.empty() && occupant(path) == Occupant::unfinished) return {};
        const bool group = probe_group_dialect(*place->store, place->prefix) != nullptr ||
                           !child_nodes(*place->store, place->prefix).empty();
        if (group) return Group::open(place->store, place->prefix);
        if (!was_replaced(*place)) return {};  // else there was a group, and is another one
    }
}

std::string part_path(const TransferOptions& o, const std::string& name) {
    return o.several_members ? fmt::format("{}::{}", o.source, name) : join_key(o.source, name);
}

void require_distinct(const std::string& source, const std::vector<std::string>& members) {
    std::set<std::string> names;
    for (const std::string& member : members) {
        if (names.insert(member).second) continue;
        throw invalid_argument(
            fmt::format("{0} holds two members of the name {1}, of which only the last can be read: import that one by "
                        "itself, {0}::{1}, or write the file anew",
                        source, member));
    }
}

namespace {

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
    const Place place = o.archive ? *o.archive : find_place(o.source, {.read_only = true});
    Hierarchy hierarchy = hierarchy_below(*place.store, place.prefix);
    plan.passed = std::move(hierarchy.passed);
    plan.groups.push_back(plan_group(session, o, root, ""));
    for (const tessera::Node& node : hierarchy.nodes) {
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
    require_distinct(source, members);
    const std::set<std::string> names(members.begin(), members.end());
    for (const std::string& member : members) {
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

}  // namespace

Plan plan_jobs(Session& session, const TransferOptions& o) {
    Plan plan;
    const std::vector<std::string> members = o.open ? std::vector<std::string>{} : several_members(o.source);
    for (const std::string& member : members) require_plain_name(o.source, member);
    require_apart(o.source, members);
    const std::optional<Group> root = members.empty() && !o.open ? group_at(o.source) : std::nullopt;
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

}  // namespace tessera::cli
