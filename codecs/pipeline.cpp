#include <tessera/pipeline.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/shard.h>

#include <algorithm>
#include <utility>

#include "byte_runs.h"
#include "codec_row.h"
#include "numeric_filter.h"
#include "span_source.h"

namespace tessera {

Dims permuted(const Dims& dims, const Dims& axes) {
    if (axes.empty()) return dims;
    Dims result = dims;
    for (int k = 0; k < dims.rank(); ++k) result[k] = dims[static_cast<int>(axes[k])];
    return result;
}

namespace {

/// A codec and the name that its errors carry.
template <class Codec>
struct Stage {
    std::string name;
    std::unique_ptr<Codec> codec;
};

/// Elements of a chunk from the start of a region on, `steps` apart along each dimension (empty: 1). The region's
/// extent counts them.
struct Part {
    Region region;
    Dims steps;

    /// The smallest region that holds them.
    [[nodiscard]] Region bounds() const {
        Region all = region;
        for (int d = 0; d < steps.rank(); ++d) {
            if (all.extent[d] > 0) all.extent[d] = (all.extent[d] - 1) * steps[d] + 1;
        }
        return all;
    }
    /// These elements of a view of the whole chunk.
    [[nodiscard]] ArrayView of(const ArrayView& chunk) const {
        ArrayView v = chunk.part(bounds());
        v.shape = region.extent;
        for (int d = 0; d < steps.rank(); ++d) v.strides[d] *= steps[d];
        return v;
    }
};

/// Runs one call of a codec; errors get the stage's name.
template <class Codec, class Body>
decltype(auto) at_stage(const Stage<Codec>& stage, Body&& body) {
    return in_context([&] { return stage.name; }, std::forward<Body>(body));
}

/// The most bytes that a stage of unknown size may decode to: a limit, not an expected size.
constexpr std::uint64_t unsized_limit = std::uint64_t{1} << 30;

/// Compressors work block by block in memory of their own: about this much, and no more than a few chunks.
constexpr std::uint64_t working_bytes = std::uint64_t{4} << 20;

/// From one element in so many bytes on, a whole chunk is decoded for single elements.
constexpr std::size_t sorted_alone = 1024;

const CodecRow& find_row(const CodecConfig& config) {
    if (const CodecRow* row = find_codec(config.name)) return *row;
    std::vector<std::string_view> names;
    for (const CodecRow& row : codec_table()) names.push_back(row.name);
    throw unsupported("codec \"{}\" is not known; there are {}", config.name, fmt::join(names, ", "));
}

}  // namespace

struct CodecPipeline::State {
    ChunkSpec chunk;
    std::optional<Error> encoder_error;  ///< in members that only encoding needs
    std::vector<Stage<ArrayToArrayCodec>> array_to_array;
    Stage<ArrayToBytesCodec> array_to_bytes;
    std::vector<Stage<BytesToBytesCodec>> bytes_to_bytes;
    /// sizes[i] is the most bytes that go into bytes_to_bytes[i]; the last one is the most that a chunk encodes to.
    std::vector<std::uint64_t> sizes;
    bool bounded = true;     ///< whether sizes follow from the codecs, not from unsized_limit
    bool in_blocks = false;  ///< only the needed blocks of a chunk are read

    /// The input of array→array codec `stage`; after the last of them, the input of the array→bytes codec.
    [[nodiscard]] const ChunkSpec& spec(std::size_t stage) const {
        return stage == 0 ? chunk : array_to_array[stage - 1].codec->encoded();
    }
    [[nodiscard]] const ChunkSpec& innermost() const { return spec(array_to_array.size()); }

    /// The combined permutation if all array→array codecs only reorder dimensions; empty if there are no such codecs.
    [[nodiscard]] std::optional<Dims> all_axes() const {
        Dims all;
        for (const auto& stage : array_to_array) {
            const Dims* axes = stage.codec->axes();
            if (axes == nullptr) return std::nullopt;
            all = all.empty() ? *axes : permuted(all, *axes);
        }
        return all;
    }

    /// Whether the view's memory is, as it stands, the output of the array→bytes codec.
    [[nodiscard]] bool is_memory_of(const ArrayView& v) const {
        const DType* memory = array_to_bytes.codec->memory_dtype();
        return memory != nullptr && v.dtype == *memory && v.contiguous();
    }

