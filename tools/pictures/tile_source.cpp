// A tile is made in four steps: find its blocks (chunks) and their versions; take those that the cache has; decode
// others, within a limit; add everything up. A block beyond the limit is represented by a few of its elements. These
// are cached, too, so that the next request for the tile continues decoding.
#include <tessera/tile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/fnv.h>

#include "shown_elements.h"
#include "tile_array.h"
#include "tile_cache.h"
#include "tile_plane.h"

namespace tessera {

namespace {

constexpr std::int64_t most_decoded = 128;  // blocks for a tile
constexpr std::int64_t most_decoded_bytes = std::int64_t{512} << 20;
constexpr std::int64_t most_glanced = 512;                           // blocks of which some elements are read
constexpr std::int64_t most_glanced_bytes = std::int64_t{64} << 20;  // where these take the whole block
constexpr std::int64_t most_looked_for = 4096;                       // blocks of a tile, one by one
constexpr std::int64_t glanced_elements = 16;

// For tiles with windows of up to 2^3 elements, the elements are cached; for others, the sums of windows of at least
// 2^4.
constexpr int finest_kept = 4;

struct TileBlock {
    std::int64_t row = 0;  ///< in the grid of blocks
    std::int64_t column = 0;
    TileBox box;  ///< its elements, cut at the array's end
    std::string version;
    bool stored = true;
    std::shared_ptr<const TilePlane> plane;  ///< nullptr until it is known
    double glance = 0;
};

template <class T>
void append_bytes(std::string& key, const T& v) {
    key.append(reinterpret_cast<const char*>(&v), sizeof v);
}

/// The i-th of `n` numbers that are spread evenly below `all`.
std::int64_t evenly(std::int64_t i, std::int64_t n, std::int64_t all) {
    return (2 * i + 1) * all / (2 * n);
}

/// The lengths of groups of blocks, of which there are at most `most`.
std::pair<std::int64_t, std::int64_t> group_lengths(std::int64_t rows, std::int64_t columns, std::int64_t most) {
    const double fit = std::sqrt(static_cast<double>(rows) * static_cast<double>(columns) / static_cast<double>(most));
    std::int64_t high = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(fit)), 1, rows);
    std::int64_t wide =
        std::clamp<std::int64_t>(ceil_div(columns, std::max<std::int64_t>(1, most / ceil_div(rows, high))), 1, columns);
    if (wide == 1 && columns <= most)
        high = std::max<std::int64_t>(1, ceil_div(rows, std::max<std::int64_t>(1, most / columns)));
    return {high, wide};
}

/// Ends the work that begin() of the cache gave to this thread.
class InWork {
public:
    InWork(TileStore& store, const std::string& key) : store_(store), key_(key) {}
    ~InWork() { store_.finished(key_); }
    InWork(const InWork&) = delete;
    InWork& operator=(const InWork&) = delete;

private:
    TileStore& store_;
    const std::string& key_;
};

}  // namespace

/// One request.
class TileSource::Work {
public:
    Work(const TileArray& array, TileStore& store, TileSlice slice, const IoOptions& io)
        : array_(array), store_(store), slice_(std::move(slice)), io_(io) {
        array_.require_slice(slice_);
        elements_ = array_.elements_of(slice_);
        if (elements_.count() == 0) {
            throw out_of_bounds("{}: there are no tiles of the shape {}, which has no elements", array_.source->name(),
                                array_.info.shape.to_string());
        }
        block_ = array_.block_of(slice_);
        alone_ = io_;
        alone_.threads = 1;
        alone_.progress = nullptr;
    }

    Tile tile(const TileRequest& request, const DType& dtype) {
        level_ = {request.row_level, request.column_level};
        how_ = {.with = level_ == TileLevel{} ? Coarsening::nearest : request.with, .missing = &array_.missing};
        const TileBox windows = windows_ = windows_of_tile(request);
        TileCells cells(windows, elements_, level_, how_);
        const BlockRange range = blocks_of(windows);
        Tile tile;
        if (find_blocks(range)) {
            look_up();
            decode(tile);
            glance_at_rest(tile);
            for (const TileBlock& block : blocks_) add(cells, block);
        } else {
            add_groups(range, cells);
            tile.sampled = true;
            tile.left = static_cast<std::int64_t>(
                std::min(static_cast<double>(range.rows) * static_cast<double>(range.columns), 9e15));
        }
        if (array_.state != nullptr) cells.add_rest(array_.fill_number());
        tile.values = cells.values(dtype);
        tile.version = version();
        return tile;
    }

