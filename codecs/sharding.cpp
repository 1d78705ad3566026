#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/shard.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec_row.h"
#include "span_source.h"

namespace tessera {

namespace {

/// More inner chunks than this are refused: their index alone would take 256 MiB.
constexpr std::int64_t most_inner_chunks = std::int64_t{1} << 24;

/// Adjacent inner chunks are read together up to this many bytes. Larger chunks lose nothing by a call each, and block
/// codecs can then read block by block.
constexpr std::uint64_t most_at_once = std::uint64_t{128} << 10;

const Value& required(const Value& configuration, std::string_view member) {
    const Value* value = configuration.find(member);
    if (value == nullptr) throw invalid_argument("the configuration lacks \"{}\"", member);
    return *value;
}

std::vector<CodecConfig> codec_list(const Value& configuration, std::string_view member) {
    std::vector<CodecConfig> codecs;
    for (const Value& codec : required(configuration, member).as_array()) codecs.push_back(codec_from_json(codec));
    return codecs;
}

/// The grid of inner chunks in the configuration, which applies after the transposes.
ChunkGrid number_grid(const Value& configuration, const ChunkSpec& chunk, const Dims& axes) {
    require_known_members(configuration, {"chunk_shape", "codecs", "index_codecs", "index_location"});
    const Shape shard = permuted(chunk.shape, axes);
    Shape inner;
    for (const Value& length : required(configuration, "chunk_shape").as_array()) inner.push_back(length.as_int64());
    ChunkGrid grid(shard, inner);
    for (int d = 0; d < shard.rank(); ++d) {
        if (shard[d] % inner[d] != 0) {
            throw invalid_argument("chunk_shape {} does not divide the shard's shape {} (dimension {})",
                                   inner.to_string(), shard.to_string(), d);
        }
    }
    if (grid.chunk_count() > most_inner_chunks) {
        throw unsupported("{} inner chunks in one shard; Tessera handles at most {}", grid.chunk_count(),
                          most_inner_chunks);
    }
    return grid;
}

/// The same before the transposes.
ChunkGrid array_grid(const ChunkGrid& numbers, const Shape& shard, const Dims& axes) {
    Shape inner = numbers.chunks();
    for (int k = 0; k < axes.rank(); ++k) inner[static_cast<int>(axes[k])] = numbers.chunks()[k];
    return {shard, inner};
}

CodecPipeline inner_pipeline(const Value& configuration, const ChunkSpec& chunk, const Shape& inner, const Dims& axes) {
    std::vector<CodecConfig> codecs = codec_list(configuration, "codecs");
    if (!axes.empty()) {
        CodecConfig transpose{"transpose"};
        transpose.configuration.set("order", Value::Array(axes.begin(), axes.end()));
        codecs.insert(codecs.begin(), std::move(transpose));
    }
    return {ChunkSpec{chunk.dtype, inner, chunk.fill}, codecs};
}

/// The shape of the index: the grid and one more dimension, for offset and size.
Shape index_shape(const ChunkGrid& numbers) {
    Shape shape = numbers.grid();
    shape.push_back(2);
    return shape;
}

CodecPipeline index_pipeline(const Value& configuration, const ChunkGrid& numbers) {
    return in_context([] { return "index_codecs"; },
                      [&] {
                          const auto codecs = codec_list(configuration, "index_codecs");
                          CodecPipeline index({"<u8", index_shape(numbers), std::nullopt}, codecs);
                          if (!index.encoded_size()) {
                              throw unsupported(
                                  "the index of a shard must always have the same number of bytes, so that it can be "
                                  "found: \"bytes\", \"crc32c\" and other checksums do that");
                          }
                          return index;
                      });
}

/// Writes into a buffer that the caller owns.
class BufferSink final : public ByteSink {
public:
    explicit BufferSink(Buffer& out) : out_(out) { out_.resize(0); }
    [[nodiscard]] bool random_access() const override { return true; }
    void append(ByteSpan bytes) override { out_.append(bytes); }
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        std::ranges::copy(bytes, out_.span().subspan(static_cast<std::size_t>(offset), bytes.size()).begin());
    }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Buffer& out_;
    std::string name_ = "the shard";
};

/// One place per inner chunk. Metadata may claim any number of chunks.
std::vector<ShardCodec::Place> places_for(const ShardCodec& codec) {
    const auto count = static_cast<std::size_t>(codec.grid().chunk_count());
    require_memory(3 * count * sizeof(ShardCodec::Place));  // and for the encoded index
    return std::vector<ShardCodec::Place>(count);
}

std::shared_ptr<const ByteSource> unowned(const ByteSource& source) {
    return {std::shared_ptr<void>(), &source};
}

/// The places of an index as a view of elements.
template <class View, class Places>
View places_view(Places& places, const ChunkGrid& numbers) {
    static_assert(sizeof(ShardCodec::Place) == 2 * sizeof(std::uint64_t));
    using Byte = std::conditional_t<std::is_const_v<Places>, const std::byte, std::byte>;
    return view_bytes(reinterpret_cast<Byte*>(places.data()), DType::of<std::uint64_t>(), index_shape(numbers));
}

}  // namespace