    /// A chunk behind the array→array codecs. `array` owns the output of the last one that moves elements.
    [[nodiscard]] ArrayView filtered(ArrayView in, NDArray& array) const {
        for (const auto& stage : array_to_array) {
            if (const Dims* axes = stage.codec->axes()) {
                in = in.transposed(*axes);
            } else {
                array = at_stage(stage, [&] { return stage.codec->encode(in); });
                in = array.view();
            }
        }
        return in;
    }

    template <class Maker, class Input>
    auto made(const CodecConfig& config, const CodecRow& row, const Maker& maker, const Input& input) {
        return made_to_decode(row, config.configuration, encoder_error,
                              [&](const Value& configuration) { return maker(configuration, input); });
    }

    void add(const CodecConfig& config) {
        const CodecRow& row = find_row(config);
        in_context([&] { return config.name; },
                   [&] {
                       if (row.bytes_to_bytes) {
                           if (!array_to_bytes.codec) {
                               throw invalid_argument("a codec that turns the array into bytes must come before it");
                           }
                           // Texts, bits and shards have no items of the dtype's size.
                           const std::int64_t item =
                               array_to_bytes.name == "bytes" ? innermost().dtype.size() : std::int64_t{1};
                           bytes_to_bytes.push_back({config.name, made(config, row, row.bytes_to_bytes, item)});
                           sizes.push_back(bytes_to_bytes.back().codec->encoded_bound(sizes.back()));
                           in_blocks =
                               bytes_to_bytes.size() == 1 && (row.name == "blosc" || row.name == "numcodecs.blosc");
                           return;
                       }
                       if (array_to_bytes.codec) {
                           throw invalid_argument("it must come before \"{}\", after which there are only bytes",
                                                  array_to_bytes.name);
                       }
                       if (row.array_to_array) {
                           array_to_array.push_back({config.name, made(config, row, row.array_to_array, innermost())});
                       } else {
                           add_array_to_bytes(config, row);
                       }
                   });
    }

    void add_array_to_bytes(const CodecConfig& config, const CodecRow& row) {
        const auto axes = all_axes();
        if (row.shard && axes) {
            // A transposed shard would have to be decoded as a whole, so its inner chunks are transposed instead.
            array_to_bytes = {config.name, std::make_unique<ShardCodec>(config.configuration, chunk, *axes)};
            array_to_array.clear();
        } else {
            array_to_bytes = {config.name, made(config, row, row.array_to_bytes, innermost())};
        }
        const ShardCodec* shards = array_to_bytes.codec->shard();
        const auto bound = shards != nullptr ? shards->encoded_bound() : array_to_bytes.codec->encoded_size();
        bounded = bound.has_value();
        sizes.push_back(bound.value_or(unsized_limit));
    }

    /// Undoes the bytes→bytes codecs; the innermost one decodes into `out`.
    void decode_bytes(ByteSpan in, MutableByteSpan out, CodecScratch& scratch) const {
        at_stage(bytes_to_bytes.front(), [&] { bytes_to_bytes.front().codec->decode(decode_outer(in, scratch), out); });
    }

    /// Decodes a stage of which only the largest size is known. Exceeding that size means damage if the size follows
    /// from the codecs. Otherwise (variable-length elements) the chunk may be intact.
    void decode_unsized(const Stage<BytesToBytesCodec>& stage, ByteSpan in, Buffer& out, std::uint64_t limit) const {
        at_stage(stage, [&] {
            if (stage.codec->decode_unsized(in, out, limit)) return;
            throw Error(bounded ? ErrorCode::corrupt : ErrorCode::budget,
                        fmt::format("the data decode to more than the {} bytes expected", limit));
        });
    }

    /// Undoes all bytes→bytes codecs but the innermost, alternating between two buffers. `in` may be scratch.encoded,
    /// which is overwritten only after it was consumed.
    [[nodiscard]] ByteSpan decode_outer(ByteSpan in, CodecScratch& scratch) const {
        bool into_other = true;
        for (std::size_t i = bytes_to_bytes.size(); i-- > 1; into_other = !into_other) {
            Buffer& to = into_other ? scratch.other : scratch.encoded;
            decode_unsized(bytes_to_bytes[i], in, to, sizes[i]);
            in = to;
        }
        return in;
    }