    TilePreview preview() {
        how_.missing = &array_.missing;
        const BlockRange range{0, 0, ceil_div(elements_.rows, block_.rows),
                               ceil_div(elements_.columns, block_.columns)};
        const auto [high, wide] = group_lengths(range.rows, range.columns, most_glances());
        TilePreview preview;
        preview.row_length = high * block_.rows;
        preview.column_length = wide * block_.columns;
        const Shape shape{ceil_div(range.rows, high), ceil_div(range.columns, wide)};
        preview.values = NDArray(DType::of<double>(), shape);
        const std::vector<double> glances = glances_of(range, high, wide);
        std::ranges::copy(glances, preview.values.values<double>().begin());
        return preview;
    }

private:
    [[nodiscard]] TileBox windows_of_tile(const TileRequest& request) const {
        const TileBox all = windows_of(elements_, level_, how_.with);
        TileBox windows{request.row, request.column, 0, 0};
        const auto inside = [](std::int64_t tile, std::int64_t count) {
            return tile >= 0 && tile < ceil_div(count, tile_side);
        };
        if (!inside(request.row, all.rows) || !inside(request.column, all.columns)) {
            throw out_of_bounds("{}: at levels ({}, {}) there is no tile ({}, {})", array_.source->name(), level_.row,
                                level_.column, request.row, request.column);
        }
        windows.row *= tile_side;
        windows.column *= tile_side;
        windows.rows = std::min(tile_side, all.rows - windows.row);
        windows.columns = std::min(tile_side, all.columns - windows.column);
        return windows;
    }

    /// The blocks that windows touch.
    [[nodiscard]] BlockRange blocks_of(const TileBox& windows) const {
        const auto along = [](std::int64_t first, std::int64_t count, int level, std::int64_t length,
                              std::int64_t block) {
            const std::int64_t size = std::int64_t{1} << level;
            const std::int64_t start = first * size;
            const std::int64_t end = count > (length - start) / size ? length : start + count * size;
            return std::pair(start / block, (end - 1) / block - start / block + 1);
        };
        const auto [row, rows] = along(windows.row, windows.rows, level_.row, elements_.rows, block_.rows);
        const auto [column, columns] =
            along(windows.column, windows.columns, level_.column, elements_.columns, block_.columns);
        return {row, column, rows, columns};
    }

    [[nodiscard]] TileBox box_of(const BlockRange& blocks) const {
        TileBox box{blocks.row * block_.rows, blocks.column * block_.columns, 0, 0};
        box.rows = std::min(blocks.rows * block_.rows, elements_.rows - box.row);
        box.columns = std::min(blocks.columns * block_.columns, elements_.columns - box.column);
        return box;
    }

    /// Gathers the stored blocks of a range with their versions. False if there are too many to look for.
    bool find_blocks(const BlockRange& range) {
        std::vector<BlockRange> parts{range};
        if (static_cast<double>(range.rows) * static_cast<double>(range.columns) > most_looked_for) {
            auto stored = array_.stored_in(slice_, range);
            if (!stored) return false;
            parts = std::move(*stored);
            double count = 0;
            for (const BlockRange& part : parts) count += static_cast<double>(part.count());
            if (count > most_looked_for) {
                listed_ = std::move(parts);
                return false;
            }
        }
        for (const BlockRange& part : parts) {
            for (std::int64_t i = part.row; i < part.row + part.rows; ++i) {
                for (std::int64_t j = part.column; j < part.column + part.columns; ++j) {
                    const TileBox box = box_of({i, j, 1, 1});
                    // `nearest` takes nothing from a block without the first element of a window.
                    if (windows_of(box, level_, how_.with).count() == 0) continue;
                    blocks_.push_back(
                        {.row = i, .column = j, .box = box, .version = {}, .stored = true, .plane = nullptr});
                }
            }
        }
        find_versions(blocks_);
        std::erase_if(blocks_, [](const TileBlock& block) { return !block.stored; });
        return true;
    }

