#include "array_state.h"

#include <tessera/action.h>
#include <tessera/chunk_layout.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/shard.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "batch.h"
#include "dialects.h"
#include "directory_store.h"

namespace tessera {

namespace {

ArrayMetadata with_chunks(const ArrayMetadata& metadata, const Shape& chunks) {
    ArrayMetadata other = metadata;
    other.chunks = chunks;
    return other;
}

}  // namespace

/// Few are kept, because a document may say very many.
struct LoadedArray::OtherLengths {
    static constexpr std::size_t most_kept = 64;
    std::mutex mutex;
    std::map<std::vector<std::int64_t>, std::shared_ptr<const LoadedArray>> made;
};

LoadedArray::LoadedArray(ArrayMetadata m)
    : metadata(std::move(m)),
      grid(chunk_grid(metadata)),
      pipeline(ChunkSpec{metadata.dtype, metadata.chunks, metadata.fill.bytes}, metadata.codecs) {
    prepare();
    if (grid.regular()) return;
    if (pipeline.shard() != nullptr) {
        try {
            require_whole_chunks(metadata.edges, pipeline.shard()->grid().chunks());
        } catch (const Error& e) {
            throw corrupt(e.what());
        }
    }
    others_ = std::make_shared<OtherLengths>();
}

LoadedArray::LoadedArray(const LoadedArray& all, const Index& chunk)
    : metadata(with_chunks(all.metadata, all.grid.chunk_shape(chunk))),
      grid(all.grid.about(chunk)),
      pipeline(ChunkSpec{metadata.dtype, metadata.chunks, metadata.fill.bytes}, metadata.codecs) {
    prepare();
}

std::shared_ptr<const LoadedArray> LoadedArray::of_length(const Index& chunk) const {
    const Shape shape = grid.chunk_shape(chunk);
    if (shape == grid.chunks()) return {std::shared_ptr<const void>(), this};
    if (others_ == nullptr) return std::make_shared<const LoadedArray>(*this, chunk);
    const std::vector<std::int64_t> key(shape.begin(), shape.end());
    {
        const std::lock_guard lock(others_->mutex);
        if (const auto found = others_->made.find(key); found != others_->made.end()) return found->second;
    }
    auto made = std::make_shared<const LoadedArray>(*this, chunk);
    const std::lock_guard lock(others_->mutex);
    if (others_->made.size() >= OtherLengths::most_kept) others_->made.clear();
    return others_->made.emplace(key, std::move(made)).first->second;
}

void LoadedArray::prepare() {
    try {
        fill_ = fill_element(metadata);
    } catch (const Error& e) {
        fill_error_ = e;
    }
    slot_ = {reinterpret_cast<const char*>(fill_.data()), fill_.size()};
    may_hold_no_text = metadata.dtype.kind() == Kind::variable_text &&
                       std::ranges::any_of(chunk_layout(metadata).codecs, [](const CodecConfig& codec) {
                           const CodecRow* row = find_codec(codec.name);
                           return row != nullptr && row->may_hold_no_text;
                       });
}

const std::byte* LoadedArray::fill() const {
    if (fill_error_) throw *fill_error_;
    return metadata.dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot_) : fill_.data();
}

std::unique_ptr<WorkerScratch> ScratchPool::take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<WorkerScratch>();
    auto scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
}

void ScratchPool::give_back(std::unique_ptr<WorkerScratch> scratch) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
}

void ScratchPool::drop() {
    std::vector<std::unique_ptr<WorkerScratch>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(idle_);
}

NodeState::NodeState(std::shared_ptr<KeyValueStore> s, std::string_view p, const Dialect* d)
    : Place(std::move(s), p), dialect(d), name(Place::name()) {}

namespace {

/// Called when something is missing: throws if the whole array or group was removed.
void require_present(const NodeState& node) {
    for (const std::string_view document : {node.dialect->metadata_key, node.dialect->group_key}) {
        if (!document.empty() && node.store->contains(node.key(document))) return;
    }
    throw not_found("{} was removed or replaced; open it again", node.name);
}

}  // namespace

std::optional<Value> NodeState::attributes() const {
    if (!published) return unpublished_attributes;
    if (dialect == nullptr) return std::nullopt;
    auto values = dialect->load_attributes({*store, prefix});
    if (!values) require_present(*this);
    return values;
}