    /// Decodes the input of stage `stage`. Plain bytes stay in place or go to scratch; all else goes to `memory`.
    [[nodiscard]] ArrayView decode_aside(std::size_t stage, ByteSpan in, NDArray& memory, CodecScratch& scratch) const {
        const ChunkSpec& made = spec(stage);
        const DType* plain = array_to_bytes.codec->memory_dtype();
        if (stage == array_to_array.size() && plain != nullptr && *plain == made.dtype) {
            const bool aligned = reinterpret_cast<std::uintptr_t>(in.data()) % 16 == 0;
            if (bytes_to_bytes.empty() && aligned && in.size() == sizes.front()) {
                return view_bytes(in.data(), *plain, made.shape);
            }
            scratch.decoded.reset(static_cast<std::size_t>(sizes.front()));
            const MutableArrayView all = view_bytes(scratch.decoded.data(), *plain, made.shape);
            decode_array(in, all, scratch);
            return all;
        }
        memory = NDArray(made.dtype, made.shape);
        decode_from(stage, in, memory, scratch);
        return memory.view();
    }

    /// Undoes all codecs from array→array codec `stage` on.
    void decode_from(std::size_t stage, ByteSpan in, const MutableArrayView& out, CodecScratch& scratch) const {
        if (stage == array_to_array.size()) {
            decode_array(in, out, scratch);
            return;
        }
        const auto& codec = array_to_array[stage];
        if (const Dims* axes = codec.codec->axes()) {
            decode_from(stage + 1, in, out.transposed(*axes), scratch);
            return;
        }
        NDArray memory;
        const ArrayView encoded = decode_aside(stage + 1, in, memory, scratch);
        if (out.dtype == spec(stage).dtype || dynamic_cast<const NumericFilter*>(codec.codec.get()) != nullptr) {
            at_stage(codec, [&] { codec.codec->decode(encoded, out); });
        } else {  // the other byte order
            NDArray decoded(spec(stage).dtype, spec(stage).shape);
            at_stage(codec, [&] { codec.codec->decode(encoded, decoded); });
            copy_elements(decoded, out);
        }
    }

    /// The runs of a part of the array→bytes codec's input; nullopt if its bytes do not match the memory of `v`.
    [[nodiscard]] std::optional<ByteRuns> runs_of(const Part& part, const MutableArrayView& v) const {
        const DType* memory = array_to_bytes.codec->memory_dtype();
        if (memory == nullptr) return std::nullopt;
        return ByteRuns::of(*memory, innermost().shape, part.region, v, part.steps);
    }

    /// Decodes a part of the array→bytes codec's input, block by block, straight into `out`. Returns false if the
    /// codecs, the bytes or the memory do not permit that.
    [[nodiscard]] bool decode_blocks(const ByteSource& in, const Part& part, const MutableArrayView& out,
                                     CodecScratch& scratch) const {
        const auto runs = bytes_to_bytes.size() == 1 ? runs_of(part, out) : std::nullopt;
        return runs && decode_blocks(in, *runs, scratch);
    }
    [[nodiscard]] bool decode_blocks(const ByteSource& in, const ByteRuns& runs, CodecScratch& scratch) const {
        if (bytes_to_bytes.size() != 1) return false;
        const auto& stage = bytes_to_bytes.front();
        return at_stage(stage, [&] { return stage.codec->decode_runs(in, sizes.front(), runs, scratch); });
    }

    /// Copies a part of uncompressed bytes, reading only what lies close to it. Returns false if the bytes are
    /// compressed or their number is wrong.
    [[nodiscard]] bool copy_part(const ByteSource& in, const Part& part, const MutableArrayView& out,
                                 CodecScratch& scratch) const {
        const DType* memory = array_to_bytes.codec->memory_dtype();
        const Region& region = part.region;
        if (!bytes_to_bytes.empty() || memory == nullptr || in.size() != sizes.front() || region.empty()) return false;
        Strides strides = contiguous_strides(innermost().shape, memory->size());
        std::uint64_t first = 0;
        for (int d = 0; d < strides.rank(); ++d) {
            first += static_cast<std::uint64_t>(region.start[d] * strides[d]);
            if (!part.steps.empty()) strides[d] *= part.steps[d];
        }
        const int apart = in.mapped().empty() ? split(strides, region.extent, memory->size(), in.worth_skipping()) : 0;
        copy_boxes(in, first, {nullptr, *memory, region.extent, strides}, out, apart, scratch);
        return true;
    }