    void find_versions(std::vector<TileBlock>& blocks) const {
        // With shards, several blocks have one value.
        std::map<std::vector<std::int64_t>, std::optional<std::string>> versions;
        std::vector<std::vector<std::int64_t>> values;
        for (const TileBlock& block : blocks) {
            const Index value = array_.value_of(slice_, block.row, block.column);
            values.emplace_back(value.begin(), value.end());
            versions[values.back()];
        }
        std::vector<std::pair<const std::vector<std::int64_t>, std::optional<std::string>>*> all;
        all.reserve(versions.size());
        for (auto& version : versions) all.push_back(&version);
        constexpr std::int64_t together = 64;
        parallel_for(ceil_div(std::ssize(all), together), io_, [&](std::int64_t n) {
            const std::int64_t end = std::min(std::ssize(all), (n + 1) * together);
            for (std::int64_t i = n * together; i < end; ++i) {
                auto& version = *all[static_cast<std::size_t>(i)];
                version.second = array_.version_of(Index(version.first));
            }
        });
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const auto& version = versions[values[i]];
            blocks[i].stored = version.has_value();
            if (version) blocks[i].version = *version;
        }
    }

    // ---- keys of the cache

    [[nodiscard]] std::string key_of(const TileBlock& block) const {
        std::string key = array_.identity;
        key += '\0';
        key += block.version;
        key += '\0';
        append_bytes(key, slice_.rows);
        append_bytes(key, slice_.columns);
        append_bytes(key, block.row);
        append_bytes(key, block.column);
        for (int d = 0; d < slice_.at.rank(); ++d) {
            append_bytes(key, d == slice_.rows || d == slice_.columns ? std::int64_t{0} : slice_.at[d]);
        }
        return key;
    }
    [[nodiscard]] std::string key_of_chunk(const TileBlock& block, const Region& region) const {
        std::string key = array_.identity;
        key += '\0';
        key += block.version;
        key += '\0';
        for (const std::int64_t start : region.start) append_bytes(key, start);
        return key + "c";
    }
    [[nodiscard]] static std::string key_of_elements(const std::string& block) { return block + "e"; }
    [[nodiscard]] static std::string key_of_glance(const std::string& block) { return block + "g"; }
    [[nodiscard]] std::string key_of_plane(const std::string& block, const TileLevel& level) const {
        return block + static_cast<char>('A' + static_cast<int>(how_.with)) + static_cast<char>(level.row) +
               static_cast<char>(level.column);
    }

    // ---- planes

    [[nodiscard]] TileLevel finer(int steps) const {
        return {std::max(0, level_.row - steps), std::max(0, level_.column - steps)};
    }

    /// The plane from the cache: itself, or made of a finer plane or of elements.
    [[nodiscard]] std::shared_ptr<const TilePlane> known(const TileBlock& block, const std::string& key) const {
        if (auto plane = store_.find(key_of_plane(key, level_))) return plane;
        std::shared_ptr<const TilePlane> made;
        for (int steps = 1; !made && finer(steps - 1) != TileLevel{} && finer(steps) != TileLevel{}; ++steps) {
            const auto plane = store_.find(key_of_plane(key, finer(steps)));
            if (!plane) continue;
            made = std::make_shared<TilePlane>(coarser_plane(*plane, block.box, finer(steps), level_, how_));
        }
        if (!made) {
            const auto elements = store_.find(key_of_elements(key));
            if (!elements) return nullptr;
            made = from_elements(elements->elements, block);
            if (level_ == TileLevel{}) return made;  // no smaller than the elements
        }
        store_.insert(key_of_plane(key, level_), made, wanted_plane);
        return made;
    }

    /// Where windows are single elements, only those inside the tile are taken.
    [[nodiscard]] std::shared_ptr<TilePlane> from_elements(const NDArray& elements, const TileBlock& block) const {
        if (level_ != TileLevel{}) {
            return std::make_shared<TilePlane>(reduced_plane(elements, block.box, level_, how_));
        }
        const TileBox part = common(windows_, block.box);
        return std::make_shared<TilePlane>(reduced_plane(part_of(elements, block.box, part), part, level_, how_));
    }

    void look_up() {
        parallel_in_memory(std::ssize(blocks_), io_, [&](std::int64_t i) {
            TileBlock& block = blocks_[static_cast<std::size_t>(i)];
            block.plane = known(block, key_of(block));
        });
    }

    /// Decodes blocks that the cache does not have, as many as a tile may.
    void decode(Tile& tile) {
        std::vector<TileBlock*> unknown;
        for (TileBlock& block : blocks_) {
            if (!block.plane) unknown.push_back(&block);
        }
        const std::int64_t most =
            std::clamp<std::int64_t>(most_decoded_bytes / array_.decoded_bytes(slice_), 1, most_decoded);
        const std::int64_t n = std::min<std::int64_t>(most, std::ssize(unknown));
        std::atomic<std::int64_t> decoded = 0;
        parallel_in_memory(n, io_, [&](std::int64_t i) {
            TileBlock& block = *unknown[static_cast<std::size_t>(evenly(i, n, std::ssize(unknown)))];
            if (plane_of(block)) ++decoded;
        });
        std::erase_if(blocks_, [](const TileBlock& block) { return !block.stored; });
        tile.decoded = decoded;
        tile.left = std::ssize(unknown) - n;
        tile.sampled = tile.left > 0;
    }

    /// Sets the block's plane. Returns whether it had to be decoded. If several requests need it, one of them decodes.
    bool plane_of(TileBlock& block) {
        for (;;) {
            const std::string key = key_of(block);
            if (store_.begin(key)) {
                const InWork in_work(store_, key);
                block.plane = known(block, key);
                if (block.plane) return false;
                decode_block(block);
                return true;
            }
            block.plane = known(block, key);
            if (block.plane) return false;
        }
    }

    void decode_block(TileBlock& block) {
        NDArray elements = read_block(block);
        if (!block.stored) return;
        const std::string key = key_of(block);
        TilePlane whole{.windows = block.box, .values = {}, .counts = {}, .elements = std::move(elements)};
        const auto kept = std::make_shared<TilePlane>(std::move(whole));
        const bool fine = level_.row + level_.column < finest_kept;
        store_.insert(key_of_elements(key), kept, fine ? wanted_plane : unwanted_elements);
        if (fine) {
            block.plane = from_elements(kept->elements, block);
            return;
        }
        int steps = 0;
        while (finer(steps + 1).row + finer(steps + 1).column >= finest_kept) ++steps;
        auto plane = std::make_shared<const TilePlane>(reduced_plane(kept->elements, block.box, finer(steps), how_));
        for (;; --steps) {
            store_.insert(key_of_plane(key, finer(steps)), plane, std::min(steps, unwanted_elements - 1));
            if (steps == 0) break;
            plane = std::make_shared<const TilePlane>(
                coarser_plane(*plane, block.box, finer(steps), finer(steps - 1), how_));
        }
        block.plane = plane;
        if (kept.use_count() == 1) store_.recycle(std::move(kept->elements));
    }

    /// All elements of a block. A chunk that had to be decoded whole for them is kept for slices beside this one.
    [[nodiscard]] NDArray read_block(TileBlock& block) const {
        if (!array_.keeps_chunks(slice_)) {
            ++store_.decoded;
            return read_version(block, block.box);
        }
        const Region region = array_.chunk_of(slice_, block.row, block.column);
        NDArray elements = store_.fresh(array_.meaning.stored, {block.box.rows, block.box.columns});
        if (const auto known = store_.find(key_of_chunk(block, region))) {
            array_.copy_slice(known->elements, region, slice_, block.box, elements);
            return elements;
        }
        NDArray chunk = store_.fresh(array_.native, region.extent);
        read_versioned(block, [&] { array_.source->read_into(region, chunk.view(), alone_); });
        ++store_.decoded;
        array_.copy_slice(chunk, region, slice_, block.box, elements);
        TilePlane whole{.windows = {}, .values = {}, .counts = {}, .elements = std::move(chunk)};
        const auto kept = std::make_shared<TilePlane>(std::move(whole));
        if (block.stored) store_.insert(key_of_chunk(block, region), kept, unwanted_elements);
        if (kept.use_count() == 1) store_.recycle(std::move(kept->elements));
        return elements;
    }

    [[nodiscard]] NDArray read_version(TileBlock& block, const TileBox& box) const {
        NDArray elements = store_.fresh(array_.meaning.stored, {box.rows, box.columns});
        read_versioned(block, [&] { array_.read_into(slice_, box, elements, alone_); });
        return elements;
    }

    /// Reads elements of a block, and updates the block's version to theirs. A block that vanished meanwhile counts as
    /// not stored.
    template <class Read>
    void read_versioned(TileBlock& block, const Read& read) const {
        constexpr int most_tries = 8;
        for (int tries = 1;; ++tries) {
            read();
            const auto after = array_.version_of(array_.value_of(slice_, block.row, block.column));
            if (after && *after == block.version) return;
            block.stored = after.has_value();
            if (!after) return;
            block.version = *after;
            // Each read still sees one version. Only the name of that version is uncertain.
            if (tries == most_tries) return;
        }
    }

    // ---- a few elements in place of a block

    [[nodiscard]] std::int64_t most_glances() const {
        if (array_.reads_parts) return most_glanced;
        return std::clamp<std::int64_t>(most_glanced_bytes / array_.decoded_bytes(slice_), 1, most_glanced);
    }

    /// The mean of some elements in the middle of a block.
    [[nodiscard]] double glance(TileBlock& block) const {
        const std::string key = key_of_glance(key_of(block));
        if (const auto plane = store_.find(key)) return plane->values.values<double>()[0];
        TileBox box{block.box.row + block.box.rows / 2, block.box.column + block.box.columns / 2, 1, 1};
        // Along the dimension whose elements are neighbours in the chunk.
        if (slice_.columns > slice_.rows) {
            box.columns = std::min(glanced_elements, block.box.column + block.box.columns - box.column);
        } else {
            box.rows = std::min(glanced_elements, block.box.row + block.box.rows - box.row);
        }
        const NDArray elements = read_version(block, box);
        if (!block.stored) return array_.fill_number();
        const TileLevel all{most_tile_level, most_tile_level};
        TileCells cell({0, 0, 1, 1}, {0, 0, box.rows, box.columns}, all,
                       {.with = Coarsening::mean, .missing = &array_.missing});
        const TileBox alone{0, 0, box.rows, box.columns};
        cell.add(reduced_plane(elements, alone, all, {.with = Coarsening::mean, .missing = &array_.missing}), alone);
        auto plane = std::make_shared<TilePlane>();
        plane->values = cell.values(DType::of<double>());
        const double value = plane->values.values<double>()[0];
        store_.insert(key_of_glance(key_of(block)), std::move(plane), wanted_plane);
        return value;
    }

    /// Gives each block without a plane the value read of it, or of a block before it.
    void glance_at_rest(const Tile& tile) {
        if (!tile.sampled) return;
        std::vector<TileBlock*> rest;
        for (TileBlock& block : blocks_) {
            if (!block.plane) rest.push_back(&block);
        }
        const std::int64_t n = std::min(std::ssize(rest), most_glances());
        std::vector<double> glances(static_cast<std::size_t>(n));
        parallel_in_memory(n, io_, [&](std::int64_t i) {
            glances[static_cast<std::size_t>(i)] =
                glance(*rest[static_cast<std::size_t>(evenly(i, n, std::ssize(rest)))]);
        });
        for (std::int64_t i = 0; i < std::ssize(rest); ++i) {
            rest[static_cast<std::size_t>(i)]->glance = glances[static_cast<std::size_t>(i * n / std::ssize(rest))];
        }
    }

    static void add(TileCells& cells, const TileBlock& block) {
        if (block.plane) {
            cells.add(*block.plane, block.box);
        } else if (block.stored) {
            cells.add_constant(block.glance, block.box);
        }
    }

    /// The block in the middle of each group of blocks of a range, in C order.
    static std::vector<TileBlock> middles_of(const BlockRange& range, std::int64_t high, std::int64_t wide) {
        std::vector<TileBlock> middles;
        for (std::int64_t i = 0; i < range.rows; i += high) {
            for (std::int64_t j = 0; j < range.columns; j += wide) {
                TileBlock& block = middles.emplace_back();
                block.row = range.row + std::min(i + high / 2, range.rows - 1);
                block.column = range.column + std::min(j + wide / 2, range.columns - 1);
            }
        }
        return middles;
    }

    /// One number for each group of blocks of a range, in C order.
    std::vector<double> glances_of(const BlockRange& range, std::int64_t high, std::int64_t wide) {
        const std::int64_t columns = ceil_div(range.columns, wide);
        std::vector<TileBlock> chosen = middles_of(range, high, wide);
        if (high * wide > 1) {
            // In a sparse array, a stored block represents its group better than the one in the middle.
            if (!listed_) listed_ = array_.stored_in(slice_, range);
            for (const BlockRange& part : listed_.value_or(std::vector<BlockRange>())) {
                const std::int64_t group =
                    (part.row - range.row) / high * columns + (part.column - range.column) / wide;
                chosen[static_cast<std::size_t>(group)].row = part.row;
                chosen[static_cast<std::size_t>(group)].column = part.column;
            }
        }
        for (TileBlock& block : chosen) block.box = box_of({block.row, block.column, 1, 1});
        find_versions(chosen);
        std::vector<double> glances(chosen.size());
        parallel_in_memory(std::ssize(chosen), io_, [&](std::int64_t i) {
            TileBlock& block = chosen[static_cast<std::size_t>(i)];
            glances[static_cast<std::size_t>(i)] = block.stored ? glance(block) : array_.fill_number();
        });
        blocks_.insert(blocks_.end(), chosen.begin(), chosen.end());
        return glances;
    }

    /// If there are too many blocks: adds those that are listed, or else all, each with the value of its group.
    void add_groups(const BlockRange& range, TileCells& cells) {
        const auto [high, wide] = group_lengths(range.rows, range.columns, most_glances());
        const std::vector<double> glances = glances_of(range, high, wide);
        const std::int64_t columns = ceil_div(range.columns, wide);
        if (listed_) {
            for (const BlockRange& part : *listed_) {
                const std::int64_t group =
                    (part.row - range.row) / high * columns + (part.column - range.column) / wide;
                cells.add_constant(glances[static_cast<std::size_t>(group)], box_of(part));
            }
            return;
        }
        for (std::size_t k = 0; k < glances.size(); ++k) {
            BlockRange group{range.row + static_cast<std::int64_t>(k) / columns * high,
                             range.column + static_cast<std::int64_t>(k) % columns * wide, 0, 0};
            group.rows = std::min(high, range.row + range.rows - group.row);
            group.columns = std::min(wide, range.column + range.columns - group.column);
            cells.add_constant(glances[k], box_of(group));
        }
    }

    [[nodiscard]] std::uint64_t version() const {
        std::uint64_t hash = fnv1a(array_.identity);
        for (const TileBlock& block : blocks_) {
            hash = fnv1a(fmt::format("/{},{}:{}", block.row, block.column, block.version), hash);
        }
        return hash;
    }

    const TileArray& array_;
    TileStore& store_;
    TileSlice slice_;
    IoOptions io_;
    IoOptions alone_;  ///< for the reads of one job
    TileBox elements_, block_;
    TileBox windows_;  ///< of the tile
    TileLevel level_;
    TileReduction how_;
    std::vector<TileBlock> blocks_;
    std::optional<std::vector<BlockRange>> listed_;
};

