// What is missing of a job, and its end.
//
// A target is published by what finishes every other copy (NewArray, Destination), so that a crash leaves it unfinished
// or whole. Arrays that a finish published before it was killed are recognised by their folders' numbers and left.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/byte_io.h>
#include <tessera/destination.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/job.h>
#include <tessera/place.h>

#include "directories.h"
#include "keys.h"
#include "move_aside.h"
#include "node_files.h"
#include "recipe.h"
#include "replace_directory.h"
#include "unit_records.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

void add_unit(std::vector<UnitRange>& ranges, std::int64_t unit) {
    if (!ranges.empty() && ranges.back().end == unit) {
        ++ranges.back().end;
    } else {
        ranges.push_back({unit, unit + 1});
    }
}

/// Whether a finish that was killed had come to a group.
bool is_there(const Job& job, const PlannedGroup& group) {
    if (group.dialect == nullptr || !group.dialect->has_groups()) return true;
    Place at = store_kind_of(job.target).place(job.target, {.read_only = true});
    at.prefix = at.key(group.node);
    return probe_group_dialect(at) != nullptr;
}

bool is_finished(const Job& job) {
    const bool groups =
        std::ranges::all_of(job.groups, [&](const PlannedGroup& group) { return is_there(job, group); });
    return groups && std::ranges::all_of(job.arrays, [&](const JobArray& array) {
               if (!is_local(array.built)) {
                   const Place units = records_place(job, {.read_only = true});
                   const Listing left = units.store->list(units.prefix);
                   return is_published(job, array) && left.keys.empty() && left.prefixes.empty();
               }
               const fs::path place = place_of_array(job, array);
               const auto id = folder_id(place);
               return id && id->inode == array.inode && is_published(job, array) && !fs::exists(place / units_key);
           });
}

/// Whether all arrays are complete; what was kept about their units may be gone in part.
bool all_published(const Job& job) {
    return std::ranges::all_of(job.arrays, [&](const JobArray& array) { return is_published(job, array); });
}

/// Compares units with their records, some at a time: a job may have more than fit into memory. Calls each(unit,
/// records) with the records of every unit of [first, end) in turn.
template <class Each>
void for_each_unit(const Job& job, const Each& each) {
    constexpr std::int64_t slice = std::int64_t{1} << 19;
    const std::int64_t units = job.units();
    for (std::int64_t first = 0; first < units; first += slice) {
        const std::int64_t end = std::min(units, first + slice);
        std::vector<UnitRecord> records;
        RecordReader(records_place(job, {.read_only = true})).read([&](const UnitRecord& record) {
            if (record.unit >= first && record.unit < end) records.push_back(record);
        });
        std::ranges::stable_sort(records, {}, [](const UnitRecord& r) { return std::pair(r.unit, r.written); });
        std::size_t at = 0;
        for (std::int64_t unit = first; unit < end; ++unit) {
            const std::size_t begin = at;
            while (at < records.size() && records[at].unit == unit) ++at;
            each(unit, std::span(records).subspan(begin, at - begin));
        }
    }
}

/// Counts a unit. `good` is its record that holds, or nullptr.
void count_unit(JobState& state, const Job& job, std::int64_t unit, std::span<const UnitRecord> records,
                const UnitRecord* good) {
    if (good != nullptr) {
        ++state.done;
        state.bytes += job.bytes_of(unit);
        state.stored += good->bytes;
        return;
    }
    add_unit(state.missing, unit);
    constexpr std::size_t most = 1000;
    if (!records.empty() && records.back().failed && state.failures.size() < most) {
        state.failures.push_back({unit, records.back().message});
    }
}