    /// The leading dimensions along which steps leave gaps of at least `gap` bytes between what lies within them.
    [[nodiscard]] static int split(const Strides& strides, const Shape& extent, std::int64_t size, std::uint64_t gap) {
        int apart = 0;
        for (int d = strides.rank() - 1; d >= 0; --d) {
            if (extent[d] == 1) continue;
            if (std::cmp_greater_equal(strides[d], size + static_cast<std::int64_t>(gap)))
                apart = std::max(apart, d + 1);
            size += (extent[d] - 1) * strides[d];
        }
        return apart;
    }

    /// Copies the box `there` (shape and steps in the packed bytes, where it begins at `first`); item by item along its
    /// first `apart` dimensions.
    static void copy_boxes(const ByteSource& in, std::uint64_t first, const ArrayView& there,
                           const MutableArrayView& out, int apart, CodecScratch& scratch) {
        if (apart == 0) return copy_box(in, first, there, out, scratch);
        const auto within = [](const Dims& dims) { return Dims(std::span(dims).subspan(1)); };
        const ArrayView inner(nullptr, there.dtype, within(there.shape), within(there.strides));
        MutableArrayView to{out.data, out.dtype, within(out.shape), within(out.strides), out.arena};
        for (std::int64_t i = 0; i < there.shape[0]; ++i) {
            copy_boxes(in, first + static_cast<std::uint64_t>(i * there.strides[0]), inner, to, apart - 1, scratch);
            to.data += out.strides[0];
        }
    }

    /// Reads from the first byte of the box to its last.
    static void copy_box(const ByteSource& in, std::uint64_t first, const ArrayView& there, const MutableArrayView& out,
                         CodecScratch& scratch) {
        std::int64_t size = there.dtype.size();
        for (int d = 0; d < there.shape.rank(); ++d) size += (there.shape[d] - 1) * there.strides[d];
        const auto length = static_cast<std::size_t>(size);
        if (in.mapped().empty() && out.dtype == there.dtype && there.contiguous() && out.contiguous()) {
            in.read(first, {out.data, length});
            return;
        }
        ByteSpan bytes = in.mapped();
        if (bytes.empty()) {
            scratch.encoded.reset(length);
            in.read(first, scratch.encoded.span());
            bytes = scratch.encoded;
        } else {
            bytes = bytes.subspan(first, length);
        }
        const auto runs = ByteRuns::of(there.dtype, there.shape, there.strides, out);
        if (runs && !runs->transpose(static_cast<std::size_t>(there.dtype.size()))) {
            copy_runs(bytes, *runs);
        } else {
            copy_elements({bytes.data(), there.dtype, there.shape, there.strides}, out);
        }
    }

    /// Decodes a part of the array→bytes codec's input without the rest of the chunk. Returns false if that is not
    /// possible. Requires a memory_dtype().
    [[nodiscard]] bool decode_part_alone(const ByteSource& in, const Part& part, const MutableArrayView& out,
                                         CodecScratch& scratch) const {
        if (copy_part(in, part, out, scratch)) return true;
        const auto runs = runs_of(part, out);
        const bool transposed = !runs || runs->transpose(static_cast<std::size_t>(out.dtype.size()));
        if (!transposed && decode_blocks(in, *runs, scratch)) return true;
        // Of most of a chunk all blocks are needed. Then packing the part first would be one more copy.
        if (2 * part.region.count() > element_count(innermost().shape)) return false;
        const DType& memory = *array_to_bytes.codec->memory_dtype();
        scratch.part.reset(static_cast<std::size_t>(byte_count(part.region.extent, memory.size())));
        const MutableArrayView packed = view_bytes(scratch.part.data(), memory, part.region.extent);
        if (!decode_blocks(in, part, packed, scratch)) return false;
        copy_elements(packed, out);
        return true;
    }

    /// A few elements, where each read is a request over the network. Returns false if there are many, or none is.
    [[nodiscard]] static bool read_together(const ByteSource& in, std::span<const ElementPlace> places,
                                            std::size_t size) {
        constexpr std::size_t few = 256;
        if (places.size() > few || !is_far(in)) return false;
        std::vector<ByteSource::Extent> extents;
        for (const ElementPlace& place : places) extents.push_back({place.from, place.from + size});
        in.expect(extents);
        for (const ElementPlace& place : places) in.read(place.from, {place.to, size});
        return true;
    }

