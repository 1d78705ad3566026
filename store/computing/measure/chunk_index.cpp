// What makes an entry count
// -------------------------
// An entry holds the stamp of the value that it was made from: size, inode, times of modification and of change. It
// counts only while the value has this stamp, which is asked for in each run. The time of change tells a value that was
// rewritten in place and got its old time back.
//
// A clock has a grain: of two changes within one tick the second does not show. So no entry is made for a value that
// changed less than a while before the run began. The file system's own clock says when that was, by a file made then,
// because the clock of a file server may differ. Times in whole seconds, and file systems that show changes late, are
// not relied on: there is no index there.
//
// The stamp is taken before and after the value is read. Entries of a file count only if the file has the hash of what
// gives the bytes their sense: dtype, chunks, codecs, fill, attributes. All of this decides about using a cache: a file
// that is damaged, or of another version, is passed over.
//
// Files are replaced by rename, each by itself. So a killed run leaves old files, or new ones.
#include <tessera/chunk_index.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/conventions.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/numbers.h>
#include <tessera/own_names.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "array_access.h"
#include "column_summary.h"
#include "directory_store.h"
#include "index_bytes.h"
#include "index_file.h"
#include "seal_mark.h"
#include "settled_values.h"
#include "sha256.h"
#include "stored_chunks.h"
#include "versions.h"

namespace tessera {

namespace {

constexpr std::string_view index_folder = ".tessera/index";
constexpr std::uint64_t longest_file = std::uint64_t{64} << 20;
/// Units whose entries lie in one file, unless one shard has more.
constexpr std::int64_t units_together = 4096;
/// Of arrays with more units histograms are not kept: they take more than all else.
constexpr std::int64_t most_with_bins = 200'000;

void append_text(Hasher& hasher, std::string_view text) {
    hasher.add(text.data(), text.size());
    hasher.add("\0", 1);
}

void append_bytes(Hasher& hasher, const std::optional<ElementBytes>& bytes) {
    append_text(hasher, bytes ? fmt::format("{}", bytes->size()) : "none");
    if (bytes) hasher.add(bytes->data(), bytes->size());
}

/// A hash of everything, beside the shape, that decides what the bytes of a chunk amount to.
std::string sense_of(const ArrayMetadata& metadata, const ArraySource& elements,
                     const std::optional<ElementBytes>& fill, const Value& attributes) {
    Hasher hasher;
    append_text(hasher, fmt::format("tessera index {}", index_version));
    append_text(hasher, metadata.dtype.to_string() + metadata.dtype.str());
    append_text(hasher, metadata.chunks.to_string());
    append_text(hasher, lengths_text(metadata.edges));
    for (const CodecConfig& codec : metadata.codecs) append_text(hasher, codec_to_json(codec).dump());
    append_bytes(hasher, metadata.fill.bytes);
    append_bytes(hasher, fill);
    append_text(hasher, metadata.unknown.dump());
    append_text(hasher, metadata.keys.key(Index::filled(metadata.shape.rank(), 0)));
    append_text(hasher, elements.info().dtype.to_string() + (elements.info().marks_missing ? " marked" : ""));
    append_text(hasher, attributes.dump());
    return hex(hasher.finish());
}

/// Whether summaries of such elements can be saved.
bool can_index(const DType& dtype) {
    return dtype.kind() != Kind::complex && (is_number(dtype) || is_time(dtype));
}

/// The folder of an array in a directory, as a path.
std::string folder_of(const ArrayState& state) {
    return state.store->name_of(state.prefix);
}

/// Why no index may be written into the array's folder; empty if it may.
std::string why_not_there(const std::string& folder) {
    struct stat status {};
    const std::string own = folder + "/" + std::string(own_folder);
    for (const std::string& path : {folder, own}) {
        if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) continue;
        if (status.st_uid != ::geteuid()) return "it belongs to another user";
        if (::access(path.c_str(), W_OK | X_OK) != 0) return "it cannot be written to";
    }
    const Descriptor open(::open(folder.c_str(), os::lookup | O_DIRECTORY | O_CLOEXEC));
    try {
        require_unsealed(open.get(), "", {});
    } catch (const Error& e) {
        if (e.code() != ErrorCode::sealed) throw;
        return "it is sealed";
    }
    return "";
}

}  // namespace

