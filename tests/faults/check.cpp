#include "check.h"

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/snapshot.h>
#include <tessera/verify.h>
#include <algorithm>
#include <functional>

namespace tessera::faults {

namespace {

testing::AssertionResult only_leftovers(const std::filesystem::path& path) {
    for (const Finding& finding : verify(path.string(), {.io = {.threads = 1}}).findings) {
        if (finding.kind == FindingKind::damage || finding.kind == FindingKind::unchecked) {
            return testing::AssertionFailure() << "verify: " << finding.key << ": " << finding.text;
        }
    }
    return testing::AssertionSuccess();
}

/// Whether `region` of `found` is as in `table`; what lies beyond its shape is not asked for.
bool same(const Table& found, const Table& table, const Region& region) {
    for (std::int64_t r = region.start[0]; r < region.start[0] + region.extent[0]; ++r) {
        for (std::int64_t c = region.start[1]; c < region.start[1] + region.extent[1]; ++c) {
            if (r < table.shape[0] && c < table.shape[1] && found.at(r, c) != table.at(r, c)) return false;
        }
    }
    return true;
}

testing::AssertionResult each_old_or_next(const Table& found, const ChunkGrid& grid, const Table& old,
                                          const Table& next, bool together) {
    if (found == old || found == next) return testing::AssertionSuccess();
    if (together) return testing::AssertionFailure() << "neither all old nor all new";
    if (found.mark != old.mark && found.mark != next.mark) {
        return testing::AssertionFailure() << "attribute: " << found.mark;
    }
    if (found.shape != old.shape) {
        return testing::AssertionFailure() << "shape " << found.shape.to_string() << ", was " << old.shape.to_string()
                                           << ", becomes " << next.shape.to_string() << ", or its elements are not new";
    }
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
        const Index chunk = index_in(Region::whole(grid.grid()), n);
        const Region region = grid.chunk_region(chunk);
        if (!same(found, old, region) && !same(found, next, region)) {
            return testing::AssertionFailure() << "chunk " << chunk.to_string() << " is neither old nor new";
        }
    }
    return testing::AssertionSuccess();
}

std::map<std::string, Table> snapshots_of(const std::filesystem::path& path) {
    std::map<std::string, Table> found;
    for (const SnapshotInfo& info : list_snapshots(path)) {
        found.emplace(info.name, table_of(Array::open(info.path, {.read_only = true})));
    }
    return found;
}

testing::AssertionResult each_old_or_next(const std::map<std::string, Table>& found, const State& old,
                                          const State& next) {
    const auto has = [](const auto& snapshots, const auto& entry) {
        const auto place = snapshots.find(entry.first);
        return place != snapshots.end() && place->second == entry.second;
    };
    for (const auto& entry : found) {
        if (!has(old.snapshots, entry) && !has(next.snapshots, entry)) {
            return testing::AssertionFailure() << "the snapshot " << entry.first << " is not what it was made of";
        }
    }
    for (const auto& entry : old.snapshots) {
        if (has(next.snapshots, entry) && !found.contains(entry.first)) {
            return testing::AssertionFailure() << "the snapshot " << entry.first << " is gone";
        }
    }
    return testing::AssertionSuccess();
}

/// What a user does next.
testing::AssertionResult goes_on(Array& array, const std::filesystem::path& path) {
    const std::map<std::string, Table> snapshots = snapshots_of(path);
    Table table{array.shape(), {}, 5};
    table.values.assign(static_cast<std::size_t>(element_count(table.shape)), 11);
    const IoOptions one{.threads = 1};
    array.write("", view(table.values, table.shape), one);
    array.attributes().set("mark", table.mark);
    Shape larger = table.shape;
    for (auto& length : larger) length += 13;
    array.resize(larger, one);
    Table grown{larger, std::vector(static_cast<std::size_t>(element_count(larger)), fill_value), table.mark};
    for (std::int64_t r = 0; r < table.shape[0]; ++r) {
        for (std::int64_t c = 0; c < table.shape[1]; ++c) grown.at(r, c) = 11;
    }
    return holds(path, {grown, snapshots});
}

}  // namespace

testing::AssertionResult holds(const std::filesystem::path& path, const State& state) {
    try {
        if (!(table_of(Array::open(path, {.read_only = true})) == state.table)) {
            return testing::AssertionFailure() << path << " does not hold what was written";
        }
        if (snapshots_of(path) != state.snapshots) {
            return testing::AssertionFailure() << path << ": its snapshots are not what was made";
        }
        return only_leftovers(path);
    } catch (const Error& e) {
        return testing::AssertionFailure() << e.what();
    }
}

testing::AssertionResult old_or_next(const std::filesystem::path& path, const State& old, const State& next,
                                     bool together) {
    try {
        const Table seen = table_of(Array::open(path, {.read_only = true}));
        if (auto result = only_leftovers(path); !result) return result;
        if (auto result = each_old_or_next(snapshots_of(path), old, next); !result) return result;
        Array array = Array::open(path, {.durability = Durability::none});
        const Table found = table_of(array);
        if (!(found == seen)) return testing::AssertionFailure() << "opened for writing it holds something else";
        const ArrayMetadata metadata = array.metadata();
        const ChunkGrid grid(metadata.shape, metadata.chunks);
        if (auto result = each_old_or_next(found, grid, old.table, next.table, together); !result) return result;
        return goes_on(array, path);
    } catch (const Error& e) {
        return testing::AssertionFailure() << e.what();
    }
}

testing::AssertionResult old_or_next(const std::filesystem::path& path, const std::vector<Step>& steps,
                                     std::size_t done) {
    const auto states = states_after(steps);
    if (done == steps.size()) return old_or_next(path, states[done], states[done], true);
    auto result = old_or_next(path, states[done], states[done + 1], is_atomic(steps[done]));
    return result ? result : result << "\nin " << steps[done].to_string();
}

}  // namespace tessera::faults