    /// The single elements of uncompressed bytes; `sorted` if there are few. Returns false if the bytes are compressed
    /// or their number is wrong.
    [[nodiscard]] bool copy_elements_alone(const ByteSource& in, const ByteRuns& runs,
                                           std::span<const ElementPlace> places, bool sorted,
                                           CodecScratch& scratch) const {
        if (!bytes_to_bytes.empty() || in.size() != sizes.front()) return false;
        if (!in.mapped().empty()) {
            copy_runs(in.mapped(), runs);
            return true;
        }
        const std::size_t end = sorted ? places.back().from + runs.size() : static_cast<std::size_t>(sizes.front());
        if (sorted && runs.swapped() == 0 && read_together(in, places, runs.size())) return true;
        if (runs.swapped() != 0 || end / places.size() < in.worth_skipping()) {
            scratch.encoded.reset(end);
            in.read(0, scratch.encoded.span());
            copy_runs(scratch.encoded, runs);
        } else {
            for (const ElementPlace& place : places) in.read(place.from, {place.to, runs.size()});
        }
        return true;
    }

    /// All of the array→bytes codec's input, packed in scratch.part. Requires a memory_dtype().
    [[nodiscard]] ArrayView decode_packed(ByteSpan in, CodecScratch& scratch) const {
        scratch.part.reset(static_cast<std::size_t>(sizes.front()));
        const MutableArrayView all =
            view_bytes(scratch.part.data(), *array_to_bytes.codec->memory_dtype(), innermost().shape);
        decode_array(in, all, scratch);
        return all;
    }

