#include <tessera/chunk_bytes.h>

#include <fmt/format.h>
#include <tessera/convert.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/shard.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "array_access.h"
#include "resize.h"
#include "sha256.h"
#include "stored_chunks.h"
#include "versions.h"

namespace tessera {

namespace {

/// The description of the chunks in v2.
struct InV2 {
    ArrayMetadata metadata;  ///< the array's, with its inner chunks as chunks, and without the checksum
    Value document;
    bool checksum = false;
};

bool is_checksum(const CodecConfig& codec) {
    return codec.name == "crc32c" && codec.configuration.as_object().empty();
}

std::optional<InV2> in_v2(const LoadedArray& loaded, const Dialect& from) {
    InV2 v2{.metadata = loaded.metadata, .document = {}};
    ArrayMetadata& m = v2.metadata;
    const ChunkLayout layout = chunk_layout(m);
    if (!layout.edges.empty()) return {};  // v2 has chunks of one shape
    if (!layout.shards.empty()) {
        // In shards that are compressed as a whole, or contain shards, inner chunks are not contiguous bytes.
        const ShardCodec* const shard = loaded.pipeline.shard();
        if (shard == nullptr || shard->inner().shard() != nullptr) return {};
    }
    m.chunks = layout.chunks;
    m.codecs = layout.codecs;
    v2.checksum = !m.codecs.empty() && is_checksum(m.codecs.back());
    if (v2.checksum) m.codecs.pop_back();
    try {
        const Dialect& to = dialect_named("v2");
        ArrayMetadata there = convert_metadata(m, {}, from, to).metadata;
        there.keys = to.default_keys();  // whatever the array's own are
        there.unknown = Value::object();
        ArrayMetadata same_fill = there;  // may_be_absent() covers the fill
        same_fill.fill = m.fill;
        if (why_recode(m, same_fill)) return {};
        v2.document = to.document(there);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::unsupported || e.code() == ErrorCode::invalid_argument) return {};
        throw;
    }
    return v2;
}

/// Checks a crc32c at the end and removes it.
void cut_checksum(Buffer& bytes) {
    constexpr std::size_t length = 4;
    if (bytes.size() < length) throw corrupt("{} bytes are no crc32c and what it is of", bytes.size());
    const Shape shape{static_cast<std::int64_t>(bytes.size() - length)};
    const std::array<CodecConfig, 2> codecs{CodecConfig{"bytes"}, CodecConfig{"crc32c"}};
    const CodecPipeline pipeline({DType::parse("u1"), shape, {}}, codecs);
    Buffer checked(bytes.size() - length);
    const MutableArrayView to{checked.data(), DType::parse("u1"), shape, {1}, nullptr};
    CodecScratch scratch;
    pipeline.decode(bytes, to, scratch);
    bytes = std::move(checked);
}

}  // namespace

struct ChunkBytes::Plan {
    explicit Plan(const Array& array, std::shared_ptr<ArrayState> of)
        : state(std::move(of)), loaded(state->loaded()), v2(in_v2(*loaded, array.dialect())) {
        if (!v2) return;
        document = v2->document;
        const ArrayMetadata& m = v2->metadata;
        pipeline.emplace(ChunkSpec{m.dtype, m.chunks, m.fill.bytes}, m.codecs);
        frames = m.codecs.back().name == "blosc" || m.codecs.back().name == "numcodecs.blosc";
    }

    [[nodiscard]] const CodecPipeline& decoder() const {
        if (!pipeline) throw unsupported(state->name + ": Zarr v2 cannot say how its chunks are encoded");
        return *pipeline;
    }
    [[nodiscard]] const ShardCodec* shard() const { return loaded->pipeline.shard(); }
    [[nodiscard]] std::string name_of(const std::string& key) const { return state->store->name_of(key); }

    [[nodiscard]] bool get(const Index& chunk, std::string& key, Buffer& out) const;
    template <class Tell>
    void for_each_inner(const Index& outer, const std::string& key, const Tell& tell) const;
    [[nodiscard]] ShardCodec::Place place_in_shard(const std::string& key, const Index& inner,
                                                   std::unique_ptr<ByteSource>& bytes) const;