/// One walk over the stored chunks of a part. Each run of chunks, whose entries share a file, is gone through by all
/// threads, and then handed on in order.
class IndexWalk {
public:
    IndexWalk(const ChunkIndex& index, const ChunkIndex::Part& part, const IoOptions& io)
        : index_(index),
          part_(part),
          io_(io),
          state_(*ArrayAccess::state(index.array_)),
          grid_(index.loaded_->grid),
          units_(unit_grid(*index.loaded_)),
          folder_(folder_of(state_)),
          trusted_(has_good_times(folder_)) {
        const Region first = units_.overlapping(grid_.chunk_region(Index::filled(grid_.shape().rank(), 0)));
        together_ = std::max<std::int64_t>(1, units_together / std::max<std::int64_t>(1, first.count()));
    }

    /// False if what is stored cannot be told.
    [[nodiscard]] bool list() {
        const Region wanted = grid_.overlapping(part_.region);
        const bool known = index_.array_.visit_stored([&](const Region& stored) {
            const Index chunk = grid_.overlapping(stored).start;
            bool inside = true;
            for (int d = 0; d < chunk.rank(); ++d) {
                inside = inside && chunk[d] >= wanted.start[d] && chunk[d] < wanted.start[d] + wanted.extent[d];
            }
            if (inside) numbers_.push_back(grid_.linear(chunk));
        });
        std::ranges::sort(numbers_);
        numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());  // Clang 14 has no ranges' own
        return known;
    }

    /// Whether of the first chunks most have an entry that says what is asked.
    [[nodiscard]] bool is_mostly_known() const {
        if (numbers_.empty()) return true;
        const std::int64_t run = numbers_.front() / together_;
        const auto end = std::lower_bound(numbers_.begin(), numbers_.end(), (run + 1) * together_);
        const std::vector<IndexEntry> entries = load(run);
        std::int64_t known = 0;
        for (const IndexEntry& entry : entries) {
            if (!std::binary_search(numbers_.begin(), end, entry.chunk)) continue;
            const auto now = stamp(entry.chunk);
            if (now && is_same_value(*now, entry.stamp) && has_parts(entry, wanted())) ++known;
        }
        return 2 * known >= end - numbers_.begin();
    }

    [[nodiscard]] std::int64_t go(const ChunkIndex::TakeUnit& take) {
        bool keeps = part_.keep && has_own_folder() && in_passing([&] { begin_writing(); });
        std::int64_t elements = 0;
        for_each_run([&](std::int64_t run, std::span<const std::int64_t> chunks) {
            Looked looked = look(run, chunks);
            for (const Found& found : looked.found) {
                for (const auto& [region, summary] : found.units) {
                    take(region, summary);
                    elements += region.count();
                }
            }
            Indexed made;
            keeps = keeps && in_passing([&] { write(run, chunks, std::move(looked), made); });
        });
        return elements;
    }

    [[nodiscard]] Indexed complete() {
        Indexed made{.chunks = std::ssize(numbers_)};
        begin_writing();
        if (io_.progress != nullptr) {
            const std::int64_t chunk = byte_count(grid_.chunks(), index_.elements().info().dtype.size());
            io_.progress->start(chunk * std::ssize(numbers_), "index");
        }
        std::vector<std::string> kept;
        for_each_run([&](std::int64_t run, std::span<const std::int64_t> chunks) {
            kept.push_back(fmt::format("{}", run));
            write(run, chunks, look(run, chunks), made);
        });
        for (const std::string& name : own_->list(index_folder).keys) {
            if (std::ranges::find(kept, name) == kept.end()) own_->erase(join_key(index_folder, name));
        }
        return made;
    }

