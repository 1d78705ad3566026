// Which chunks are stored, from the names in the folders.
//
// A name in a chunk's place is never reported as absent. A thing that cannot be opened (a FIFO, a dangling link) is
// listed as a chunk, and a directory in that place is reported separately, so that no copy takes either for the fill.
//
// With '/' between the indices, chunks lie in nested folders. Some of these may be symbolic links: to another disk, or
// back to a folder above, so that the number of paths doubles with each level. Each real folder is visited once, first
// those reached without links.
#include "stored_chunks.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/own_names.h>
#include <tessera/parallel.h>
#include <tessera/shard.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "directory_store.h"
#include "keys.h"

namespace tessera {

namespace {

class StoredWalk {
public:
    StoredWalk(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor)
        : store_(*array.store),
          prefix_(array.prefix),
          keys_(loaded.metadata.keys),
          grid_(loaded.grid),
          rank_(loaded.grid.shape().rank()),
          visitor_(visitor) {}

    void run() {
        const std::string& first = rank_ == 0 ? keys_.zero_d : keys_.prefix;
        const std::size_t slash = first.rfind('/');
        const std::string top = slash == std::string::npos ? "" : first.substr(0, slash);
        const int depth = keys_.separator == "/" ? rank_ - 1 : 0;
        if (walk_far(top, depth)) return;
        walk(top, depth);
        if (!top.empty() && !found_) require_folder(top);
        if (links_.empty()) return;
        ids_.emplace();
        remember(top, depth);
        while (!links_.empty()) {
            const Folder link = std::move(links_.back());
            links_.pop_back();
            go_on(link);
        }
    }

private:
    struct Folder {
        std::string path;  ///< below the array
        int depth = 0;     ///< how many levels of folders it may hold
    };

    /// By one listing that knows no folders, where a request for each would take long; false if there is none.
    bool walk_far(const std::string& top, int depth) {
        if (!store_.is_far()) return false;
        std::string in_the_way;  // the folder that was told last
        return store_.far()->for_each_below(
            join_key(prefix_, top), [&] { return names_between(top.empty() ? 0 : top.size() + 1); },
            [&](std::string_view name, const ValueStamp& stamp, std::string_view md5) {
                require_not_stopped();
                if (top.empty() && name.starts_with(own_folder) && name.substr(own_folder.size()).starts_with('/'))
                    return;
                const std::string_view folder = folder_at(name, depth);
                if (folder.empty()) return value(join_key(top, name), 0, [&] { return stamp.size; }, {stamp, md5});
                const std::string key = join_key(top, folder);
                const auto chunk = keys_.parse(key, rank_);
                if (!chunk || key == in_the_way) return;
                in_the_way = key;
                visitor_.in_the_way(&*chunk, key,
                                    fmt::format("{} is a directory, and not a regular file", name_of(key)));
            });
    }

    /// The folder in which something lies too deep for a chunk; empty if it does not.
    [[nodiscard]] static std::string_view folder_at(std::string_view name, int depth) {
        std::size_t slash = name.find('/');
        for (int d = 0; d < depth && slash != std::string_view::npos; ++d) slash = name.find('/', slash + 1);
        return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
    }

    /// Names of chunks without the first `skipped` bytes, in order, with about as many chunks between them.
    [[nodiscard]] std::vector<std::string> names_between(std::size_t skipped) const {
        constexpr std::int64_t most = 16'384;
        const std::int64_t count = grid_.chunk_count();
        std::vector<std::string> names;
        for (std::int64_t n = 0; n < std::min(count, most); ++n) {
            const auto part = static_cast<double>(count) / static_cast<double>(std::min(count, most));
            const auto at = static_cast<std::int64_t>(static_cast<double>(n) * part);
            names.push_back(keys_.key(grid_.index(std::min(at, count - 1))).substr(skipped));
        }
        std::ranges::sort(names);
        return names;
    }

    struct Listed {
        std::optional<ValueStamp> stamp;
        std::string_view md5;
    };

    void walk(const std::string& below, int depth) {
        std::vector<Folder> folders;
        store_.for_each(
            join_key(prefix_, below),
            [&](std::string_view name, const KeyValueStore::ValueSize& size) {
                found_ = true;
                value(join_key(below, name), depth, size, {});
            },
            [&](std::string_view name, bool link) {
                found_ = true;
                const std::string key = join_key(below, name);
                if (const auto chunk = keys_.parse(key, rank_)) {
                    visitor_.in_the_way(&*chunk, key,
                                        fmt::format("{} is a directory, and not a regular file", name_of(key)));
                } else if (depth > 0 && (!below.empty() || name != own_folder)) {
                    (link ? links_ : folders).push_back({key, depth - 1});
                }
            });
        for (const Folder& folder : folders) go_on(folder);
    }

    void go_on(const Folder& folder) {
        const auto id = ids_ ? store_.local_files().folder_id(join_key(prefix_, folder.path)) : std::nullopt;
        if (id && !ids_->insert(*id).second) {
            visitor_.in_the_way(nullptr, folder.path,
                                fmt::format("{} leads to chunks that have other names, too", name_of(folder.path)));
            return;
        }
        walk(folder.path, folder.depth);
    }

