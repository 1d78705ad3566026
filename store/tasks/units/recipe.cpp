#include "recipe.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/file_system.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/reduce.h>

#include <time.h>

#include "array_access.h"
#include "sha256.h"
#include "unit_records.h"

namespace tessera {

namespace fs = std::filesystem;

constexpr std::int64_t nanoseconds = 1'000'000'000;  // of a second

class WhatWasRead {
public:
    struct Part {
        std::shared_ptr<ArrayState> array;
        Region region;
    };
    void note(std::shared_ptr<ArrayState> array, const Region& region) {
        const std::lock_guard lock(mutex_);
        parts_.push_back({std::move(array), region});
    }
    /// What was noted since the last call.
    [[nodiscard]] std::vector<Part> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(parts_, {});
    }

private:
    std::mutex mutex_;
    std::vector<Part> parts_;
};

namespace {

[[noreturn]] void refuse(const fs::path& place, std::string_view what) {
    throw SourceChanged(
        fmt::format("{} {} after the job was planned: plan it again, with another target or in place of this one",
                    place.string(), what));
}

/// What of an array in a folder was looked at.
struct Seen {
    std::set<std::int64_t> chunks;
    std::set<fs::path> folders;
};

void require_unchanged(const WhatWasRead::Part& part, std::int64_t since, Seen& seen) {
    const ArrayState& state = *part.array;
    const auto loaded = state.loaded();
    const fs::path root = state.store->name();
    const Region box = loaded->grid.overlapping(part.region);
    for (std::int64_t n = 0; n < box.count(); ++n) {
        const Index chunk = index_in(box, n);
        if (!seen.chunks.insert(loaded->grid.linear(chunk)).second) continue;
        const fs::path file = root / state.chunk_key(*loaded, chunk);
        if (const auto facts = path_facts(file)) {
            if (facts->changed > since) refuse(file, "changed");
            continue;
        }
        // It was absent then, too, if no name was made or removed in the folder.
        fs::path folder = file.parent_path();
        while (!seen.folders.contains(folder) && folder != root && !path_facts(folder)) folder = folder.parent_path();
        if (!seen.folders.insert(folder).second) continue;
        const auto facts = path_facts(folder);
        if (!facts || facts->modified > since) refuse(folder, "lost or got files");
    }
}

/// Opens what lies at a path and notes what is read of it.
class OpenWatched {
public:
    /// `far`: whether arrays far away are noted; not those of a join, which are opened again and again.
    OpenWatched(const Recipe& recipe, WatchedRecipe& opened, bool far)
        : open_(open_by_path(recipe)), read_(opened.read), far_(far ? &opened.far : nullptr) {}

    std::unique_ptr<ArraySource> operator()(const std::string& path) const {
        std::unique_ptr<ArraySource> source = open_(path);
        const auto* array = as_array(*source);
        if (array == nullptr) return source;
        const std::shared_ptr<ArrayState>& state = ArrayAccess::state(*array);
        if (state->store->is_far() && far_ != nullptr) far_->emplace_back(path, state->store);
        if (!fs::is_directory(state->store->name())) return source;
        state->watch = [read = read_, own = std::weak_ptr(state)](const Region& region) {
            if (auto held = own.lock()) read->note(std::move(held), region);
        };
        return source;
    }

private:
    OpenIngredient open_;
    std::shared_ptr<WhatWasRead> read_;
    decltype(WatchedRecipe::far)* far_;
};

/// Where the array at a path lies, if that is a folder.
std::optional<fs::path> folder_of(const std::string& path) {
    const Located at = locate(path);
    if (!at.place || !is_local(at.file.path) || at.dialect == nullptr) return std::nullopt;
    const fs::path root = at.place->store->name();
    return fs::is_directory(root) ? std::optional(root / at.place->prefix) : std::nullopt;
}

/// A hash of the documents of the array in a folder.
std::string documents_hash(const fs::path& folder) {
    const auto store = directory_store(folder, {.read_only = true});
    const Dialect* dialect = probe_dialect(*store);
    if (dialect == nullptr) return "none";
    Hasher hash;
    Buffer text;
    for (const std::string_view key : dialect->documents) {
        if (!store->get(key, text, metadata_limit)) continue;
        hash.add(key.data(), key.size());
        hash.add(text.data(), text.size());
    }
    return hex(hash.finish());
}

/// Calls each(path, facts) for everything in an array's folder but what Tessera keeps for itself.
template <class Each>
void for_each_file(const fs::path& folder, const Each& each) {
    if (const auto facts = path_facts(folder)) each(folder, *facts);
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        if (entry->path().filename() == own_folder) {
            entry.disable_recursion_pending();
            continue;
        }
        if (const auto facts = path_facts(entry->path())) each(entry->path(), *facts);
    }
    if (error) throw io_error("listing", folder.string(), error.value());
}

/// What lies at a place in a store far away, as its listing tells; nullopt elsewhere.
std::optional<std::string> values_of(const Place& place) {
    if (!place.store->is_far() || !place.store->lists()) return std::nullopt;
    return ListedValues(place).summary();
}

bool is_on_the_network(const fs::path& path) {
    static const std::set<std::string, std::less<>> own{"ext2", "ext3", "ext4",    "xfs",   "btrfs",   "tmpfs",
                                                        "zfs",  "f2fs", "overlay", "ramfs", "bcachefs"};
    return !own.contains(file_system_of(path).type);
}

}  // namespace