// ---- ShardCodec

ShardCodec::ShardCodec(const Value& configuration, ChunkSpec chunk, const Dims& axes)
    : chunk_(std::move(chunk)),
      axes_(axes),
      numbers_(number_grid(configuration, chunk_, axes)),
      grid_(array_grid(numbers_, chunk_.shape, axes)),
      inner_(inner_pipeline(configuration, chunk_, grid_.chunks(), axes)),
      index_(index_pipeline(configuration, numbers_)),
      index_size_(*index_.encoded_size()),
      fill_(chunk_.fill ? *chunk_.fill : zero_element(chunk_.dtype)),
      slot_{reinterpret_cast<const char*>(fill_.data()), fill_.size()} {
    if (const Value* location = configuration.find("index_location")) {
        const std::string& text = location->as_string();
        if (text != "start" && text != "end") {
            throw invalid_argument("index_location is \"{}\"; choose \"start\" or \"end\"", text);
        }
        index_at_start_ = text == "start";
    }
}

void ShardCodec::encode(const ArrayView& in, Buffer& out) const {
    ShardWriter writer(*this, nullptr, Region::whole(chunk_.shape), [&] { return std::make_unique<BufferSink>(out); });
    writer.write(Region::whole(grid_.grid()),
                 [&](const Index& inner, const auto&) { return in.part(grid_.chunk_region(inner)); }, {.threads = 1});
    writer.finish();
}

void ShardCodec::decode(ByteSpan in, const MutableArrayView& out) const {
    CodecScratch scratch;
    decode_part(SpanSource(in, "the shard"), Region::whole(chunk_.shape), out, scratch);
}

void ShardCodec::decode_part(const ByteSource& shard, const Region& region, const MutableArrayView& out,
                             CodecScratch& scratch) const {
    const Shard open(*this, unowned(shard));
    const Region touched = grid_.overlapping(region);
    for (std::int64_t n = 0; n < touched.count(); ++n) {
        const ChunkPart part = chunk_part(grid_, region, touched, n);
        open.read(part.chunk, part.in_chunk, out.part(part.in_request), scratch);
    }
}

const Shape& ShardCodec::innermost() const {
    return inner_.shard() != nullptr ? inner_.shard()->innermost() : grid_.chunks();
}

std::optional<std::uint64_t> ShardCodec::encoded_bound() const {
    const auto one = inner_.encoded_bound();
    std::uint64_t all = 0;
    if (!one || __builtin_mul_overflow(*one, static_cast<std::uint64_t>(grid_.chunk_count()), &all) ||
        __builtin_add_overflow(all, index_size_, &all)) {
        return std::nullopt;
    }
    return all;
}

std::uint64_t ShardCodec::scratch_bytes() const {
    return inner_.scratch_bytes() + static_cast<std::uint64_t>(byte_count(grid_.chunks(), chunk_.dtype.size())) +
           3 * index_size_;
}

const std::byte* ShardCodec::fill_element() const {
    return chunk_.dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot_) : fill_.data();
}

void ShardCodec::fill(const MutableArrayView& out) const {
    fill_elements(out, chunk_.dtype, fill_element());
}

bool ShardCodec::is_fill(const ArrayView& elements) const {
    return chunk_.fill.has_value() && all_elements_equal(elements, fill_element());
}

