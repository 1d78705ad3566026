#include "transfer_run.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "bundle.h"
#include "options.h"
#include "report.h"
#include "tree.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

/// What is copied, exactly enough to know the same copy again: which file or array, as it is now, and how it is read.
std::string made_from(const ArraySource& from, const TransferOptions& o, const std::optional<Selection>& selection) {
    const ArrayInfo info = from.info();
    if (o.open) return o.state;
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
    return printable(fmt::format("{} in {}, {}{} {}{}{}, changed{}", from.name(), path.string(), info.dtype.to_string(),
                                 o.cast ? fmt::format(" by {}", *o.cast) : "", info.shape.to_string(),
                                 selection ? fmt::format(" [{}]", selection->to_string()) : "",
                                 o.reverse_dims ? " reversed" : "", state));
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

/// A group is made, or replaced on request; its arrays are refused one by one where others lie.
void require_free_group(const TransferOptions& o) {
    if (o.overwrite || o.resume) return;
    if (const std::optional<Group> there = group_at(o.destination)) {
        throw already_exists(
            fmt::format("{}: a group is there already; --overwrite replaces what {} has too", there->name(), o.source));
    }
}

/// Takes elements and forgets them: what cannot be decoded is found so.
class ReadingSink final : public ArraySink {
public:
    explicit ReadingSink(const ArraySource& source) : info_(source.info()), name_(source.name()) {
        info_.access = Access::any;
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void write(const Region& /*region*/, const ArrayView& /*in*/, const IoOptions& /*io*/) override {}
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    ArrayInfo info_;
    std::string name_;
};

/// Why an array of the source cannot be read as a whole; nothing where it can.
std::optional<std::string> why_unreadable(Session& session, const TransferOptions& o, const std::string& source) {
    try {
        const std::unique_ptr<ArraySource> opened = open_transferred(o, source);
        ReadingSink sink(*opened);
        copy_array(*opened, sink, {.io = session.io(), .ample = passing_block});
        return std::nullopt;
    } catch (const Error& e) {
        if (!is_unreadable(e)) throw;
        return e.what();
    }
}

/// What became of an array of several.
enum class Outcome : std::uint8_t {
    made,
    dropped,  ///< unreadable, and taken back
    spoilt,   ///< unreadable, and the destination cannot take it back: all is to be made anew, without it
};

Outcome make_array(Session& session, const TransferOptions& o, const Job& job, Destination& destination, Plan& plan) {
    const std::unique_ptr<ArraySource> source = open_transferred(o, job.source);
    for (const std::string& change : job.plan.changes) session.note(fmt::format("{}: {}", place_of(o, job), change));
    Array& array = destination.add(job.node, job.plan, made_from(*source, o, selection_of(o, *source)));
    try {
        run_job(session, o, job, source.get(), array, destination.resumed());
        return Outcome::made;
    } catch (const Error& e) {
        if (!plan.hierarchy || !is_unreadable(e) || o.resume) throw;
        plan.unreadable.push_back({job.node, e.what()});
        return destination.drop() ? Outcome::dropped : Outcome::spoilt;
    }
}

/// A free name beside the destination, for what must not replace what is there.
std::string incomplete_name(const std::string& destination) {
    const fs::path path =
        fs::path(destination).has_filename() ? fs::path(destination) : fs::path(destination).parent_path();
    const bool file = path.extension() == ".zip" || names_array_file(destination);
    for (int n = 1;; ++n) {
        fs::path beside = path;
        beside += n == 1 ? ".incomplete" : fmt::format(".incomplete-{}", n);
        if (file) beside += path.extension();
        if (!fs::exists(fs::symlink_status(beside))) return beside.string();
    }
}

/// The arrays that were made, and whether the destination must be made anew.
struct Attempt {
    std::set<const Job*> made;
    bool spoilt = false;
};

/// Makes the groups and arrays in the order of their paths, a group before what is in it. Once the destination is
/// spoilt, the rest is only read, so that the next attempt knows of everything that cannot be.
Attempt make_all(Session& session, const TransferOptions& o, Plan& plan, Destination& destination) {
    std::map<fs::path, const PlannedGroup*> groups_left;
    std::map<fs::path, const Job*> jobs_left;
    for (const PlannedGroup& group : plan.groups) groups_left.emplace(group.node, &group);
    for (const Job& job : plan.jobs) jobs_left.emplace(job.node, &job);
    const auto add_groups = [&](auto end) {
        for (auto it = groups_left.begin(); it != end; it = groups_left.erase(it)) destination.add_group(*it->second);
    };
    Attempt attempt;
    for (const auto& entry : jobs_left) {
        const Job& job = *entry.second;
        if (attempt.spoilt) {
            if (auto why = why_unreadable(session, o, job.source))
                plan.unreadable.push_back({job.node, *std::move(why)});
            continue;
        }
        add_groups(groups_left.upper_bound(entry.first));
        const Outcome outcome = make_array(session, o, job, destination, plan);
        if (outcome == Outcome::made) attempt.made.insert(&job);
        attempt.spoilt = outcome == Outcome::spoilt;
    }
    if (!attempt.spoilt) add_groups(groups_left.end());
    return attempt;
}

/// Says where a copy lies that must not replace what is at the destination.
void note_beside(Session& session, const TransferOptions& o, const std::string& beside, std::size_t lacking) {
    session.note(fmt::format("{} is as it was: the copy lacks {}, and lies in {}; --skip-bad replaces it all the same",
                             o.destination, count_text(static_cast<std::int64_t>(lacking), "array"), beside));
}

/// A link to a group that was copied by another path becomes such a link in the copy. What cannot stays in `passed`.
void make_links(const fs::path& destination, std::vector<PassedFolder>& passed) {
    std::erase_if(passed, [&](const PassedFolder& link) {
        const fs::path place = destination / link.path;
        std::error_code error;
        if (link.why != PassedFolder::Why::second_way || !fs::is_directory(destination / link.target, error)) {
            return false;
        }
        const fs::path target = (destination / link.target).lexically_relative(place.parent_path());
        if (fs::is_symlink(place, error)) return fs::read_symlink(place, error) == target;  // of an earlier copy
        fs::create_directories(place.parent_path(), error);
        fs::create_directory_symlink(target, place, error);
        return !error;
    });
}

/// Copies what the plan has, apart from what cannot be read, and makes it all appear.
Transferred copy_planned(Session& session, const TransferOptions& o, Plan& plan, const DestinationLock& building) {
    const bool replaces = o.overwrite && fs::exists(o.destination) && !o.skip_bad;
    if (replaces && !plan.unreadable.empty()) {
        TransferOptions beside = o;
        beside.destination = incomplete_name(o.destination);
        beside.overwrite = false;
        const DestinationLock building_beside(beside.destination, session.store());
        Transferred result = copy_planned(session, beside, plan, building_beside);
        note_beside(session, o, beside.destination, plan.unreadable.size());
        return result;
    }
    std::unique_ptr<Destination> destination = open_destination(
        o.destination, {.overwrite = o.overwrite, .resume = o.resume, .store = session.store(), .lock = &building});
    Attempt attempt;
    try {
        attempt = make_all(session, o, plan, *destination);
    } catch (const Error& e) {
        if (!o.resume) throw;
        const std::string kept = destination->keep();
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(
            fmt::format("interrupted; what is written stays in {}: the same command goes on with it", kept));
    }
    const std::size_t had = plan.jobs.size();
    std::erase_if(plan.jobs, [&](const Job& job) {
        return std::ranges::find(plan.unreadable, job.node, &Unreadable::node) != plan.unreadable.end();
    });
    if (plan.jobs.empty() && !plan.unreadable.empty()) throw unsupported(plan.unreadable.front().why);
    if (attempt.spoilt || (replaces && plan.jobs.size() < had)) {
        destination.reset();
        return copy_planned(session, o, plan, building);
    }
    destination->commit();
    make_links(o.destination, plan.passed);
    const auto zip = fs::is_directory(o.destination) ? std::nullopt : probe_place(o.destination, {.read_only = true});
    Transferred result{.path = o.destination, .made = {}, .left_out = {}};
    for (const Job& job : plan.jobs) {
        const std::string place = place_of(o, job);
        const Array array = zip ? Array::open(zip->store, job.node) : Array::open(place, {.read_only = true});
        result.made.push_back(made_of(place, array));
        result.bytes += result.made.back().bytes.value_or(0);
    }
    return result;
}

/// Says that a .ra which was replaced left something to its successor: it may not be about the new data.
void note_trailing(Session& session, const fs::path& path) {
    if (path.extension() != ".ra") return;
    const Value trailing = find_array_file_format(path)->describe({path}).at("trailing_bytes");
    if (trailing == Value(0)) return;
    session.note(
        fmt::format("{}: the {} bytes behind the data of the old file are kept", path.string(), trailing.dump()));
}

/// The name of the member or field that a source is; nothing for what has none.
std::optional<std::string> member_name(const std::string& source) {
    const ArrayPath path = split_array_path(source);
    if (path.member || !fs::is_regular_file(path.path)) return path.member;
    const ArrayFileFormat* format = find_array_file_format(path.path);
    const std::vector<std::string> members =
        format == nullptr ? std::vector<std::string>{} : array_members(*format, path.path);
    return members.size() == 1 ? std::optional(members.front()) : std::nullopt;
}

}  // namespace

Transferred copy_to_arrays(Session& session, const TransferOptions& o, const DestinationLock& building) {
    Plan plan = plan_jobs(session, o);
    Transferred result{.path = o.destination, .made = {}, .left_out = {}};
    if (o.dry_run) {
        report_plan(session, o, plan);
    } else {
        if (!plan.groups.empty() && plan.groups.front().attributes) require_free_group(o);
        result = copy_planned(session, o, plan, building);
    }
    note_left_out(session, o, plan.unreadable);
    result.left_out = std::move(plan.unreadable);
    leave_out(session, o, plan.passed, result.left_out);
    return result;
}

void leave_out(Session& session, const TransferOptions& o, const std::vector<PassedFolder>& passed,
               std::vector<Unreadable>& left_out) {
    std::vector<Unreadable> more;
    for (const PassedFolder& folder : passed) more.push_back({folder.path, passed_text(folder)});
    note_left_out(session, o, more);
    left_out.insert(left_out.end(), more.begin(), more.end());
}

Transferred copy_to_file(Session& session, const TransferOptions& o) {
    ArrayPath path = split_array_path(o.destination);
    const ArrayFileFormat* format = named_format(o.destination);
    if (!path.member && format != nullptr && format->holds_several() && !o.open) path.member = member_name(o.source);
    return write_file(session, o, path, *open_transferred(o, o.source));
}

Transferred write_file(Session& session, const TransferOptions& o, const ArrayPath& path, const ArraySource& stored) {
    ArrayFileOptions options{.order = stored.info().order,
                             .reverse_dims = o.reverse_dims,
                             .durable = session.options().durability != Durability::none,
                             .object_strings = o.object_strings};
    const auto fitting = convert_for_array_file(path, stored, options, session.io());
    const ArraySource* source = fitting ? fitting.get() : &stored;
    std::optional<Selection> selection;
    if (o.selection) {
        selection = about_path(o.source, [&] { return Selection::parse(*o.selection, source->info().shape); });
    }
    if (o.order) options.order = parse_order("--order", *o.order);
    if (o.deflate) options.deflate_level = parse_number("--deflate", *o.deflate, 0, 9);

    const Shape shape = selection ? selection->shape() : source->info().shape;
    const auto sink = create_array_file(path, source->info().dtype, shape, options);
    copy_array(*source, *sink, {.io = session.io(), .selection = selection});
    note_trailing(session, path.path);
    const std::uint64_t bytes = fs::file_size(path.path);
    return {.path = o.destination,
            .made = {{o.destination, sink->info().dtype, shape, {}, 0, bytes}},
            .left_out = {},
            .bytes = bytes};
}

Transferred copy_to_bundle(Session& session, const TransferOptions& o, std::vector<std::string> names) {
    Transferred result{.path = o.destination, .made = {}, .left_out = {}, .bundle = true};
    TransferOptions own = o;
    DestinationLock building_beside;
    try {
        result.made = write_bundle(session, own, names);
    } catch (const Error& e) {
        if (!is_unreadable(e)) throw;
        for (const std::string& name : names) {
            if (auto why = why_unreadable(session, o, part_path(o, name))) {
                result.left_out.push_back({name, *std::move(why)});
            }
        }
        // It was not about an array, or there is nothing else to write.
        if (result.left_out.empty() || result.left_out.size() == names.size()) throw;
    }
    if (!result.left_out.empty()) {
        std::erase_if(names, [&](const std::string& name) {
            return std::ranges::find(result.left_out, name, &Unreadable::node) != result.left_out.end();
        });
        if (o.overwrite && fs::exists(o.destination) && !o.skip_bad) {
            own.destination = result.path = incomplete_name(o.destination);
            building_beside = DestinationLock(own.destination, session.store());
            note_beside(session, o, own.destination, result.left_out.size());
        }
        result.made = write_bundle(session, own, names);
    }
    note_left_out(session, o, result.left_out);
    result.bytes = fs::file_size(result.path);
    return result;
}

}  // namespace tessera::cli