WatchedRecipe open_watched(const Recipe& recipe, const IoOptions& io) {
    WatchedRecipe opened{.source = nullptr, .read = std::make_shared<WhatWasRead>(), .far = {}};
    const bool joins = std::holds_alternative<JoinRecipe>(recipe.make);
    opened.source = open_recipe(recipe, OpenWatched(recipe, opened, !joins), io).source;
    return opened;
}

UnitSource unit_source(const JobArray& array, const IoOptions& io) {
    WatchedRecipe opened = open_watched(array.source, io);
    const Shape& shape = opened.source->info().shape;
    Selection selection = array.source.selection && array.source.selects_view()
                              ? Selection::parse(*array.source.selection, shape)
                              : Selection::all(shape);
    if (!(selection.shape() == array.plan.metadata.shape)) {
        throw SourceChanged(fmt::format("{}: its shape is not what it was when the job was planned: it changed",
                                        opened.source->name()));
    }
    return {std::move(opened), std::move(selection)};
}

void require_unchanged_chunks(const WatchedRecipe& opened, const Value& sources) {
    std::map<fs::path, Seen> seen;
    for (const WhatWasRead::Part& part : opened.read->take()) {
        const ArrayState& state = *part.array;
        const fs::path place = fs::path(state.store->name()) / state.prefix;
        for (const Value& identity : sources.as_array()) {
            const Value* folder = identity.find("folder");
            if (folder == nullptr || fs::path(folder->as_string()) != place) continue;
            require_unchanged(part, identity.at("since").as_int64(), seen[place]);
        }
    }
    for (const auto& [path, store] : opened.far) {
        const auto times = store->seen_times();
        for (const Value& identity : sources.as_array()) {
            const std::int64_t since = identity.at("since").as_int64();
            if (identity.at("path").as_string() != path || since == 0) continue;
            if (times.changed * nanoseconds > since) refuse(times.name, "changed");
        }
    }
}

Value source_identity(const std::string& path) {
    Value identity{{"path", path}};
    if (const auto folder = folder_of(path)) {
        identity.set("folder", folder->string());
        identity.set("documents", documents_hash(*folder));
        return identity;
    }
    const fs::path named = split_array_path(path).path;
    if (!is_local(named)) {
        const Place place = find_place(named, {.read_only = true});
        identity.set("version", version_text(place));
        if (const auto values = values_of(place)) identity.set("values", *values);
        return identity;
    }
    const Located at = locate(path);
    const fs::path file = at.place ? fs::path(at.place->store->name()) : named;
    const PathFacts facts = path_facts(file).value_or(PathFacts{});
    identity.set("file", file.string());
    identity.set("size", facts.size);
    identity.set("modified", facts.modified);
    return identity;
}

std::int64_t present_time(const Value& identity, const fs::path& marker) {
    if (identity.find("version") != nullptr) {
        const Place far = find_place(split_array_path(identity.at("path").as_string()).path, {.read_only = true});
        (void)probe_dialect(far);
        return far.store->seen_times().now * nanoseconds;
    }
    const Value* place = identity.find("folder");
    if (place == nullptr) place = identity.find("file");
    if (place == nullptr) return 0;
    const fs::path path = place->as_string();
    const auto there = path_facts(path);
    const auto own = path_facts(marker);
    if (there && own && there->id.device == own->id.device) return own->changed;
    if (!is_on_the_network(path)) {
        timespec now{};
        (void)::clock_gettime(CLOCK_REALTIME, &now);
        return std::int64_t{now.tv_sec} * nanoseconds + now.tv_nsec;
    }
    // A server's clock that nothing was written by: what changes later is later than all that is there.
    std::int64_t newest = 0;
    if (there && !there->directory) return there->changed;
    for_each_file(path, [&](const fs::path&, const PathFacts& facts) { newest = std::max(newest, facts.changed); });
    return newest;
}

void require_same_source(const Value& identity, bool whole) {
    const std::string& path = identity.at("path").as_string();
    const Value* folder = identity.find("folder");
    const std::int64_t since = identity.at("since").as_int64();
    if (folder != nullptr) {
        const fs::path place = folder->as_string();
        if (documents_hash(place) != identity.at("documents").as_string()) {
            refuse(place, "has other metadata than before, or none: it changed");
        }
        if (!whole) return;
        for_each_file(place, [&](const fs::path& file, const PathFacts& facts) {
            if (facts.directory ? facts.modified > since : facts.changed > since) {
                refuse(file, facts.directory ? "lost or got files" : "changed");
            }
        });
        return;
    }
    if (const Value* version = identity.find("version")) {
        const Place place = find_place(split_array_path(path).path, {.read_only = true});
        if (version_text(place) != version->as_string()) refuse(path, "changed");
        const Value* values = identity.find("values");
        if (whole && values != nullptr && values_of(place) != values->as_string()) {
            refuse(path, "lost or got chunks, or some changed,");
        }
        return;
    }
    const fs::path file = identity.at("file").as_string();
    const auto facts = path_facts(file);
    if (!facts || facts->size != identity.at("size").as_uint64() ||
        facts->modified != identity.at("modified").as_int64() || facts->changed > since) {
        refuse(file, "changed");
    }
}

}  // namespace tessera
