// Which bytes are passed on
// -------------------------
// In format 2, the chunks that ChunkBytes can read as chunks of format 2: those of zmeta, v1, v2, and of v3 with codecs
// that numcodecs has. In format 3, those of v3, with whole shards, and those of other formats if they are the same
// bytes in v3. Everything else is decoded and sent uncompressed, as a copy with the codec "none" would be.
#include <tessera/zarr_array.h>

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/array_plan.h>
#include <tessera/convert.h>
#include <tessera/coordinates.h>
#include <tessera/copy_elements.h>
#include <tessera/dialect.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "packed_source.h"

namespace tessera {

namespace {

/// Plain files are cut into contiguous pieces of at most so many bytes.
constexpr std::int64_t piece_bytes = 8 << 20;

/// Codecs of numcodecs 0.11, which every reader of format 2 has, or something like it.
constexpr std::array<std::string_view, 19> known_codecs{
    "adler32", "astype",           "bitround",  "blosc", "bz2",  "categorize", "crc32",
    "delta",   "fixedscaleoffset", "gzip",      "lz4",   "lzma", "packbits",   "quantize",
    "shuffle", "vlen-bytes",       "vlen-utf8", "zlib",  "zstd"};

bool is_known_codec(const Value& codec) {
    return codec.is_null() || std::ranges::find(known_codecs, codec.at("id").as_string()) != known_codecs.end();
}

bool are_known(const Value& zarray) {
    const Value& filters = zarray.at("filters");
    return is_known_codec(zarray.at("compressor")) &&
           (filters.is_null() || std::ranges::all_of(filters.as_array(), is_known_codec));
}

/// Whether zstd adds a checksum is in each frame, too, and older programs refuse to read it from the configuration.
void forget_checksum(Value& zarray) {
    Value compressor = zarray.at("compressor");
    if (compressor.is_null() || compressor.at("id") != Value("zstd")) return;
    compressor.erase("checksum");
    zarray.set("compressor", std::move(compressor));
}

/// zarr-python 2 makes a complex fill by arithmetic: beside an infinity the other part becomes NaN.
bool is_odd_complex(const ArrayMetadata& m) {
    if (m.dtype.kind() != Kind::complex || !m.fill.bytes) return false;
    const Value parts = element_to_value(m.dtype, m.fill.bytes->data());
    return std::ranges::any_of(parts.as_array(), [](const Value& v) { return !std::isfinite(v.as_double()); });
}

/// Whether JavaScript reads another integer from the document.
bool is_beyond_double(const Value& fill) {
    constexpr double exact = 9007199254740992.0;
    return fill.is_integer() && std::abs(fill.as_double()) >= exact;
}

/// Contiguous pieces of a plain file: whole along its fastest dimensions.
Shape pieces(const ArrayInfo& info) {
    Shape chunks = info.shape;
    std::int64_t left = std::max<std::int64_t>(piece_bytes / std::max<std::int64_t>(info.dtype.size(), 1), 1);
    bool cut = false;
    for (int n = 0; n < chunks.rank(); ++n) {
        const int axis = info.order == Order::F ? n : chunks.rank() - 1 - n;
        chunks[axis] = cut ? 1 : std::max<std::int64_t>(std::min(info.shape[axis], left), 1);
        left = std::max<std::int64_t>(left / chunks[axis], 1);
        cut = cut || chunks[axis] < info.shape[axis];
    }
    return chunks;
}

/// Whether chunks are blosc frames, whose own sizes decoders trust.
bool is_blosc(const std::vector<CodecConfig>& codecs) {
    return !codecs.empty() && (codecs.back().name == "blosc" || codecs.back().name == "numcodecs.blosc");
}

/// Whether zero is only what absent elements read as, in a format where no fill marks missing ones.
bool zero_marks_nothing(const Array& array, const Value& attributes) {
    const ArrayMetadata m = array.metadata();
    return !array.dialect().fill_is_missing && attributes.find(dimensions_attribute) != nullptr && is_number(m.dtype) &&
           m.fill.bytes && *m.fill.bytes == zero_element(m.dtype) && !is_below_multiscales(array);
}

/// Of a view without codecs, in the chunks of `array` or, without one, in pieces of a file. `packed`: of its elements.
ArrayWishes wishes_for(const Array* array, const ArrayInfo& info, bool packed, ZarrFormat format) {
    ArrayWishes wishes;
    wishes.format = format == ZarrFormat::v2 ? "v2" : "v3";
    wishes.codec = "none";
    wishes.chunks = array != nullptr ? info.chunks : pieces(info);
    if (!info.shards.empty()) wishes.shards = Shape();
    if (array == nullptr) wishes.order = info.order;
    // A file has no fill. With null, xarray takes no value for missing. v3 has no null.
    if ((array == nullptr || packed) && format == ZarrFormat::v2) wishes.fill = Value(nullptr);
    if (packed && array != nullptr && !array->metadata().dimension_names.empty()) {
        wishes.dimension_names = array->metadata().dimension_names;
    }
    return wishes;
}

bool ends_with_checksum(const Array& array) {
    const ArrayMetadata metadata = array.metadata();
    return !metadata.codecs.empty() && metadata.codecs.back().name == "crc32c";
}

}  // namespace

ZarrArray::ZarrArray(const Array& array, ZarrFormat format, bool raw_bfloat16) : array_(array), values_(array) {
    plan(format, raw_bfloat16);
}

ZarrArray::ZarrArray(std::shared_ptr<const ArraySource> source, ZarrFormat format, bool raw_bfloat16)
    : given_(std::move(source)) {
    plan(format, raw_bfloat16);
}
ZarrArray::~ZarrArray() = default;

void ZarrArray::plan(ZarrFormat format, bool raw_bfloat16) {
    const auto context = [&] {
        const std::string& name = array_ ? array_->name() : given_->name();
        return fmt::format("{}: Zarr {} cannot show it", name, format == ZarrFormat::v2 ? "v2" : "v3");
    };
    in_context(context, [&] {
        if (array_ && format == ZarrFormat::v2) pass_chunks();
        const bool passed = how_ == How::chunk_bytes || (format == ZarrFormat::v3 && pass_values());
        if (!passed) plan_decoded(format, raw_bfloat16);
        grid_.emplace(metadata_.shape, metadata_.chunks);
        if (how_ != How::chunk_bytes) {
            pipeline_.emplace(ChunkSpec{metadata_.dtype, metadata_.chunks, metadata_.fill.bytes}, metadata_.codecs);
        }
    });
}

/// Sets the documents. The attributes lack Tessera's mark of a null fill. The fill that stands for null becomes null
/// again in v2, because xarray would take it for missing values.
void ZarrArray::set_documents(ZarrFormat format, const std::optional<Value>& attributes) {
    attributes_ = attributes.value_or(Value::object());
    const Value* const mark = attributes_.find(null_fill_attribute);
    const bool null_fill =
        (mark != nullptr && *mark == Value("null")) || (array_ && zero_marks_nothing(*array_, attributes_));
    attributes_.erase(null_fill_attribute);
    const Value* const dimensions = attributes_.find(dimensions_attribute);
    if (dimensions != nullptr && dimensions->is_array() &&
        std::ranges::any_of(dimensions->as_array(), [](const Value& v) { return v.is_null(); })) {
        attributes_.erase(dimensions_attribute);
    }
    if (format == ZarrFormat::v2) {
        document_.set("dimension_separator", ".");
        if (null_fill) document_.set("fill_value", nullptr);
    } else {
        document_.set("attributes", attributes_);
    }
    // Without a fill, readers leave memory for absent chunks uninitialised.
    const Value& fill = document_.at("fill_value");
    if (fill.is_null() || is_beyond_double(fill)) may_be_absent_ = false;
}

void ZarrArray::pass_chunks() {
    const Array& array = *array_;
    ChunkBytes chunks(array);
    if (!chunks.zarray() || !are_known(*chunks.zarray())) return;
    const ArrayMetadata m = array.metadata();
    metadata_ = m;
    metadata_.chunks = chunk_layout(m).chunks;
    metadata_.keys = dialect_named("v2").default_keys();
    document_ = *chunks.zarray();
    forget_checksum(document_);
    always_ = is_odd_complex(m);
    may_be_absent_ = chunks.may_be_absent();
    const Conversion there = convert_metadata(m, array.attributes().stored(), array.dialect(), dialect_named("v2"));
    // The conversion knows a fill that only stands for null.
    if (!there.metadata.fill.bytes && there.metadata.fill.error.empty()) document_.set("fill_value", nullptr);
    set_documents(ZarrFormat::v2, there.attributes);
    chunks_.emplace(std::move(chunks));
    how_ = How::chunk_bytes;
}

bool ZarrArray::pass_values() {
    if (!array_) return false;
    const Array& array = *array_;
    const Dialect& v3 = dialect_named("v3");
    ArrayMetadata m = array.metadata();
    if (!m.edges.empty()) return false;  // readers of the view do not know such grids
    std::optional<Value> attributes = array.attributes().stored();
    may_be_absent_ = values_->may_be_absent();
    if (&array.dialect() != &v3) {
        try {
            Conversion there = convert_metadata(m, attributes, array.dialect(), v3);
            there.metadata.keys = v3.default_keys();
            there.metadata.unknown = Value::object();
            ArrayMetadata same_fill = there.metadata;  // may_be_absent covers the fill
            same_fill.fill = m.fill;
            if (why_recode(m, same_fill)) return false;
            v3.require_expressible(there.metadata);
            m = std::move(there.metadata);
            attributes = std::move(there.attributes);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::invalid_argument) throw;
            return false;
        }
    }
    metadata_ = std::move(m);
    document_ = v3.document(metadata_);
    set_documents(ZarrFormat::v3, attributes);
    how_ = How::values;
    return true;
}