private:
    /// What is known of a chunk's units in the part, in C order; and an entry for it, if one may be written.
    struct Found {
        std::vector<std::pair<Region, std::string>> units;
        std::optional<IndexEntry> entry;
        bool kept = false;
    };

    /// What is known of a run's chunks in the part, and all entries that it had.
    struct Looked {
        std::vector<IndexEntry> entries;
        std::vector<Found> found;
    };

    /// An index that nobody asked for is never a reason to fail. False: it cannot be written.
    template <class Write>
    static bool in_passing(const Write& write) {
        try {
            write();
            return true;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            return false;
        }
    }

    [[nodiscard]] bool has_own_folder() const {
        return state_.store->local_files().folder_id(state_.key(own_folder)).has_value();
    }

    void begin_writing() {
        const std::string why = trusted_ ? why_not_there(folder_)
                                         : "the file system does not tell at once, to the nanosecond, what changed";
        if (!why.empty()) {
            throw unsupported("{}: no index of its chunks is made: {}", state_.name, why);
        }
        own_ = directory_store(folder_, {.durability = Durability::none, .process_locks = false});
        settled_ = settled_before(*own_, fmt::format("{}/clock", index_folder));
    }

    [[nodiscard]] SavedParts wanted() const { return {.bins = part_.bins, .sums = part_.sums}; }

    /// Whether an entry of numbers has them. One that cannot be read has none.
    [[nodiscard]] static bool has_parts(const IndexEntry& entry, const SavedParts& wanted) {
        const SavedParts has = parts_of(entry);
        return has.none || ((has.bins || !wanted.bins) && (has.sums || !wanted.sums));
    }
    /// As its first unit with numbers says, because the others were made with it.
    [[nodiscard]] static SavedParts parts_of(const IndexEntry& entry) {
        try {
            SavedParts parts{.bins = false, .sums = false, .none = true};
            IndexReader units(entry.units);
            while (parts.none && !units.ended()) parts = saved_parts(units.text());
            return parts;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt) throw;
            return {};
        }
    }

    /// Another thread read the metadata anew, and what was read meanwhile may have been decoded by them.
    [[nodiscard]] Error replaced() const {
        return unsupported("{}: no index of its chunks is made: it is just being changed", state_.name);
    }

    template <class Each>
    void for_each_run(const Each& each) {
        for (auto at = numbers_.begin(); at != numbers_.end();) {
            const std::int64_t run = *at / together_;
            const auto end = std::lower_bound(at, numbers_.end(), (run + 1) * together_);
            each(run, std::span(at, end));
            at = end;
        }
    }

    [[nodiscard]] static std::string key_of(std::int64_t run) { return fmt::format("{}/{}", index_folder, run); }

    /// The chunk's stamp, asked for now.
    [[nodiscard]] std::optional<ValueStamp> stamp(std::int64_t chunk) const {
        return state_.store->stamp(state_.chunk_key(*index_.loaded_, grid_.index(chunk)));
    }

    [[nodiscard]] IndexRun about(std::int64_t run) const {
        return {.sense = index_.sense_, .grid = grid_, .first = run * together_, .count = together_};
    }

    [[nodiscard]] std::vector<IndexEntry> load(std::int64_t run) const {
        if (!trusted_) return {};
        try {
            Buffer bytes;
            if (!state_.store->get(join_key(state_.prefix, key_of(run)), bytes, longest_file)) return {};
            return entries_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, about(run));
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            return {};
        }
    }

    /// All chunks of a run that are in the part.
    [[nodiscard]] Looked look(std::int64_t run, std::span<const std::int64_t> chunks) const {
        Looked looked{.entries = part_.entries != ChunkIndex::Entries::ignore ? load(run) : std::vector<IndexEntry>(),
                      .found = std::vector<Found>(chunks.size())};
        const std::vector<IndexEntry>& entries = looked.entries;
        std::vector<Found>& found = looked.found;
        parallel_in_memory(std::ssize(chunks), io_, [&](std::int64_t n) {
            const auto at = static_cast<std::size_t>(n);
            found[at] = look_at(chunks[at], entries);
            if (io_.progress != nullptr) {
                std::int64_t bytes = 0;
                for (const auto& unit : found[at].units) bytes += unit.first.count();
                io_.progress->advance(bytes * index_.elements().info().dtype.size());
            }
        });
        return looked;
    }

    [[nodiscard]] Found look_at(std::int64_t chunk, std::span<const IndexEntry> entries) const {
        const auto entry = std::ranges::lower_bound(entries, chunk, {}, &IndexEntry::chunk);
        const bool has_entry = entry != entries.end() && entry->chunk == chunk;
        std::optional<ValueStamp> now;
        if (has_entry || settled_) now = stamp(chunk);
        if (has_entry && now && is_same_value(*now, entry->stamp)) {
            if (auto known = by_entry(chunk, *entry)) return std::move(*known);
        }
        if (part_.entries == ChunkIndex::Entries::only) return {};
        const Region region = grid_.chunk_region(grid_.index(chunk));
        const Region part = intersection(region, part_.region);
        SavedParts parts = wanted();
        if (has_entry && settled_) {  // so that what one command keeps, another does not take away
            const SavedParts had = parts_of(*entry);
            parts = {.bins = parts.bins || had.bins, .sums = parts.sums || had.sums};
        }
        Found found{.units = read(part, parts), .entry = {}, .kept = false};
        const bool settled = settled_ && part == region && now && !now->by_content && now->changed < *settled_;
        const auto after = settled ? stamp(chunk) : std::nullopt;
        if (!after || !is_same_value(*now, *after)) return found;
        found.entry = IndexEntry{.chunk = chunk, .stamp = *now, .units = {}};
        IndexWriter to(found.entry->units);
        for (const auto& unit : found.units) to.text(unit.second);
        return found;
    }

    /// nullopt if the entry does not say what is asked.
    [[nodiscard]] std::optional<Found> by_entry(std::int64_t chunk, const IndexEntry& entry) const {
        Found found{.units = {}, .entry = settled_ ? std::optional(entry) : std::nullopt, .kept = true};
        const Region box = units_.overlapping(grid_.chunk_region(grid_.index(chunk)));
        try {
            IndexReader from(entry.units);
            for (std::int64_t n = 0; n < box.count(); ++n) {
                const Region unit = units_.chunk_region(index_in(box, n));
                const std::string_view summary = from.text();
                const Region part = intersection(unit, part_.region);
                if (part.empty()) continue;
                if (!(part == unit) && part_.entries != ChunkIndex::Entries::only) {
                    for (auto& one : read(part, wanted())) found.units.push_back(std::move(one));
                    continue;
                }
                IndexReader check(summary);
                make_summary(wanted())->load(check, unit.count());
                if (!check.ended()) return std::nullopt;
                found.units.emplace_back(unit, summary);
            }
            return from.ended() ? std::optional(std::move(found)) : std::nullopt;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt) throw;
            return std::nullopt;
        }
    }

    [[nodiscard]] std::unique_ptr<ColumnSummary> make_summary(const SavedParts& parts) const {
        const ArrayInfo info = index_.elements().info();
        return ColumnSummary::make(native_dtype(info.dtype), parts.bins ? index_bins : 0, info.marks_missing,
                                   parts.sums);
    }

    /// Reads a region of one chunk, and sums up what is in each unit.
    [[nodiscard]] std::vector<std::pair<Region, std::string>> read(const Region& region,
                                                                   const SavedParts& parts) const {
        std::vector<std::pair<Region, std::string>> all;
        const DType dtype = native_dtype(index_.elements().info().dtype);
        const Region touched = units_.overlapping(region);
        const Blocks slabs(touched.extent, slab(touched.extent, dtype.size()));
        for (const Block& block : slabs) {
            Region some = block.region;
            for (int d = 0; d < some.rank(); ++d) some.start[d] += touched.start[d];
            const Region first = units_.chunk_region(index_in(some, 0));
            const Region last = units_.chunk_region(index_in(some, some.count() - 1));
            Region whole = first;
            for (int d = 0; d < some.rank(); ++d) {
                whole.extent[d] = last.start[d] + last.extent[d] - first.start[d];
            }
            const Region box = intersection(whole, region);
            require_room(2 * byte_count(box.extent, dtype.size()));
            NDArray memory = take_memory(dtype, box.extent);
            index_.elements().read_into(box, memory.view(), {.threads = 1, .stop = io_.stop});
            for (std::int64_t n = 0; n < some.count(); ++n) {
                const Region unit = intersection(units_.chunk_region(index_in(some, n)), region);
                Region inside = unit;
                for (int d = 0; d < unit.rank(); ++d) inside.start[d] -= box.start[d];
                all.emplace_back(unit, summed(std::as_const(memory).view().part(inside), some.count() > 1, parts));
            }
            give_back(std::move(memory));
        }
        return in_order(std::move(all), touched);
    }

    /// For elements and what decoding them takes, in each thread. Reading block by block says what would be enough.
    void require_room(std::int64_t bytes) const {
        const auto most = static_cast<std::int64_t>(io_.max_memory);
        if (most > 0 && bytes > most / std::max<std::int64_t>(1, io_.threads)) {
            throw Error(ErrorCode::budget, "the index of chunks reads whole chunks, which are too large");
        }
    }

    /// Memory that was used before, because fresh pages cost more than what is done with them.
    [[nodiscard]] NDArray take_memory(const DType& dtype, const Shape& shape) const {
        {
            const std::lock_guard lock(mutex_);
            const auto fits = std::ranges::find_if(idle_, [&](const NDArray& a) { return a.shape() == shape; });
            if (fits != idle_.end()) {
                NDArray memory = std::move(*fits);
                idle_.erase(fits);
                return memory;
            }
            idle_.clear();
        }
        return {dtype, shape};
    }
    void give_back(NDArray memory) const {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(memory));
    }

    /// So many units along each dimension are read at once, some MiB.
    [[nodiscard]] Shape slab(const Shape& units, std::int64_t item) const {
        constexpr std::int64_t enough = std::int64_t{4} << 20;
        Shape slab = Shape::filled(units.rank(), 1);
        std::int64_t bytes = byte_count(units_.chunks(), item);
        for (int d = units.rank() - 1; d >= 0; --d) {
            slab[d] = std::clamp<std::int64_t>(enough / std::max<std::int64_t>(bytes, 1), 1, units[d]);
            bytes *= slab[d];
            if (slab[d] < units[d]) break;
        }
        return slab;
    }

    /// In C order of the units.
    [[nodiscard]] std::vector<std::pair<Region, std::string>> in_order(
        std::vector<std::pair<Region, std::string>> units, const Region& touched) const {
        if (touched.count() == 1) return units;
        std::ranges::sort(units, {},
                          [&](const auto& unit) { return units_.linear(units_.overlapping(unit.first).start); });
        return units;
    }

    /// `scattered`: the elements may not lie side by side. They are then brought together, because the last places of a
    /// sum depend on what is added first: a unit has one sum, in whatever company it was read.
    [[nodiscard]] std::string summed(const ArrayView& elements, bool scattered, const SavedParts& parts) const {
        NDArray together(elements.dtype, scattered ? elements.shape : Shape{0});
        if (scattered) copy_elements(elements, together.view());
        const auto summary = make_summary(parts);
        const auto& fill = index_.fill();
        tessera::for_each_run(scattered ? std::as_const(together).view() : elements,
                              [&](const std::byte* run, std::int64_t step, std::int64_t n) {
                                  summary->add(run, step, n, fill ? fill->data() : nullptr);
                              });
        std::string saved;
        IndexWriter to(saved);
        summary->save(to);
        return saved;
    }

    void write(std::int64_t run, std::span<const std::int64_t> chunks, Looked looked, Indexed& made) {
        bool changed = false;
        std::vector<IndexEntry> entries;
        if (!(part_.region == Region::whole(grid_.shape()))) {  // what lies beside the part stays as it was
            for (IndexEntry& entry : looked.entries) {
                if (!std::ranges::binary_search(chunks, entry.chunk)) entries.push_back(std::move(entry));
            }
        }
        for (Found& found : looked.found) {
            (found.kept ? made.kept : made.counted) += 1;
            changed = changed || !found.kept;
            if (found.entry) {
                entries.push_back(std::move(*found.entry));
            } else {
                ++made.unsettled;
            }
        }
        std::ranges::sort(entries, {}, &IndexEntry::chunk);
        const std::string file = index_file(about(run), entries);
        if (state_.loaded() != index_.loaded_) throw replaced();
        made.bytes += file.size();
        if (changed || !is_there(run, file.size())) own_->put(key_of(run), std::as_bytes(std::span(file)));
    }

    /// Whether the file of a run has this size: one that keeps entries of chunks that are gone by now has another.
    [[nodiscard]] bool is_there(std::int64_t run, std::uint64_t size) const {
        const auto there = own_->stamp(key_of(run));
        return there && there->size == size;
    }

    const ChunkIndex& index_;
    const ChunkIndex::Part& part_;
    const IoOptions& io_;
    const ArrayState& state_;
    const ChunkGrid& grid_;
    ChunkGrid units_;
    std::string folder_;
    bool trusted_;
    std::int64_t together_ = 1;
    CountedVector<std::int64_t> numbers_;  ///< of the stored chunks, ascending
    std::shared_ptr<KeyValueStore> own_;   ///< to write to
    std::optional<std::int64_t> settled_;  ///< values that changed before this moment may have entries
    mutable std::mutex mutex_;
    mutable std::vector<NDArray> idle_;
};