TileSource::TileSource(std::shared_ptr<const ArraySource> source, std::shared_ptr<TileCache> cache,
                       std::string identity)
    : array_(std::make_unique<TileArray>(std::move(source), std::move(cache), std::move(identity))) {}
TileSource::~TileSource() = default;

DType TileSource::dtype(Coarsening with, int row_level, int column_level) const {
    const DType& from = array_->meaning.stored;
    const bool mean = with == Coarsening::mean && (row_level > 0 || column_level > 0);
    switch (from.kind()) {
        case Kind::boolean:
            return mean ? DType::of<float>() : DType::of<std::uint8_t>();
        case Kind::integer:
        case Kind::unsigned_integer:
            if (from.size() == 8 || (mean && from.size() == 4)) return DType::of<double>();
            return mean ? DType::of<float>() : from;
        case Kind::real:
            return from.size() <= 4 ? DType::of<float>() : DType::of<double>();
        case Kind::bfloat16:
            return DType::of<float>();
        default:
            return DType::of<double>();
    }
}

const std::vector<double>& TileSource::missing() const {
    return array_->missing;
}

const Meaning& TileSource::meaning() const {
    return array_->meaning;
}

Tile TileSource::tile(const TileRequest& request, const IoOptions& io) const {
    const auto level = [](int l) { return l >= 0 && l <= most_tile_level; };
    if (!level(request.row_level) || !level(request.column_level)) {
        throw invalid_argument("levels of tiles are 0 to {}, found ({}, {})", most_tile_level, request.row_level,
                               request.column_level);
    }
    if (request.with == Coarsening::mode) throw invalid_argument("tiles are mean, min, max or nearest, found 'mode'");
    TileRequest codes = request;
    codes.with = reduction_of_codes(array_->meaning, request.with);
    Work work(*array_, *array_->cache->store_, request.slice, io);
    return work.tile(codes, dtype(request.with, request.row_level, request.column_level));
}

TilePreview TileSource::preview(const TileSlice& slice, const IoOptions& io) const {
    return Work(*array_, *array_->cache->store_, slice, io).preview();
}

}  // namespace tessera