    std::shared_ptr<ArrayState> state;
    std::shared_ptr<const LoadedArray> loaded;
    std::optional<InV2> v2;
    std::optional<Value> document;
    std::optional<CodecPipeline> pipeline;  ///< of a chunk in v2
    bool frames = false;                    ///< blosc, whose decoders trust the sizes in front

private:
    /// The index of the shard that was read last, so that reading all its chunks reads the index once. Keeps no file
    /// open.
    struct KnownIndex {
        std::string key;
        ValueStamp stamp;
        std::shared_ptr<const std::vector<ShardCodec::Place>> places;
    };
    mutable std::mutex mutex_;
    mutable KnownIndex known_;
};

/// Opens a shard into `bytes`, and returns the place of an inner chunk in it; absent if there is no shard.
ShardCodec::Place ChunkBytes::Plan::place_in_shard(const std::string& key, const Index& inner,
                                                   std::unique_ptr<ByteSource>& bytes) const {
    std::optional<ValueStamp> stamp;
    bytes = open_stamped(*state->store, key, stamp);
    if (bytes == nullptr) return {};
    const std::size_t number = shard()->number(inner);
    if (stamp) {
        const std::lock_guard lock(mutex_);
        if (known_.places && known_.key == key && known_.stamp == *stamp) return known_.places->at(number);
    }
    auto places = std::make_shared<const std::vector<ShardCodec::Place>>(shard()->read_index(*bytes));
    const ShardCodec::Place place = places->at(number);
    if (stamp) {
        const std::lock_guard lock(mutex_);
        known_ = {key, *stamp, std::move(places)};
    }
    return place;
}

/// Calls tell(chunk, place) for each chunk that the shard at `key` holds.
template <class Tell>
void ChunkBytes::Plan::for_each_inner(const Index& outer, const std::string& key, const Tell& tell) const {
    const Shard found(*shard(), state->store->open(key));
    const ChunkGrid& within = shard()->grid();
    const ChunkGrid whole(loaded->grid.shape(), within.chunks());
    for (std::int64_t n = 0; n < within.chunk_count(); ++n) {
        const Index inner = within.index(n);
        const ShardCodec::Place& at = found.place(inner);
        Index chunk = inner;
        for (int d = 0; d < chunk.rank(); ++d) chunk[d] += outer[d] * within.grid()[d];
        if (at.present() && in_grid(whole, chunk)) tell(chunk, {key, at.offset, at.size, false});
    }
}

/// Reads a chunk as stored, and sets `key`.
bool ChunkBytes::Plan::get(const Index& chunk, std::string& key, Buffer& out) const {
    const ShardCodec* const codec = shard();
    if (codec == nullptr) {
        key = state->chunk_key(*loaded, chunk);
        return state->store->get(key, out, loaded->pipeline.encoded_limit());
    }
    const Shape& inside = codec->grid().grid();
    Index outer = chunk;
    Index inner = chunk;
    for (int d = 0; d < chunk.rank(); ++d) {
        outer[d] = chunk[d] / inside[d];
        inner[d] = chunk[d] % inside[d];
    }
    key = state->chunk_key(*loaded, outer);
    std::unique_ptr<ByteSource> bytes;
    const ShardCodec::Place place = place_in_shard(key, inner, bytes);
    if (!place.present()) return false;
    if (place.size > codec->inner().encoded_limit()) {
        throw corrupt("{} bytes are far more than a chunk encodes to", place.size);
    }
    out = read_range(*bytes, place.offset, place.size);
    return true;
}

ChunkBytes::ChunkBytes(const Array& array) : plan_(std::make_unique<Plan>(array, ArrayAccess::state(array))) {}
ChunkBytes::ChunkBytes(ChunkBytes&&) noexcept = default;
ChunkBytes& ChunkBytes::operator=(ChunkBytes&&) noexcept = default;
ChunkBytes::~ChunkBytes() = default;