ChunkIndex::ChunkIndex(const Array& array, std::unique_ptr<ArraySource> elements, const Value& attributes)
    : array_(array),
      loaded_(ArrayAccess::state(array)->loaded()),
      elements_(std::move(elements)),
      fill_(elements_->fill_bytes()) {
    const DType dtype = elements_->info().dtype;
    if (fill_ && !(dtype == native_dtype(dtype))) swap_elements(dtype, fill_->data(), 1);
    sense_ = sense_of(loaded_->metadata, *elements_, fill_, attributes);
}

std::shared_ptr<const ChunkIndex> ChunkIndex::of(const ArraySource& source, bool raw, std::string* why) {
    std::string reason;
    const Array* const array = as_array(source);
    if (array == nullptr) {
        reason = "it is no stored array";
    } else if (!is_directory_store(*ArrayAccess::state(*array)->store)) {
        reason = "it does not lie in a directory, or is just being edited";
    } else {
        const Value attributes = meaning_of(*array).attributes;
        auto elements = decoded(std::make_unique<Array>(*array));
        const bool same = elements->converted_from() == nullptr;
        if (!can_index(elements->info().dtype)) {
            reason = "its elements are neither real numbers nor times";
        } else if (!(meaning_of(*array).attributes == attributes)) {
            reason = "its attributes are just being changed";  // so that it is not known by which elements are decoded
        } else if (!raw || same) {
            return std::shared_ptr<const ChunkIndex>(new ChunkIndex(*array, std::move(elements), attributes));
        }
    }
    if (why != nullptr) *why = std::move(reason);
    return nullptr;
}