std::size_t ShardCodec::number(const Index& inner) const {
    return static_cast<std::size_t>(numbers_.linear(permuted(inner, axes_)));
}

std::vector<ShardCodec::Place> ShardCodec::read_index(const ByteSource& shard) const {
    return in_context(
        [] { return "shard index"; },
        [&] {
            if (shard.size() < index_size_) {
                throw corrupt("it has {} bytes, but the whole shard has only {}", index_size_, shard.size());
            }
            const Buffer bytes = read_range(shard, index_at_start_ ? 0 : shard.size() - index_size_, index_size_);
            // For the places and the copy that the check makes. The caller accounts for the result.
            const MemoryHold held(2 * sizeof(Place) * static_cast<std::uint64_t>(grid_.chunk_count()));
            std::vector<Place> places(static_cast<std::size_t>(grid_.chunk_count()));
            CodecScratch scratch;
            index_.decode(bytes, places_view<MutableArrayView>(places, numbers_), scratch);
            require_places(places, shard.size());
            return places;
        });
}

void ShardCodec::require_places(const std::vector<Place>& places, std::uint64_t shard_size) const {
    const std::uint64_t begin = index_at_start_ ? index_size_ : 0;
    const std::uint64_t end = index_at_start_ ? shard_size : shard_size - index_size_;
    std::vector<Place> present;
    for (const Place& p : places) {
        if (!p.present()) continue;
        if (p.offset < begin || p.offset > end || p.size > end - p.offset) {
            throw corrupt("an inner chunk of {} bytes at {} does not lie between bytes {} and {}", p.size, p.offset,
                          begin, end);
        }
        present.push_back(p);
    }
    // Overlapping chunks are refused: each rewrite of the shard would copy their shared bytes again.
    if (!std::ranges::is_sorted(present, {}, &Place::offset)) std::ranges::sort(present, {}, &Place::offset);
    for (std::size_t i = 1; i < present.size(); ++i) {
        const Place& before = present[i - 1];
        if (before.offset + before.size > present[i].offset) {
            throw corrupt("the inner chunks of {} bytes at {} and {} bytes at {} overlap", before.size, before.offset,
                          present[i].size, present[i].offset);
        }
    }
}

Buffer ShardCodec::encode_index(const std::vector<Place>& places) const {
    return index_.encoded(places_view<ArrayView>(places, numbers_));
}

// ---- Shard

Shard::Shard(const ShardCodec& codec, std::shared_ptr<const ByteSource> bytes)
    : codec_(codec), bytes_(std::move(bytes)), places_(codec.read_index(*bytes_)) {
    held_.add(places_.size() * sizeof(ShardCodec::Place));
}

std::unique_ptr<const ByteSource> Shard::encoded(const ShardCodec::Place& at) const {
    return at.present() ? slice_source(bytes_, at.offset, at.size, bytes_->name()) : nullptr;
}

void Shard::read(const Index& inner, const Region& region, const MutableArrayView& out, CodecScratch& scratch) const {
    read(inner, encoded(place(inner)).get(), region, out, scratch);
}

namespace {

/// A requested chunk: its number among the requested ones, and its place.
struct Wanted {
    std::size_t i;
    ShardCodec::Place at;
};

/// Where the groups begin that are read together, and the end of the last one.
std::vector<std::size_t> groups_of(std::span<const Wanted> wanted) {
    std::vector<std::size_t> begins;
    for (std::size_t n = 0; n < wanted.size(); ++n) {
        const ShardCodec::Place& at = wanted[n].at;
        const bool joins = n > 0 && at.present() && at.offset == wanted[n - 1].at.offset + wanted[n - 1].at.size &&
                           at.offset + at.size - wanted[begins.back()].at.offset <= most_at_once;
        if (!joins) begins.push_back(n);
    }
    begins.push_back(wanted.size());
    return begins;
}

void expect_all(const ByteSource& bytes, std::span<const Wanted> wanted) {
    std::vector<ByteSource::Extent> extents;
    extents.reserve(wanted.size());
    for (const auto& [i, at] : wanted) {
        if (at.present()) extents.push_back({at.offset, at.offset + at.size});
    }
    bytes.expect(extents);
}

}  // namespace

