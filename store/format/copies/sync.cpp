
#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/place.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_access.h"
#include "array_state.h"
#include "chunk_changes.h"
#include "copy_bytes.h"
#include "equal_values.h"
#include "sha256.h"
#include "spool.h"
#include "stored_chunks.h"
#include "stored_record.h"

namespace tessera {

namespace {

constexpr std::size_t batch_size = 16'384;

/// What a store says of a value without reading it.
struct Listed {
    std::uint64_t size = 0;
    std::string md5;  ///< empty: not known
};

std::string md5_of(const ByteSource& value) {
    Md5Hasher hasher;
    for_each_piece(value, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
    return hex(hasher.finish());
}

bool same_bytes(const ByteSource& a, const ByteSource& b) {
    if (a.size() != b.size()) return false;
    std::uint64_t at = 0;
    bool same = true;
    Buffer other;
    for_each_piece(a, [&](ByteSpan bytes) {
        if (!same) return;
        other.reset(bytes.size());
        b.read(at, other.span());
        same = std::ranges::equal(bytes, other.span());
        at += bytes.size();
    });
    return same;
}

/// One array, from one place to another.
class ArraySync {
public:
    ArraySync(const Array& from, const Array& to, const SyncOptions& options, Synced& result)
        : from_(*ArrayAccess::state(from)),
          to_(*ArrayAccess::state(to)),
          options_(options),
          result_(result),
          name_(to.name()) {}

    void run() {
        require_alike();
        // Shared with nobody: no writer comes between what is compared and what is put.
        const StoreLock lock = options_.dry_run ? StoreLock() : to_.lock_shape(LockMode::exclusive);
        if (!options_.dry_run) {
            to_.store->require_unsealed(to_.prefix);
            to_.refresh();
            require_alike();
        }
        equal_.emplace(from_, to_, !options_.all, !options_.dry_run);
        // Each value is set by itself, and whether all are is known before the documents follow.
        if (to_.store->is_far()) to_.store->sync_later();
        if (from_.store->lists()) {
            compare_listed();
        } else {
            compare_grid();
        }
        flush();
        to_.store->sync();
        put_documents();
        erase_extra();
        to_.store->sync();
        equal_->write();
    }

private:
    /// A value to be looked at; a side is empty if the value is not listed there, or its size and sum are not known.
    struct Pair {
        std::string key;  ///< below the array
        std::optional<Listed> source;
        std::optional<Listed> there;
        bool unlisted = false;  ///< the source does not say what it has
    };

    void require_alike() const {
        const auto from = from_.loaded();
        const auto to = to_.loaded();
        const auto refuse = [&](const std::string& why) {
            return invalid_argument("{}: is stored otherwise than {}: {}", name_, from_.name, why)
                .advising(Action::copy, "copies it anew, with other settings", from_.name + " " + name_);
        };
        if (from_.dialect != to_.dialect) {
            throw refuse(fmt::format("format {} there, {} here", from_.dialect->name, to_.dialect->name));
        }
        ArrayMetadata grown = to->metadata;
        grown.shape = from->metadata.shape;
        const auto goes_on = [](const ChunkEdges& a, const ChunkEdges& b) { return a.continues(b); };
        if (!grown.edges.empty() && std::ranges::equal(grown.edges, from->metadata.edges, goes_on)) {
            grown.edges = from->metadata.edges;
            grown.chunks = from->metadata.chunks;
        }
        if (const auto why = why_recode(from->metadata, grown)) throw refuse(*why);
        if (!(from->metadata.keys == to->metadata.keys)) throw refuse("other names of chunks");
    }

    /// The chunks of both sides by their names in order, however many there are.
    void compare_listed() {
        RecordSorter listed(spool_folder(*to_.store));
        list_side(from_, listed);
        list_side(to_, listed);
        Pair pair;
        const auto end = [&] {
            if (pair.source) {
                add(std::move(pair));
            } else if (pair.there) {
                extra_.add(pair.key, {});
            }
            pair = {};
        };
        listed.sort([&](std::string_view key, ByteSpan record) {
            if (key != pair.key) end();
            pair.key = key;
            (static_cast<bool>(record[0]) ? pair.source : pair.there) = listed_in(record.subspan(1));
        });
        end();
    }

    /// Adds the chunks of one side: whether it is the source, what is listed.
    void list_side(const ArrayState& side, RecordSorter& listed) const {
        const auto each = [&](const std::string& key, const ValueStamp& stamp, std::string_view md5) {
            std::vector<std::byte> record{static_cast<std::byte>(&side == &from_ ? 1 : 0)};
            const ByteSpan number = std::as_bytes(std::span(&stamp.size, 1));
            const ByteSpan sum = std::as_bytes(std::span(md5));
            record.insert(record.end(), number.begin(), number.end());
            record.insert(record.end(), sum.begin(), sum.end());
            listed.add(std::string_view(key).substr(side.prefix.empty() ? 0 : side.prefix.size() + 1), record);
        };
        for_each_stored(
            side, *side.loaded(),
            {.each = nullptr,
             .in_the_way = [](const Index*, const std::string&, const std::string& text) { throw corrupt("{}", text); },
             .each_listed = each});
    }

    [[nodiscard]] static Listed listed_in(ByteSpan record) {
        Listed listed;
        std::memcpy(&listed.size, record.data(), sizeof listed.size);
        const ByteSpan sum = record.subspan(sizeof listed.size);
        listed.md5.assign(reinterpret_cast<const char*>(sum.data()), sum.size());
        return listed;
    }

    /// From a source that does not list: each chunk of the grid is asked for.
    void compare_grid() {
        const auto loaded = from_.loaded();
        for (std::int64_t i = 0; i < loaded->grid.chunk_count(); ++i) {
            add({.key = loaded->metadata.keys.key(loaded->grid.index(i)), .source = {}, .there = {}, .unlisted = true});
        }
    }

    void add(Pair pair) {
        const bool listed = pair.source && pair.there;
        if (listed && pair.source->size == pair.there->size && !pair.source->md5.empty() &&
            pair.source->md5 == pair.there->md5) {
            ++same_;
            return;
        }
        batch_.push_back(std::move(pair));
        if (batch_.size() == batch_size) flush();
    }

    void flush() {
        if (batch_.empty()) {
            result_.same += same_.exchange(0);
            return;
        }
        // What is certain to be carried is announced, so that many requests are under way.
        std::size_t next = 0;
        const auto ahead = from_.store->read_ahead(0, [&](ReadWish& wish) {
            while (next < batch_.size() && !needs_source(batch_[next])) ++next;
            if (next == batch_.size()) return false;
            wish = {.key = from_.key(batch_[next++].key), .whole = false};
            return true;
        });
        if (options_.io.progress != nullptr) {
            options_.io.progress->start(static_cast<std::int64_t>(batch_.size()) * from_.loaded()->chunk_bytes(),
                                        name_);
        }
        parallel_in_memory(static_cast<std::int64_t>(batch_.size()), options_.io, [&](std::int64_t i) {
            carry(batch_[static_cast<std::size_t>(i)]);
            if (options_.io.progress != nullptr) options_.io.progress->advance(from_.loaded()->chunk_bytes());
        });
        batch_.clear();
        result_.same += same_.exchange(0);
        result_.unread += unread_.exchange(0);
        result_.carried += carried_.exchange(0);
        result_.bytes += bytes_.exchange(0);
    }

    /// Whether the source's bytes are needed in any case; also where both sums are known, because they differ then.
    [[nodiscard]] static bool needs_source(const Pair& pair) {
        return pair.unlisted || !pair.there || pair.source->size != pair.there->size || pair.source->md5.empty() ||
               !pair.there->md5.empty();
    }

    /// Whether a value is the same by what the source lists, or by the stamps of both.
    [[nodiscard]] bool is_known(const Pair& pair, const std::optional<EqualValues::Pair>& now) {
        if (now && equal_->knows(*now)) {
            ++unread_;
            return true;
        }
        if (needs_source(pair)) return false;
        // The source lists a sum: what is here is read, not what is there.
        const auto here = to_.store->open(to_.key(pair.key));
        return here != nullptr && md5_of(*here) == pair.source->md5;
    }

    void carry(const Pair& pair) {
        const std::string key = from_.key(pair.key);
        const std::string new_key = to_.key(pair.key);
        const bool as_large = pair.source && pair.there && pair.source->size == pair.there->size;
        const auto now = as_large ? equal_->look(pair.key) : std::nullopt;
        if (is_known(pair, now)) {
            ++same_;
            return;
        }
        const auto value = from_.store->open(key);
        if (value == nullptr) {
            if (pair.unlisted && to_.store->contains(new_key)) {
                const std::lock_guard guard(mutex_);
                extra_.add(pair.key, {});
            }
            return;
        }
        const bool may_be_same = pair.unlisted || (pair.there && pair.there->size == value->size());
        if (may_be_same) {
            if (pair.there && !pair.there->md5.empty() && md5_of(*value) == pair.there->md5) {
                ++same_;
                return;
            }
            const auto here = pair.there && !pair.there->md5.empty() ? nullptr : to_.store->open(new_key);
            if (here != nullptr && same_bytes(*value, *here)) {
                equal_->note(pair.key, now);
                ++same_;
                return;
            }
        }
        // A shard that comes may lack inner chunks that the old one has.
        if (!options_.dry_run && from_.loaded()->pipeline.shard() != nullptr) notes_.add({&new_key, 1});
        if (!options_.dry_run) copy_bytes(*value, *to_.store, new_key);
        ++carried_;
        bytes_ += value->size();
    }

    void put_documents() {
        for (const std::string_view name : from_.dialect->documents) {
            const std::string key = to_.key(name);
            Buffer wanted;
            Buffer there;
            const bool is_wanted = from_.store->get(from_.key(name), wanted);
            const bool is_there = to_.store->get(key, there);
            if (options_.dry_run || (is_wanted == is_there && std::ranges::equal(wanted.span(), there.span())))
                continue;
            if (is_wanted) {
                to_.store->put(key, wanted);
            } else {
                to_.store->erase(key);
            }
        }
    }

    void erase_extra() {
        std::vector<std::string> keys;
        const auto erase = [&] {
            result_.erased += std::ssize(keys);
            if (options_.dry_run || keys.empty()) return keys.clear();
            notes_.add(keys);
            erase_values(*to_.store, keys, options_.io);
            keys.clear();
        };
        extra_.sort([&](std::string_view key, ByteSpan) {
            keys.push_back(to_.key(key));
            if (keys.size() == batch_size) erase();
        });
        erase();
    }

    ArrayState& from_;
    ArrayState& to_;
    const SyncOptions& options_;
    Synced& result_;
    std::string name_;
    ErasedNotes notes_{to_};
    std::vector<Pair> batch_;
    std::mutex mutex_;
    RecordSorter extra_{spool_folder(*to_.store)};  ///< chunks that the source does not have
    std::optional<EqualValues> equal_;
    std::atomic<std::int64_t> same_ = 0;
    std::atomic<std::int64_t> unread_ = 0;
    std::atomic<std::int64_t> carried_ = 0;
    std::atomic<std::uint64_t> bytes_ = 0;
};

/// A node of the source, whatever is at the destination.
void sync_node(const Located& from, const Node& node, const std::string& source, const std::string& destination,
               const SyncOptions& options, Synced& result) {
    const std::string there = node.path.empty() ? destination : join_key(destination, node.path);
    const Located to = locate(there, options.store);
    const std::string prefix = from.place->key(node.path);
    if (node.kind == NodeKind::group) {
        if (to.kind == PathKind::array) throw invalid_argument("{}: is an array, and a group at {}", there, from.path);
        if (node.dialect == nullptr || options.dry_run) return;
        const Value wanted = Group::open({from.place->store, prefix}).attributes().all();
        if (to.kind != PathKind::group) {
            Group::create(there, *node.dialect, wanted, options.store);
            return;
        }
        const Group group = Group::open(*to.place);
        if (!(group.attributes().all() == wanted)) group.attributes().replace(wanted);
        return;
    }
    ++result.arrays;
    if (to.kind == PathKind::array) {
        const DestinationLock building = options.dry_run ? DestinationLock() : DestinationLock(there, options.store);
        const Array array = Array::open({from.place->store, prefix});
        ArraySync(array, to.array(), options, result).run();
        return;
    }
    if (to.kind == PathKind::group) throw invalid_argument("{}: is a group, and an array at {}", there, from.path);
    ++result.made;
    const std::string one = node.path.empty() ? source : join_key(source, node.path);
    const CopiedHierarchy copied = copy_hierarchy(one, there,
                                                  {.arrays = {.format = std::string(node.dialect->name)},
                                                   .resume = to.kind == PathKind::unfinished,
                                                   .dry_run = options.dry_run,
                                                   .io = options.io,
                                                   .store = options.store});
    for (const CopiedArray& made : copied.made) result.carried += made.chunks;
    result.bytes += copied.bytes;
}

}  // namespace

Synced sync_hierarchy(const std::string& source, const std::string& destination, const SyncOptions& options) {
    const Located from = locate(source);
    if (from.kind == PathKind::nothing) throw not_found("{}: there is no array or group", source);
    const bool node = from.kind == PathKind::array || from.kind == PathKind::group || from.kind == PathKind::folder;
    if (!node || !from.place || from.file.member) {
        throw invalid_argument("{}: only arrays and groups are kept alike, chunk by chunk", source)
            .advising(Action::copy, "copies it", source + " " + destination);
    }
    require_apart({source}, destination);
    Synced result;
    if (from.kind == PathKind::array) {
        sync_node(from, {.path = "", .kind = NodeKind::array, .dialect = from.dialect}, source, destination, options,
                  result);
        return result;
    }
    sync_node(from, {.path = "", .kind = NodeKind::group, .dialect = from.dialect}, source, destination, options,
              result);
    for (const Node& below : nodes_below(*from.place)) {
        sync_node(from, below, source, destination, options, result);
    }
    if (result.arrays == 0 && from.kind == PathKind::folder) throw not_found("{}: there is no array or group", source);
    std::optional<Group> there = options.dry_run ? std::nullopt : group_at(locate(destination, options.store));
    if (!there || there->dialect() == nullptr) return result;
    const ConsolidatedState state = there->consolidated_state();
    if (state.present && !state.fresh()) there->consolidate();
    return result;
}

}  // namespace tessera