std::shared_ptr<const ChunkIndex> ChunkIndex::there(const ArraySource& source, bool raw) {
    const Array* const array = as_array(source);
    if (array == nullptr) return nullptr;
    const ArrayState& state = *ArrayAccess::state(*array);
    if (!state.store->local_files().folder_id(state.key(index_folder))) return nullptr;
    return of(source, raw);
}

std::optional<std::int64_t> ChunkIndex::for_each_unit(const Part& part, const TakeUnit& take,
                                                      const IoOptions& io) const {
    IndexWalk walk(*this, part, io);
    if (!walk.list() || (part.mostly_known && !walk.is_mostly_known())) return std::nullopt;
    return walk.go(take);
}

ChunkGrid ChunkIndex::units() const {
    return unit_grid(*loaded_);
}

std::optional<std::pair<ElementBytes, ElementBytes>> ChunkIndex::extremes(std::string_view summary) const {
    const ArrayInfo info = elements_->info();
    const auto one = ColumnSummary::make(native_dtype(info.dtype), 0, info.marks_missing);
    IndexReader from(summary);
    one->load(from, element_count(info.shape));
    const Statistics found = one->result();
    if (found.min_bytes.empty()) return std::nullopt;
    return std::pair(found.min_bytes, found.max_bytes);
}