void Shard::for_each(std::span<const std::int64_t> chunks, const IoOptions& io,
                     const std::function<void(std::size_t, const ByteSource*)>& each) const {
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < chunks.size(); ++i) wanted.push_back({i, place(codec_.grid().index(chunks[i]))});
    std::ranges::sort(wanted, {}, [](const Wanted& w) { return w.at.offset; });
    const std::vector<std::size_t> begins = groups_of(wanted);
    if (wanted.size() > 1 && bytes_->mapped().empty()) expect_all(*bytes_, wanted);
    parallel_in_memory(std::ssize(begins) - 1, io, [&](std::int64_t g) {
        const auto first = begins[static_cast<std::size_t>(g)];
        const auto last = begins[static_cast<std::size_t>(g) + 1] - 1;
        const ShardCodec::Place& front = wanted[first].at;
        if (first == last) {
            each(wanted[first].i, encoded(front).get());
            return;
        }
        const Buffer together =
            read_range(*bytes_, front.offset, wanted[last].at.offset + wanted[last].at.size - front.offset);
        for (std::size_t n = first; n <= last; ++n) {
            const ShardCodec::Place& at = wanted[n].at;
            const SpanSource one(together.span().subspan(static_cast<std::size_t>(at.offset - front.offset),
                                                         static_cast<std::size_t>(at.size)),
                                 bytes_->name());
            each(wanted[n].i, &one);
        }
    });
}

void Shard::read(const Index& inner, const ByteSource* encoded, const Region& region, const MutableArrayView& out,
                 CodecScratch& scratch, const Dims& steps) const {
    if (encoded == nullptr) {
        codec_.fill(out);
        return;
    }
    in_context([&] { return fmt::format("inner chunk {}", inner.to_string()); },
               [&] { codec_.inner().decode_part(*encoded, region, out, scratch, steps); });
}

// ---- ShardWriter

/// An inner chunk between its edit and the sink, and its memory.
struct ShardWriter::Slot {
    enum class Outcome : std::uint8_t { kept, absent, stored };
    Outcome outcome = Outcome::kept;
    NDArray chunk;
    CodecScratch scratch;
    ByteSpan encoded;  ///< in scratch, or the chunk itself
};

ShardWriter::ShardWriter(const ShardCodec& codec, std::unique_ptr<const Shard> old, const Region& inside,
                         std::function<std::unique_ptr<ByteSink>()> create)
    : codec_(codec),
      old_(std::move(old)),
      inside_(inside),
      create_(std::move(create)),
      places_(places_for(codec)),
      edited_(places_.size()) {}

ShardWriter::~ShardWriter() = default;

void ShardWriter::write(const Region& box, const Edit& edit, const IoOptions& io) {
    const Shape& chunks = codec_.grid().chunks();
    const std::int64_t bytes = std::max<std::int64_t>(1, byte_count(chunks, codec_.chunk().dtype.size()));
    // Enough chunks per thread to make up for the wait at the end of each batch.
    const std::int64_t threads = thread_count(io);
    const std::int64_t per_thread =
        threads == 1 ? 1 : std::clamp<std::int64_t>((std::int64_t{256} << 10) / bytes, 1, 64);
    const std::int64_t batch = std::min(box.count(), threads * per_thread);
    if (slots_.size() < static_cast<std::size_t>(batch)) slots_.resize(static_cast<std::size_t>(batch));
    for (std::int64_t first = 0; first < box.count(); first += batch) {
        const std::int64_t count = std::min(batch, box.count() - first);
        parallel_in_memory(count, io, [&](std::int64_t i) {
            edit_slot(slots_[static_cast<std::size_t>(i)], edit, index_in(box, first + i));
        });
        for (std::int64_t i = 0; i < count; ++i) {
            const Slot& slot = slots_[static_cast<std::size_t>(i)];
            if (slot.outcome == Slot::Outcome::kept) continue;
            const std::size_t n = codec_.number(index_in(box, first + i));
            if (edited_[n]) throw invalid_argument("an inner chunk was written twice while its shard was put together");
            edited_[n] = true;
            if (slot.outcome == Slot::Outcome::absent) continue;
            append(slot.encoded);
            places_[n] = {end_ - slot.encoded.size(), slot.encoded.size()};
        }
    }
}