const std::optional<Value>& ChunkBytes::zarray() const {
    return plan_->document;
}

bool ChunkBytes::read(const Index& chunk, Buffer& out) const {
    const CodecPipeline& decoder = plan_->decoder();
    std::string key;
    try {
        if (!plan_->get(chunk, key, out)) return false;
        if (plan_->v2->checksum) cut_checksum(out);
        if (out.empty() && byte_count(decoder.chunk().shape, decoder.chunk().dtype.size()) != 0) {
            throw corrupt("no bytes");
        }
        if (plan_->frames) static_cast<void>(decoder.trailing_bytes(out));
    } catch (const Error& e) {
        const std::string name = plan_->name_of(key);
        if (std::string_view(e.what()).starts_with(name)) throw;
        throw e.within(name);
    }
    return true;
}

bool ChunkBytes::may_be_absent() const {
    return plan_->loaded->may_omit();
}

Buffer ChunkBytes::absent() const {
    const CodecPipeline& decoder = plan_->decoder();
    NDArray elements(decoder.chunk().dtype, decoder.chunk().shape);
    fill_elements(elements.view(), plan_->loaded->fill());
    return decoder.encoded(elements.view());
}

void ChunkBytes::for_each(const std::function<void(const Index& chunk, const Place& place)>& each) const {
    static_cast<void>(plan_->decoder());
    const LoadedArray& l = *plan_->loaded;
    const std::uint64_t cut = plan_->v2->checksum ? 4 : 0;
    const auto tell = [&](const Index& chunk, Place place) {
        if (place.size < cut) throw corrupt(plan_->name_of(place.key) + ": a chunk is shorter than its crc32c");
        place.whole = place.whole && cut == 0;
        place.size -= cut;
        each(chunk, place);
    };
    const auto visit = [&](const Index& chunk, const std::string& key, const KeyValueStore::ValueSize& size) {
        if (!in_grid(l.grid, chunk)) return;
        if (plan_->shard() != nullptr) {
            plan_->for_each_inner(chunk, key, tell);
        } else {
            tell(chunk, {key, 0, size(), true});
        }
    };
    for_each_stored(*plan_->state, l,
                    {.each = visit, .in_the_way = [&](const Index* chunk, const std::string&, const std::string& text) {
                         if (chunk == nullptr || in_grid(l.grid, *chunk)) throw corrupt(text);
                     }});
}

ChunkBytes::State ChunkBytes::state() const {
    const ArrayState& state = *plan_->state;
    std::vector<std::pair<std::string, ValueStamp>> stamps;
    const auto add = [&](const std::string& key) {
        if (const auto stamp = state.store->stamp(key)) stamps.emplace_back(key, *stamp);
    };
    add(state.key(state.dialect->metadata_key));
    StoredVisitor visitor{
        .each = [&](const Index&, const std::string& key, const KeyValueStore::ValueSize&) { add(key); },
        .in_the_way = [](const Index*, const std::string&, const std::string& text) { throw corrupt(text); }};
    if (state.store->is_far()) {
        visitor.each_listed = [&](const std::string& key, const ValueStamp& stamp, std::string_view) {
            if (stamp.id == 0) return add(key);  // the listing does not say it
            stamps.emplace_back(key, stamp);
        };
    }
    for_each_stored(state, *plan_->loaded, visitor);
    std::ranges::sort(stamps, {}, &std::pair<std::string, ValueStamp>::first);
    State found;
    Hasher hasher;
    for (const auto& [key, stamp] : stamps) {
        const std::string line =
            fmt::format("{} {} {} {} {}\n", stamp.size, stamp.modified, stamp.id, stamp.by_content ? 1 : 0, key);
        hasher.add(line.data(), line.size());
        if (!stamp.by_content) found.newest = std::max(found.newest, stamp.modified);
    }
    found.sum = hex(hasher.finish());
    return found;
}

}  // namespace tessera