Indexed ChunkIndex::complete(const IoOptions& io) const {
    const ArrayState& state = *ArrayAccess::state(array_);
    const Part all{.region = Region::whole(loaded_->grid.shape()),
                   .bins = unit_grid(*loaded_).chunk_count() <= most_with_bins,
                   .sums = true};
    IndexWalk walk(*this, all, io);
    if (!walk.list())
        throw unsupported("{}: no index of its chunks is made: `verify` says what is in their way", state.name);
    return walk.complete();
}

Indexed index_chunks(const ArraySource& source, const IoOptions& io) {
    std::string why;
    const auto index = ChunkIndex::of(source, false, &why);
    if (index == nullptr) throw unsupported("{}: no index of its chunks is made: {}", source.name(), why);
    return index->complete(io);
}

std::optional<ElementBytes> ChunkIndex::absent_element() const {
    const auto stored = array_.absent_element();
    if (!stored) return std::nullopt;
    NDArray one(loaded_->metadata.dtype, Shape{1});
    std::copy(stored->begin(), stored->end(), one.bytes().begin());
    const auto as_elements =
        decoded(shared_source(view_source(std::as_const(one).view(), ""), meaning_of(array_).attributes));
    const DType dtype = native_dtype(elements_->info().dtype);
    if (!(native_dtype(as_elements->info().dtype) == dtype)) return std::nullopt;
    NDArray made(dtype, Shape{1});
    as_elements->read_into(Region::whole(Shape{1}), made.view(), {});
    return ElementBytes(made.bytes().begin(), made.bytes().end());
}

}  // namespace tessera