void NodeState::save_attributes(const Value& attributes) {
    if (dialect == nullptr) {
        throw unsupported("{}: a plain directory that holds arrays cannot have attributes", name)
            .advising(Action::make_group, "makes it a group that can", name);
    }
    if (published) {
        dialect->save_attributes({*store, prefix}, attributes);
        sync();
    } else {
        unpublished_attributes = attributes;
    }
}

StoreLock NodeState::lock_shape(LockMode mode) const {
    if (!published) return {};
    for (;;) {
        StoreLock lock = store->lock(prefix, 0, mode);
        // A program that crashed since this array was opened may have left a batch that must be applied before this
        // write.
        if (!must_finish_batch({*store, prefix})) {
            store->require_unsealed(prefix);
            return lock;
        }
        lock.unlock();
        finish_unlocked_batch({*store, prefix});
    }
}

void NodeState::change_documents(const std::function<void()>& change) const {
    struct Begun {
        StoreLock lock;
        std::unique_ptr<ValueChange> versions;
        [[nodiscard]] bool conflicted() const { return versions != nullptr && versions->conflicted(); }
    };
    retry_when_overtaken(
        [&] {
            StoreLock lock = lock_shape(LockMode::exclusive);
            return Begun{std::move(lock), published ? store->begin_change(prefix, true) : nullptr};
        },
        [&](const Begun&) { or_drop_lock_file(*this, change); });
}

void NodeState::sync() const {
    if (published) store->sync();
}

const Shape& unit_shape(const LoadedArray& loaded) {
    return loaded.pipeline.shard() != nullptr ? loaded.pipeline.shard()->grid().chunks() : loaded.grid.chunks();
}

ChunkGrid unit_grid(const LoadedArray& loaded) {
    return loaded.pipeline.shard() != nullptr ? ChunkGrid(loaded.grid.shape(), unit_shape(loaded)) : loaded.grid;
}

Index first_unit(const LoadedArray& loaded, const Index& chunk) {
    const ShardCodec* shard = loaded.pipeline.shard();
    if (shard == nullptr) return chunk;
    Index unit = loaded.grid.chunk_region(chunk).start;
    for (int d = 0; d < unit.rank(); ++d) unit[d] /= shard->grid().chunks()[d];
    return unit;
}

ArrayInfo array_info(const LoadedArray& loaded) {
    ArrayInfo info{.dtype = loaded.metadata.dtype, .shape = loaded.metadata.shape, .chunks = loaded.metadata.chunks};
    if (const ShardCodec* shards = loaded.pipeline.shard()) {
        info.shards = info.chunks;
        info.chunks = shards->innermost();
    }
    return info;
}

ArrayState::ArrayState(std::shared_ptr<KeyValueStore> s, std::string_view p, const Dialect& d)
    : NodeState(std::move(s), p, &d) {}

void drop_lock_file(const PlaceRef& place) {
    if (!is_directory_store(place.store)) return;
    const std::string own = place.key(own_folder);
    const Listing there = place.store.list(own);
    if (!there.prefixes.empty() || there.keys != std::vector<std::string>{"lock"}) return;
    place.store.erase(join_key(own, "lock"));
    std::error_code kept;  // what no listing shows, or came meanwhile, stays
    std::filesystem::remove(place.store.name_of(own), kept);
}

std::shared_ptr<const LoadedArray> ArrayState::loaded() const {
    const std::lock_guard lock(mutex_);
    return loaded_;
}

void ArrayState::set_loaded(std::shared_ptr<const LoadedArray> l) {
    const std::lock_guard lock(mutex_);
    loaded_ = std::move(l);
}

std::shared_ptr<const LoadedArray> ArrayState::refresh() {
    const auto present = loaded();
    if (!published) return present;
    Buffer document;
    if (!store->get(join_key(prefix, dialect->metadata_key), document, metadata_limit)) {
        throw not_found("{}: {} is gone: the array was removed or moved away", name, dialect->metadata_key);
    }
    {
        const std::lock_guard lock(mutex_);
        if (loaded_ && document.size() > 0 && std::ranges::equal(document.span(), document_.span())) return loaded_;
    }
    return take(std::move(document));
}