void ShardWriter::edit_slot(Slot& slot, const Edit& edit, const Index& inner) const {
    const DType& dtype = codec_.chunk().dtype;
    const Region place = codec_.grid().chunk_region(inner);
    const auto memory = [&](bool keep) {
        // Variable-length elements get fresh memory, because a reused arena would grow with every chunk.
        if (!(slot.chunk.shape() == place.extent) || slot.chunk.bytes().empty() || dtype.is_variable()) {
            slot.chunk = NDArray();
            slot.chunk = NDArray(dtype, place.extent);
        }
        const MutableArrayView chunk = slot.chunk.view();
        if (keep && old_) {
            old_->read(inner, Region::whole(place.extent), chunk, slot.scratch);
        } else {
            codec_.fill(chunk);
        }
        return chunk;
    };
    slot.outcome = Slot::Outcome::kept;
    const std::optional<ArrayView> elements = edit(inner, memory);
    if (!elements) return;
    Region inside = intersection(place, inside_);
    for (int d = 0; d < inside.rank(); ++d) inside.start[d] -= place.start[d];
    slot.outcome = codec_.is_fill(elements->part(inside)) ? Slot::Outcome::absent : Slot::Outcome::stored;
    if (slot.outcome == Slot::Outcome::stored) slot.encoded = codec_.inner().encode(*elements, slot.scratch);
}

void ShardWriter::append(ByteSpan bytes) {
    if (!sink_) {
        sink_ = create_();
        if (codec_.index_at_start()) {  // leave room for it at the front
            hold_ = !sink_->random_access();
            end_ = codec_.index_size();
            if (!hold_) sink_->append(codec_.encode_index(std::vector<ShardCodec::Place>(places_.size())));
        }
    }
    if (hold_) {
        held_.append(bytes);
    } else {
        sink_->append(bytes);
    }
    end_ += bytes.size();
}

bool ShardWriter::empty() const {
    for (std::size_t n = 0; n < places_.size(); ++n) {
        if (places_[n].present() || (!edited_[n] && old_ && old_->places()[n].present())) return false;
    }
    return true;
}

std::vector<std::int64_t> ShardWriter::dropped() const {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < codec_.grid().chunk_count(); ++i) {
        const std::size_t n = codec_.number(codec_.grid().index(i));
        const bool was_there = !old_ || old_->places()[n].present();
        if (edited_[n] && !places_[n].present() && was_there) numbers.push_back(i);
    }
    return numbers;
}

void ShardWriter::finish() {
    if (old_ && old_->bytes().mapped().empty()) {
        std::vector<ByteSource::Extent> kept;
        for (std::size_t n = 0; n < places_.size(); ++n) {
            const ShardCodec::Place& at = old_->places()[n];
            if (!edited_[n] && at.present()) kept.push_back({at.offset, at.offset + at.size});
        }
        old_->bytes().expect(kept);
    }
    for (std::size_t n = 0; old_ && n < places_.size(); ++n) {
        if (!edited_[n] && old_->places()[n].present()) copy_old(old_->places()[n], places_[n]);
    }
    append({});  // creates the sink even if the shard holds only its index
    const Buffer index = codec_.encode_index(places_);
    if (codec_.index_at_start() && !hold_) {
        sink_->write_at(0, index);
    } else {
        sink_->append(index);
        sink_->append(held_);
    }
    sink_->finish();
}

void ShardWriter::copy_old(const ShardCodec::Place& from, ShardCodec::Place& to) {
    constexpr std::uint64_t most_in_memory = std::uint64_t{1} << 20;
    Buffer piece;
    std::uint64_t done = 0;
    do {
        piece.reset(static_cast<std::size_t>(std::min(most_in_memory, from.size - done)));
        old_->bytes().read(from.offset + done, piece.span());
        append(piece);
        done += piece.size();
    } while (done < from.size);
    to = {end_ - from.size, from.size};
}

std::unique_ptr<ArrayToBytesCodec> make_sharding_codec(const Value& configuration, const ChunkSpec& in) {
    return std::make_unique<ShardCodec>(configuration, in);
}

extern constinit const CodecRow sharding_codec{
    .name = "sharding_indexed",
    .about = "smaller chunks and an index of them",
    .array_to_bytes = make_sharding_codec,
    .short_notation = false,
    .shard = true,
};

}  // namespace tessera