    /// Remembers the visited real folders, once a link was found.
    void remember(const std::string& below, int depth) {
        const std::string place = join_key(prefix_, below);
        if (const auto id = store_.local_files().folder_id(place)) ids_->insert(*id);
        if (depth == 0) return;
        const Listing listing = store_.list(place);
        for (const std::string& name : listing.prefixes) {
            if (!std::ranges::binary_search(listing.links, name)) remember(join_key(below, name), depth - 1);
        }
    }

    [[nodiscard]] std::string name_of(const std::string& key) const { return store_.name_of(join_key(prefix_, key)); }

    void value(const std::string& key, int depth, const KeyValueStore::ValueSize& size, const Listed& listed) {
        if (const auto chunk = keys_.parse(key, rank_)) {
            if (visitor_.each_listed) {
                const ValueStamp stamp = listed.stamp.value_or(ValueStamp{.size = size()});
                return visitor_.each_listed(join_key(prefix_, key), stamp, listed.md5);
            }
            return visitor_.each(*chunk, join_key(prefix_, key), size);
        }
        visitor_.stray(key);
        if (depth > 0 && looks_like_chunk(key.substr(key.rfind('/') + 1))) require_folder(key);
    }

    /// Throws if a folder of chunks is not a folder, because opening a chunk in it fails.
    void require_folder(const std::string& folder) {
        try {
            (void)store_.open(join_key(join_key(prefix_, folder), "0"));
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt) throw;
            visitor_.in_the_way(nullptr, folder, e.what());
        }
    }

    const ReadableStore& store_;
    const std::string& prefix_;
    const KeyScheme& keys_;
    const ChunkGrid& grid_;
    int rank_;
    const StoredVisitor& visitor_;
    bool found_ = false;
    std::vector<Folder> links_;            ///< still to be visited
    std::optional<std::set<FileId>> ids_;  ///< of the visited folders, once a link was found
};

/// Asks for every chunk, where nothing can be listed.
void ask_for_each(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor) {
    const std::int64_t count = loaded.grid.chunk_count();
    const auto ahead = array.store->read_ahead(0, [&, n = std::int64_t{0}](ReadWish& wish) mutable {
        if (n == count) return false;
        wish = {.key = array.chunk_key(loaded, loaded.grid.index(n++))};
        return true;
    });
    for (std::int64_t n = 0; n < count; ++n) {
        require_not_stopped();
        const Index index = loaded.grid.index(n);
        const std::string key = array.chunk_key(loaded, index);
        if (const auto value = array.store->open(key)) visitor.each(index, key, [&] { return value->size(); });
    }
}

}  // namespace

void for_each_stored(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor) {
    if (!array.store->lists()) return ask_for_each(array, loaded, visitor);
    StoredWalk(array, loaded, visitor).run();
}

CountedVector<std::int64_t> stored_units(const ArrayState& array, const LoadedArray& loaded,
                                         std::span<const std::int64_t> chunks, const IoOptions& io) {
    CountedVector<std::int64_t> numbers;
    if (loaded.pipeline.shard() == nullptr) numbers.assign(chunks.begin(), chunks.end());
    const ChunkGrid units = unit_grid(loaded);
    std::mutex mutex;
    const auto read = [&](std::int64_t n) {
        const Index index = loaded.grid.index(chunks[static_cast<std::size_t>(n)]);
        const auto own = loaded.of(index);
        const ShardCodec& codec = *own->pipeline.shard();
        const auto shard = array.store->open(array.chunk_key(loaded, index));
        std::optional<std::vector<ShardCodec::Place>> places;
        try {
            if (shard != nullptr) places = codec.read_index(*shard);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
        }
        const Index first = first_unit(loaded, index);
        const std::lock_guard lock(mutex);
        for (std::int64_t i = 0; i < codec.grid().chunk_count(); ++i) {
            Index unit = codec.grid().index(i);
            const bool there = !places || (*places)[codec.number(unit)].present();
            for (int d = 0; d < unit.rank(); ++d) unit[d] += first[d];
            if (there && in_grid(units, unit)) numbers.push_back(units.linear(unit));
        }
    };
    if (loaded.pipeline.shard() != nullptr) parallel_in_memory(std::ssize(chunks), {.threads = io.threads}, read);
    std::ranges::sort(numbers);
    return numbers;
}

StoredGrid stored_grid(const LoadedArray& loaded) {
    StoredGrid grid{.grid = loaded.grid.grid(),
                    .chunks = loaded.grid.chunks(),
                    .key = loaded.metadata.keys.key(Index::filled(loaded.grid.shape().rank(), 0))};
    if (loaded.pipeline.shard() == nullptr) return grid;
    grid.units = unit_grid(loaded).grid();
    grid.unit = unit_shape(loaded);
    return grid;
}

void record_stored_chunks(const ArrayState& array, const LoadedArray& loaded) {
    if (!is_directory_store(*array.store)) return;
    try {
        CountedVector<std::int64_t> numbers;
        const auto each = [&](const Index& index, const std::string&, const auto&) {
            if (in_grid(loaded.grid, index)) numbers.push_back(loaded.grid.linear(index));
        };
        for_each_stored(array, loaded,
                        {.each = each, .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
        write_stored_record(array, stored_grid(loaded), stored_units(array, loaded, numbers, {}));
    } catch (const Error& e) {
        if (e.code() != ErrorCode::budget) throw;
    }
}

}  // namespace tessera