void ZarrArray::plan_decoded(ZarrFormat format, bool raw_bfloat16) {
    const ArraySource& source = array_ ? static_cast<const ArraySource&>(*array_) : *given_;
    const ArrayInfo info = source.info();
    packed_ = packed_source(source, raw_bfloat16 && format == ZarrFormat::v2);
    source_ = packed_ ? packed_.get() : &source;
    const bool without_fill = !array_ || packed_;
    ArrayWishes wishes = wishes_for(array_ ? &*array_ : nullptr, info, packed_ != nullptr, format);
    PlannedArray plan;
    const auto planned = [&] {
        return in_context([&] { return source_->name(); }, [&] { return plan_array(*source_, wishes); });
    };
    try {
        plan = planned();
    } catch (const Error& e) {
        if (without_fill || e.code() != ErrorCode::unsupported) throw;
        wishes.fill = Value(nullptr);  // all chunks are sent, so that nobody needs a fill
        always_ = true;
        plan = planned();
    }
    metadata_ = std::move(plan.metadata);
    metadata_.keys = plan.dialect->default_keys();
    always_ = always_ || is_odd_complex(metadata_);
    // Where chunks differ in length, none of the view's lies in one of the array's.
    const bool one_shape = array_ && array_->metadata().edges.empty();
    may_be_absent_ = one_shape && !packed_ && values_->may_be_absent() && metadata_.fill.bytes;
    document_ = plan.dialect->document(metadata_);
    set_documents(format, plan.attributes);
    how_ = How::decoded;
}