    void decode_array(ByteSpan in, const MutableArrayView& out, CodecScratch& scratch) const {
        if (bytes_to_bytes.empty()) {
            at_stage(array_to_bytes, [&] { array_to_bytes.codec->decode(in, out); });
            return;
        }
        if (decode_blocks(SpanSource(in, "the chunk"), {Region::whole(out.shape), {}}, out, scratch)) return;
        if (is_memory_of(out)) {
            decode_bytes(in, {out.data, static_cast<std::size_t>(sizes.front())}, scratch);
            return;
        }
        if (array_to_bytes.codec->encoded_size()) {
            scratch.decoded.reset(static_cast<std::size_t>(sizes.front()));
            decode_bytes(in, scratch.decoded.span(), scratch);
        } else {
            const Stage<BytesToBytesCodec>& inner = bytes_to_bytes.front();
            const ByteSpan bytes = decode_outer(in, scratch);
            decode_unsized(inner, bytes, scratch.decoded, sizes.front());
        }
        at_stage(array_to_bytes, [&] { array_to_bytes.codec->decode_owned(scratch.decoded, out); });
    }
};

CodecPipeline::CodecPipeline(ChunkSpec chunk, std::span<const CodecConfig> codecs) : state_(std::make_unique<State>()) {
    state_->chunk = std::move(chunk);
    for (const CodecConfig& config : codecs) state_->add(config);
    if (!state_->array_to_bytes.codec) {
        throw invalid_argument("the codecs lack one that turns the array into bytes, such as \"bytes\"");
    }
}

CodecPipeline::CodecPipeline(CodecPipeline&&) noexcept = default;
CodecPipeline& CodecPipeline::operator=(CodecPipeline&&) noexcept = default;
CodecPipeline::~CodecPipeline() = default;

const ChunkSpec& CodecPipeline::chunk() const {
    return state_->chunk;
}

void CodecPipeline::require_encoder() const {
    if (const auto& error = state_->encoder_error) {
        throw Error(error->code(), fmt::format("{}; such chunks are read, but none is written: a copy can have another "
                                               "codec",
                                               error->what()));
    }
    if (const ShardCodec* shards = state_->array_to_bytes.codec->shard()) shards->inner().require_encoder();
}

ByteSpan CodecPipeline::encode(const ArrayView& chunk, CodecScratch& scratch) const {
    const State& s = *state_;
    if (s.encoder_error) require_encoder();
    NDArray array;
    const ArrayView in = s.filtered(chunk, array);
    const std::size_t stages = s.bytes_to_bytes.size();
    if (stages == 0) {
        const bool ours = array.bytes().data() == in.data;
        if (!ours && s.is_memory_of(in)) return {in.data, static_cast<std::size_t>(s.sizes.front())};
        at_stage(s.array_to_bytes, [&] { s.array_to_bytes.codec->encode(in, scratch.encoded); });
        return scratch.encoded;
    }
    // `bytes` lies in one of two buffers, or in the caller's memory; the next stage writes into the free one. Callers
    // may keep the chunk itself in scratch.decoded, so that is overwritten only after the chunk was consumed.
    Buffer* free = &scratch.other;
    ByteSpan bytes{in.data, static_cast<std::size_t>(s.sizes.front())};
    if (!s.is_memory_of(in)) {
        at_stage(s.array_to_bytes, [&] { s.array_to_bytes.codec->encode(in, *free); });
        bytes = *std::exchange(free, &scratch.decoded);
    }
    for (std::size_t i = 0; i < stages; ++i) {
        Buffer& to = i + 1 == stages ? scratch.encoded : *free;
        at_stage(s.bytes_to_bytes[i], [&] { s.bytes_to_bytes[i].codec->encode(bytes, to); });
        bytes = to;
        free = free == &scratch.other ? &scratch.decoded : &scratch.other;
    }
    return bytes;
}

Buffer CodecPipeline::encoded(const ArrayView& chunk) const {
    CodecScratch scratch;
    const ByteSpan bytes = encode(chunk, scratch);
    return bytes.data() == scratch.encoded.data() ? std::move(scratch.encoded) : Buffer(bytes);
}

std::optional<ByteSpan> CodecPipeline::encode_part(ByteSpan encoded, const Region& region, const ArrayView& elements,
                                                   CodecScratch& scratch) const {
    const State& s = *state_;
    if (s.encoder_error) require_encoder();
    require_inside(region, chunk().shape);
    const auto axes = s.all_axes();
    if (!axes || s.bytes_to_bytes.size() != 1) return std::nullopt;
    const ArrayView turned = axes->empty() ? elements : elements.transposed(*axes);
    const MutableArrayView from{const_cast<std::byte*>(turned.data), turned.dtype, turned.shape, turned.strides,
                                nullptr};  // only read
    const auto runs = s.runs_of({{permuted(region.start, *axes), permuted(region.extent, *axes)}, {}}, from);
    if (!runs || runs->swapped() != 0) return std::nullopt;
    const auto& stage = s.bytes_to_bytes.front();
    const bool done = at_stage(
        stage, [&] { return stage.codec->encode_runs(encoded, s.sizes.front(), *runs, scratch, scratch.encoded); });
    return done ? std::optional<ByteSpan>(scratch.encoded) : std::nullopt;
}

void CodecPipeline::decode(ByteSpan encoded, const MutableArrayView& out, CodecScratch& scratch) const {
    state_->decode_from(0, encoded, out, scratch);
}

std::uint64_t CodecPipeline::trailing_bytes(ByteSpan encoded) const {
    const auto& codecs = state_->bytes_to_bytes;
    if (codecs.empty()) return 0;
    return at_stage(codecs.back(),
                    [&] { return codecs.back().codec->trailing_bytes(encoded, state_->sizes[codecs.size() - 1]); });
}

namespace {

void require_limit(const CodecPipeline& pipeline, const ByteSource& encoded, std::uint64_t most) {
    if (encoded.size() <= pipeline.encoded_limit()) return;
    throw corrupt("{} bytes are far more than a chunk encodes to, at most {}", encoded.size(), most);
}

/// Before a chunk of `decoded` bytes is decoded into scratch.part.
void require_part_memory(std::uint64_t decoded, const ByteSource& encoded, const CodecScratch& scratch) {
    if (decoded <= scratch.part.capacity()) return;
    in_context([&] { return fmt::format("it decodes to {}", memory_text(decoded)); },
               [&] { require_memory(decoded + encoded.size()); });
}

/// From a shard, a part with gaps is read as the region that holds it.
void decode_part_of_shard(const ShardCodec& shards, const ByteSource& encoded, const Part& part,
                          const MutableArrayView& out, CodecScratch& scratch) {
    if (part.steps.empty()) return shards.decode_part(encoded, part.region, out, scratch);
    const Region bounds = part.bounds();
    NDArray all(shards.chunk().dtype, bounds.extent);
    shards.decode_part(encoded, bounds, all, scratch);
    const Part in_bounds{{Index::filled(bounds.rank(), 0), part.region.extent}, part.steps};
    copy_elements(in_bounds.of(all), out);
}

ByteSpan all_bytes(const ByteSource& encoded, CodecScratch& scratch) {
    if (!encoded.mapped().empty()) return encoded.mapped();
    scratch.encoded.reset(static_cast<std::size_t>(encoded.size()));
    encoded.read(0, scratch.encoded.span());
    return scratch.encoded;
}

}  // namespace

std::optional<Strides> CodecPipeline::element_steps(const DType& dtype) const {
    const State& s = *state_;
    const DType* memory = s.array_to_bytes.codec->memory_dtype();
    const auto axes = s.all_axes();
    if (memory == nullptr || !axes || !ByteRuns::of(*memory, {}, dtype)) return std::nullopt;
    const Strides packed = contiguous_strides(s.innermost().shape, memory->size());
    Strides steps = packed;
    for (int d = 0; d < axes->rank(); ++d) steps[static_cast<int>((*axes)[d])] = packed[d];
    return steps;
}

std::optional<ByteSource::Extent> CodecPipeline::first_read(std::uint64_t begin, std::uint64_t end) const {
    constexpr std::uint64_t front = 4096;
    constexpr std::uint64_t longest = std::uint64_t{1} << 20;
    const State& s = *state_;
    if (s.array_to_bytes.codec->memory_dtype() == nullptr || !s.all_axes()) return std::nullopt;
    if (s.in_blocks) return ByteSource::Extent{0, front};
    if (!s.bytes_to_bytes.empty()) return std::nullopt;
    return ByteSource::Extent{begin, end - begin > longest ? std::min(end, begin + front) : end};
}

std::optional<ByteSource::Extent> CodecPipeline::first_read(const Region& part) const {
    const State& s = *state_;
    const DType* memory = s.array_to_bytes.codec->memory_dtype();
    const auto steps = memory == nullptr ? std::nullopt : element_steps(*memory);
    if (!steps || part.empty()) return std::nullopt;
    std::int64_t begin = 0;
    std::int64_t end = memory->size();
    for (int d = 0; d < steps->rank(); ++d) {
        begin += part.start[d] * (*steps)[d];
        end += (part.start[d] + part.extent[d] - 1) * (*steps)[d];
    }
    return first_read(static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end));
}