/// Whether a unit's files are those that one of its records tells of.
const UnitRecord* holding(const Array& array, const Region& region, std::span<const UnitRecord> records, bool read,
                          const ListedValues* listed) {
    if (std::ranges::all_of(records, &UnitRecord::failed)) return nullptr;
    UnitRecord found = unit_files(array, region, nullptr, read, listed);
    const auto match = [&](auto member) -> const UnitRecord* {
        for (const UnitRecord& record : records) {
            const bool counts = !record.failed && !(record.withdrawn && member == &UnitRecord::stamps);
            if (counts && record.files == found.files && record.bytes == found.bytes &&
                record.*member == found.*member) {
                return &record;
            }
        }
        return nullptr;
    };
    if (!read) {
        if (const UnitRecord* same = match(&UnitRecord::stamps)) return same;
        // Two may have written the same at once, or the files were copied with other times: their content decides.
        found = unit_files(array, region, nullptr, true, listed);
    }
    return match(&UnitRecord::content);
}

/// Withdraws the records of units whose files are others, so that they are done again.
class Withdrawals {
public:
    Withdrawals(const Job& job, const StoreOptions& options)
        : writer_(records_place(job, options)), durable_(options.durability != Durability::none) {}
    void add(std::span<const UnitRecord> records) {
        constexpr std::size_t many = 10'000;
        std::ranges::copy_if(records, std::back_inserter(lost_),
                             [](const UnitRecord& record) { return !record.failed && !record.withdrawn; });
        if (lost_.size() >= many) write();
    }
    void write() {
        writer_.withdraw(lost_, durable_);
        lost_.clear();
    }

private:
    RecordWriter writer_;
    bool durable_;
    std::vector<UnitRecord> lost_;
};

/// Removes what a finish left that was killed after it had exchanged two folders: the array that was replaced; and
/// locks.
void remove_leftovers(const Job& job, const StoreOptions& options) {
    if (!is_local(job.target)) return;
    std::error_code ignored;
    const auto is_locked = [&](fs::path place) {
        return fs::exists(place.replace_filename(hidden_name(place, "lock")), ignored);
    };
    if (is_locked(job.target)) (void)DestinationLock(job.target, options);
    for (const JobArray& array : job.arrays) {
        const fs::path place = place_of_array(job, array);
        const bool replaced = array.built != place && fs::exists(array.built, ignored);
        if (!replaced && !is_locked(place)) continue;
        const DestinationLock lock(place, options);  // whose file goes with it
        // Another job may be making the next array there.
        if (!replaced || occupant(array.built, options) == Occupant::unfinished) continue;
        rescue_set_aside(array.built, place, options);
        remove_tree(array.built);
    }
}

void publish(const Job& job, const FinishOptions& o) {
    const DestinationLock building = lock_destination(job.target, o.store);
    const auto made =
        open_destination(job.target, {.overwrite = job.overwrite, .resume = true, .store = o.store, .lock = &building});
    for (const PlannedGroup& group : job.groups) made->add_group(group);
    if (!job.groups.empty() && is_local(job.target)) remove_temporaries<fs::directory_iterator>(job.target);
    for (const JobArray& array : job.arrays) {
        if (is_local(array.built) && fs::exists(array.built)) {
            remove_temporaries<fs::recursive_directory_iterator>(array.built);
        }
        if (!is_published(job, array)) {
            (void)made->add(array.node, array.plan, job.made_from);
            if (is_local(array.built)) continue;
            const Place at = built_place(array, o.store);
            at.store->put(at.key(job_key), std::as_bytes(std::span(job.id)));
            continue;
        }
        // An earlier finish was killed after it had published this one.
        const fs::path place = place_of_array(job, array);
        const auto id = folder_id(array.built);
        const bool built = id && id->inode == array.inode;
        const fs::path there = built ? array.built : place;
        const auto [store, prefix] = store_kind_of(there).place(there, o.store);
        store->erase(join_key(prefix, unfinished_marker_key));
        store->erase_below(join_key(prefix, units_key));
        store->sync();
        if (!built || array.built == place) continue;
        const auto old = directory_store(place, o.store);
        replace_directory(array.built, *old, lock_nodes(*old), o.store);
    }
    made->commit();
}