std::optional<Index> ZarrArray::index(std::string_view key) const {
    const auto index = metadata_.keys.parse(key, metadata_.shape.rank());
    if (!index || metadata_.keys.key(*index) != key) return {};
    for (int d = 0; d < index->rank(); ++d) {
        if ((*index)[d] < 0 || (*index)[d] >= grid_->grid()[d]) return {};
    }
    return index;
}

std::optional<ZarrValue> ZarrArray::read(const Index& index, const IoOptions& io) const {
    const bool omitted = may_be_absent_ && !always_;
    if (how_ == How::chunk_bytes) {
        ZarrValue value;
        if (chunks_->read(index, value.bytes)) return value;
        if (omitted) return {};
        return ZarrValue{chunks_->absent()};
    }
    if (how_ == How::values) {
        if (const auto opened = values_->open(index)) return stored_value(*opened);
        if (omitted) return {};
        return ZarrValue{full_of_fill()};
    }
    if (omitted && !is_stored(index)) return {};
    return ZarrValue{decoded(index, io)};
}

bool ZarrArray::contains(const Index& index) const {
    if (how_ == How::chunk_bytes && may_be_absent_ && !always_ && !array_->shards().empty()) {
        Buffer bytes;  // a stored shard may lack the chunk
        return chunks_->read(index, bytes);
    }
    return !may_be_absent_ || always_ || is_stored(index);
}

std::optional<std::uint64_t> ZarrArray::known_size(const Index& index) const {
    if (how_ == How::decoded) return pipeline_->encoded_size();
    // Out of shards, and without its checksum, a chunk has another size than the value.
    const bool whole = how_ == How::values || (array_->shards().empty() && !ends_with_checksum(*array_));
    const auto stamp = whole ? values_->stamp(index) : std::nullopt;
    return stamp ? std::optional(stamp->size) : std::nullopt;
}

bool ZarrArray::is_stored(const Index& index) const {
    if (!values_) return true;
    Index outer = index;
    const Shape& units = values_->grid().chunks();
    for (int d = 0; d < outer.rank(); ++d) outer[d] = index[d] * grid_->chunks()[d] / units[d];
    return values_->stamp(outer).has_value();
}

ZarrValue ZarrArray::stored_value(const StoredValues::Opened& opened) const {
    const std::uint64_t size = opened.bytes->size();
    return in_context([&] { return opened.bytes->name(); },
                      [&]() -> ZarrValue {
                          if (size == 0) throw corrupt("no bytes");
                          if (pipeline_->shard() != nullptr) return {{}, opened.bytes};
                          if (size > values_->encoded_limit()) {
                              throw corrupt("{} bytes are far more than a chunk encodes to", size);
                          }
                          Buffer bytes = read_all(*opened.bytes);
                          if (is_blosc(metadata_.codecs)) static_cast<void>(pipeline_->trailing_bytes(bytes));
                          return {std::move(bytes)};
                      });
}

Buffer ZarrArray::decoded(const Index& index, const IoOptions& io) const {
    NDArray elements(metadata_.dtype, metadata_.chunks);
    const Region inside = grid_->chunk_region(index);
    if (inside.extent != metadata_.chunks) {
        const ElementBytes fill = metadata_.dtype.is_variable() ? ElementBytes() : fill_element(metadata_);
        if (!metadata_.dtype.is_variable()) fill_elements(elements.view(), fill.data());
    }
    const Region part{Index::filled(inside.start.rank(), 0), inside.extent};
    source_->read_into(inside, elements.view().part(part), io);
    return pipeline_->encoded(elements.view());
}

Buffer ZarrArray::full_of_fill() const {
    NDArray elements(metadata_.dtype, metadata_.chunks);
    const ElementBytes fill = fill_element(metadata_);
    const VariableSlot slot{reinterpret_cast<const char*>(fill.data()), fill.size()};
    fill_elements(elements.view(),
                  metadata_.dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot) : fill.data());
    return pipeline_->encoded(elements.view());
}

}  // namespace tessera