std::optional<ArrayView> CodecPipeline::elements_in(ByteSpan encoded) const {
    const State& s = *state_;
    const DType* memory = s.array_to_bytes.codec->memory_dtype();
    if (memory == nullptr || !s.bytes_to_bytes.empty() || encoded.size() != s.sizes.front()) return std::nullopt;
    const auto steps = element_steps(*memory);
    return steps ? std::optional(ArrayView{encoded.data(), *memory, s.chunk.shape, *steps}) : std::nullopt;
}

void CodecPipeline::decode_elements(const ByteSource& encoded, std::span<ElementPlace> places, const DType& dtype,
                                    CodecScratch& scratch) const {
    const State& s = *state_;
    require_limit(*this, encoded, s.sizes.back());
    // Many elements touch every block. Then decoding all of them takes less time than sorting the elements.
    const bool few = places.size() < s.sizes.front() / sorted_alone;
    if (few) std::ranges::sort(places, {}, &ElementPlace::from);
    const DType* memory = s.array_to_bytes.codec->memory_dtype();
    const auto runs = memory == nullptr ? std::nullopt : ByteRuns::of(*memory, places, dtype);
    if (!runs) throw std::logic_error("decode_elements without element_steps");
    if (places.empty() || s.copy_elements_alone(encoded, *runs, places, few, scratch)) return;
    if (few && s.bytes_to_bytes.size() == 1) {
        const auto& stage = s.bytes_to_bytes.front();
        if (at_stage(stage, [&] { return stage.codec->decode_runs(encoded, s.sizes.front(), *runs, scratch); })) return;
    }
    require_part_memory(s.sizes.front(), encoded, scratch);
    (void)s.decode_packed(all_bytes(encoded, scratch), scratch);
    copy_runs(scratch.part, *runs);
}