/// Counts all units by their files, and withdraws the records of those that are missing.
void compare_units(const Job& job, const FinishOptions& o, JobState& state) {
    const JobArray* open = nullptr;
    std::optional<Array> array;
    std::optional<ListedValues> listed;
    Withdrawals lost(job, o.store);
    for_each_unit(job, [&](std::int64_t unit, std::span<const UnitRecord> records) {
        if (o.io.stop.stop_requested()) throw cancelled("stopped on request");
        const auto place = job.place_of(unit);
        if (place.first != open) {
            open = place.first;
            listed.reset();
            if (is_published(job, *open)) {
                array.reset();
            } else {
                require_own_target(job, *open);
                array = unfinished_array(*open);
                const Place at = built_place(*open, {.read_only = true});
                if (at.store->is_far()) listed.emplace(at);
            }
        }
        if (!array) {
            ++state.done;
            state.bytes += job.bytes_of(unit);
            return;
        }
        const UnitRecord* good = holding(*array, place.second, records, o.read, listed ? &*listed : nullptr);
        if (good == nullptr) lost.add(records);
        count_unit(state, job, unit, records, good);
    });
    lost.write();
}

}  // namespace

JobState job_state(const Job& job) {
    JobState state{.finished = is_finished(job)};
    if (state.finished || all_published(job)) {
        state.done = job.units();
        return state;
    }
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    for_each_unit(job, [&](std::int64_t unit, std::span<const UnitRecord> records) {
        const UnitRecord* good = nullptr;
        for (const UnitRecord& record : records) {
            if (!record.failed && !record.withdrawn) good = &record;
        }
        if (good != nullptr) {
            first = std::min(first, good->written - good->took);
            last = std::max(last, good->written);
        }
        count_unit(state, job, unit, records, good);
    });
    if (state.done > 0) state.seconds = static_cast<double>(last - first) / 1000;
    if (state.seconds > 0) state.rate = static_cast<double>(state.bytes) / state.seconds;
    return state;
}

Value job_state_value(const Job& job, const JobState& state) {
    Value failures = Value::array();
    for (const UnitFailure& failure : state.failures) {
        failures.push_back(Value{{"unit", failure.unit}, {"message", failure.message}});
    }
    std::uint64_t bytes = 0;
    for (const JobArray& array : job.arrays) {
        bytes += static_cast<std::uint64_t>(byte_count(array.plan.metadata.shape, array.plan.metadata.dtype.size()));
    }
    const bool known = state.rate > 0 && !state.finished;
    const double left = known ? static_cast<double>(bytes - state.bytes) / state.rate : 0;
    return {{"path", job.file.string()},
            {"target", job.target},
            {"finished", state.finished},
            {"units", job.units()},
            {"units_done", state.done},
            {"missing_units", unit_ranges_text(state.missing)},
            {"missing_parts", job.parts > 0 ? Value(unit_ranges_text(parts_with(job, state.missing))) : Value()},
            {"failures", std::move(failures)},
            {"bytes", bytes},
            {"bytes_done", state.finished ? bytes : state.bytes},
            {"stored_bytes", state.stored},
            {"bytes_a_second", known ? Value(state.rate) : Value()},
            {"seconds_left", known ? Value(left) : Value()}};
}

JobState finish_job(const Job& job, const FinishOptions& o) {
    JobState state{.finished = is_finished(job)};
    if (state.finished) {
        state.before = true;
        remove_leftovers(job, o.store);
        state.done = job.units();
        return state;
    }
    if (!all_published(job)) {
        for (const Value& identity : job.sources.as_array()) require_same_source(identity, true);
        compare_units(job, o, state);
        if (!state.missing.empty()) return state;
    } else {
        state.done = job.units();
    }
    publish(job, o);
    remove_leftovers(job, o.store);
    state.finished = true;
    return state;
}

}  // namespace tessera