void ArrayState::require_chunk(const LoadedArray& l, const Index& chunk) const {
    const std::string document_key = key(dialect->metadata_key);
    const auto stamp = store->stamp(document_key);
    const std::lock_guard lock(mutex_);
    if (stamp && (!seen_ || !(seen_->first == *stamp))) {
        Buffer document;
        if (store->get(document_key, document, metadata_limit)) {
            const bool same = std::ranges::equal(document.span(), document_.span());
            seen_ = {*stamp,
                     same ? loaded_->metadata.shape : parse_metadata(*dialect, {*store, prefix}, document).shape};
        }
    }
    if (!stamp || !seen_) {
        throw not_found("the array is gone: it was removed, moved, or another took its place; open it again");
    }
    const Shape& now = seen_->second;
    const Region region = l.grid.chunk_region(chunk);
    for (int d = 0; d < std::min(now.rank(), region.rank()); ++d) {
        if (region.start[d] < now[d]) continue;
        throw Error(ErrorCode::out_of_bounds,
                    fmt::format("others have shortened the array from {} to {} since it was opened; open it again",
                                l.grid.shape().to_string(), now.to_string()));
    }
}

namespace {

/// Whether two documents of one array agree about its chunks. Where these differ in length, growing adds some.
bool same_lengths(const ArrayMetadata& a, const ArrayMetadata& b) {
    if (a.edges.empty() || b.edges.empty()) return a.edges.empty() == b.edges.empty() && a.chunks == b.chunks;
    return std::ranges::equal(a.edges, b.edges,
                              [](const ChunkEdges& x, const ChunkEdges& y) { return x.continues(y); });
}

}  // namespace

std::shared_ptr<const LoadedArray> ArrayState::take(Buffer document) {
    ArrayMetadata metadata = parse_metadata(*dialect, {*store, prefix}, document);  // its errors name the document
    if (stores_fill) metadata.fill.always_stored = true;
    auto fresh =
        in_context([&] { return name; }, [&] { return std::make_shared<const LoadedArray>(std::move(metadata)); });
    const std::lock_guard lock(mutex_);
    if (loaded_ &&
        !(loaded_->metadata.dtype == fresh->metadata.dtype && same_lengths(loaded_->metadata, fresh->metadata))) {
        throw invalid_argument("{}: the array was replaced by another one; open it again", name);
    }
    document_ = std::move(document);
    loaded_ = std::move(fresh);
    return loaded_;
}

void ArrayState::save(std::shared_ptr<const LoadedArray> l) {
    if (published) {
        // A new array's attributes are written with its metadata, which comes last: without it there is no array.
        const std::optional<Value> attributes = std::exchange(unpublished_attributes, std::nullopt);
        in_context([&] { return name; },
                   [&] {
                       dialect->save({*store, prefix}, l->metadata, attributes ? &*attributes : nullptr);
                   });
    }
    const std::lock_guard lock(mutex_);
    loaded_ = std::move(l);
    document_.resize(0);  // the stored document may differ: the next refresh reads it again
}

std::vector<std::string> ArrayState::hold_documents(HeldValues& held) {
    std::vector<std::string> keys;
    const auto documents = memory_store();
    const auto& attributes = unpublished_attributes;
    in_context([&] { return name; },
               [&] {
                   dialect->save({*documents, prefix}, loaded()->metadata, attributes ? &*attributes : nullptr);
               });
    for (const std::string& document : documents->list(prefix).keys) {
        const std::string key = join_key(prefix, document);
        const auto from = documents->open(key);
        const auto to = held.create(key);
        to->append(read_all(*from).span());
        to->finish();
        if (document != dialect->metadata_key) keys.push_back(key);
    }
    keys.push_back(join_key(prefix, dialect->metadata_key));
    return keys;
}

void ArrayState::place_documents(HeldValues& held, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) held.place(key);
    published = true;
    unpublished_attributes.reset();
    refresh();
}

void require_writable(const ArrayState& state, const LoadedArray& l) {
    in_context([&] { return state.name; }, [&] { l.pipeline.require_encoder(); });
    if (!l.grid.shape().empty() && l.metadata.spelling.find("order") == nullptr) return;
    in_context([&] { return state.name; }, [&] { state.dialect->require_expressible(l.metadata); });
}

std::string ArrayState::chunk_key(const LoadedArray& l, const Index& chunk) const {
    return join_key(prefix, l.metadata.keys.key(chunk));
}

}  // namespace tessera