namespace {

/// Decodes a whole chunk, whose elements are no plain memory and may need an arena and all of scratch. Copies the part.
void decode_and_copy(const CodecPipeline& pipeline, ByteSpan encoded, const Part& part, const MutableArrayView& out,
                     CodecScratch& scratch) {
    const DType& dtype = pipeline.chunk().dtype;
    const Shape& shape = pipeline.chunk().shape;
    if (dtype.is_variable() || dtype.kind() == Kind::object) {
        NDArray all(dtype, shape);
        pipeline.decode(encoded, all, scratch);
        return copy_elements(part.of(all), out);
    }
    scratch.part.reset(static_cast<std::size_t>(byte_count(shape, dtype.size())));
    const MutableArrayView all = view_bytes(scratch.part.data(), dtype, shape);
    pipeline.decode(encoded, all, scratch);
    copy_elements(part.of(all), out);
}

}  // namespace

void CodecPipeline::decode_part(const ByteSource& encoded, const Region& region, const MutableArrayView& out,
                                CodecScratch& scratch, const Dims& steps) const {
    const State& s = *state_;
    const Part part{region, steps};
    require_inside(part.bounds(), chunk().shape);
    if (const ShardCodec* shards = shard()) {
        return at_stage(s.array_to_bytes, [&] { decode_part_of_shard(*shards, encoded, part, out, scratch); });
    }
    require_limit(*this, encoded, s.sizes.back());
    const auto axes = s.all_axes();
    const bool plain = axes && s.array_to_bytes.codec->memory_dtype() != nullptr;
    const bool whole = region.extent == chunk().shape;
    // Part and output as seen by the array→bytes codec.
    const Part turned{{permuted(region.start, plain ? *axes : Dims()), permuted(region.extent, plain ? *axes : Dims())},
                      steps.empty() || !plain ? steps : permuted(steps, *axes)};
    const MutableArrayView target = plain && !axes->empty() ? out.transposed(*axes) : out;
    if (plain && !whole && s.decode_part_alone(encoded, turned, target, scratch)) return;

    // A part needs the whole chunk decoded. Lack of memory for that is reported before any of it is allocated.
    const auto decoded = static_cast<std::uint64_t>(byte_count(chunk().shape, chunk().dtype.size()));
    if (!whole) require_part_memory(decoded, encoded, scratch);
    const ByteSpan bytes = all_bytes(encoded, scratch);
    if (whole) {
        decode(bytes, out, scratch);
    } else if (plain) {
        copy_elements(turned.of(s.decode_packed(bytes, scratch)), target);
    } else {
        decode_and_copy(*this, bytes, part, out, scratch);
    }
}

const ShardCodec* CodecPipeline::shard() const {
    const State& s = *state_;
    return s.array_to_array.empty() && s.bytes_to_bytes.empty() ? s.array_to_bytes.codec->shard() : nullptr;
}

std::optional<std::uint64_t> CodecPipeline::encoded_size() const {
    const State& s = *state_;
    const bool fixed = s.array_to_bytes.codec->encoded_size().has_value() &&
                       std::ranges::all_of(s.bytes_to_bytes, [](const auto& b) { return b.codec->fixed_size(); });
    return fixed ? std::optional(s.sizes.back()) : std::nullopt;
}

std::optional<std::uint64_t> CodecPipeline::encoded_bound() const {
    return state_->bounded ? std::optional(state_->sizes.back()) : std::nullopt;
}

std::uint64_t CodecPipeline::encoded_limit() const {
    return state_->bounded ? 2 * state_->sizes.back() + (std::uint64_t{1} << 20) : state_->sizes.back();
}

std::uint64_t CodecPipeline::scratch_bytes() const {
    const State& s = *state_;
    if (shard() != nullptr) return shard()->scratch_bytes();
    const auto array_bytes = [](const ChunkSpec& spec) {
        return static_cast<std::uint64_t>(byte_count(spec.shape, spec.dtype.size()));
    };
    // Estimate: the content of variable-length elements takes about as much memory as their slots.
    const std::uint64_t packed = s.bounded ? s.sizes.front() : 2 * array_bytes(s.innermost());
    const std::uint64_t encoded = s.bounded ? s.sizes.back() : packed;
    std::uint64_t total = packed + encoded;
    if (s.bytes_to_bytes.size() > 1) total += encoded;
    if (s.array_to_bytes.codec->memory_dtype() == nullptr) total += array_bytes(s.chunk);
    for (const auto& stage : s.array_to_array) total += array_bytes(s.chunk) + array_bytes(stage.codec->encoded());
    return total + s.bytes_to_bytes.size() * std::min(working_bytes, 3 * packed);
}

}  // namespace tessera
