// ZarrArray: an array of any kind as a Zarr array of format 2 or 3, its documents and chunks, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/buffer.h>
#include <tessera/chunk_bytes.h>
#include <tessera/dialect.h>
#include <tessera/pipeline.h>
#include <tessera/stored_values.h>
#include <tessera/value.h>

namespace tessera {

enum class ZarrFormat : std::uint8_t { v2, v3 };

/// The bytes of one value: in memory, or a source that is larger than a chunk (a shard).
struct ZarrValue {
    Buffer bytes;
    std::shared_ptr<const ByteSource> source = {};  ///< takes the place of `bytes`, unless null

    [[nodiscard]] std::uint64_t size() const { return source ? source->size() : bytes.size(); }
};

/// Thread rule: immutable; any thread.
class ZarrArray {
public:
    /// Of an array as it is now. `raw_bfloat16`: shows bfloat16 as two bytes where the format lacks it, for readers
    /// that know what they are. Throws unsupported for what the format cannot say.
    ZarrArray(const Array& array, ZarrFormat format, bool raw_bfloat16 = false);
    /// Of any other source, such as an array file.
    ZarrArray(std::shared_ptr<const ArraySource> source, ZarrFormat format, bool raw_bfloat16 = false);
    ~ZarrArray();
    ZarrArray(const ZarrArray&) = delete;
    ZarrArray& operator=(const ZarrArray&) = delete;

    /// ".zarray" or "zarr.json"; in format 3 with the attributes.
    [[nodiscard]] const Value& document() const { return document_; }
    /// ".zattrs", with the names of dimensions as xarray looks for them.
    [[nodiscard]] const Value& attributes() const { return attributes_; }
    /// The grid of the values: whole shards where passes_values(), else chunks.
    [[nodiscard]] const ChunkGrid& grid() const { return *grid_; }
    /// How chunks are named.
    [[nodiscard]] const KeyScheme& keys() const { return metadata_.keys; }
    /// The chunk that a key names; nullopt if it names none.
    [[nodiscard]] std::optional<Index> index(std::string_view key) const;
    /// The chunk's value; nullopt where it is absent and reads as the fill. Throws as Array::read and StoredValues.
    [[nodiscard]] std::optional<ZarrValue> read(const Index& index, const IoOptions& io = {}) const;
    /// Whether read() would find a value. Decodes nothing.
    [[nodiscard]] bool contains(const Index& index) const;
    /// The size of a value that read() would find, where that can be told without reading it.
    [[nodiscard]] std::optional<std::uint64_t> known_size(const Index& index) const;
    /// Whether these are whole values, with shards whole shards.
    [[nodiscard]] bool passes_values() const { return how_ == How::values; }

private:
    enum class How : std::uint8_t {
        chunk_bytes,  ///< chunks as they are stored, taken out of shards, without checksums
        values,       ///< values as they are stored, whole shards
        decoded       ///< elements
    };

    void plan(ZarrFormat format, bool raw_bfloat16);
    void pass_chunks();
    [[nodiscard]] bool pass_values();
    void plan_decoded(ZarrFormat format, bool raw_bfloat16);
    void set_documents(ZarrFormat format, const std::optional<Value>& attributes);

    [[nodiscard]] ZarrValue stored_value(const StoredValues::Opened& opened) const;
    [[nodiscard]] Buffer decoded(const Index& index, const IoOptions& io) const;
    [[nodiscard]] Buffer full_of_fill() const;
    /// Whether the chunk of an array is stored; true for other sources.
    [[nodiscard]] bool is_stored(const Index& index) const;

    std::shared_ptr<const ArraySource> given_;  ///< of anything but an array
    std::optional<Array> array_;
    std::optional<StoredValues> values_;  ///< of the array
    How how_ = How::decoded;
    ArrayMetadata metadata_;
    Value document_;
    Value attributes_;
    std::optional<ChunkGrid> grid_;
    std::optional<CodecPipeline> pipeline_;
    std::optional<ChunkBytes> chunks_;
    std::unique_ptr<ArraySource> packed_;  ///< the source without padding in its elements
    const ArraySource* source_ = nullptr;  ///< of How::decoded
    bool always_ = false;                  ///< absent chunks are sent too: readers would take them for something else
    bool may_be_absent_ = false;
};

}  // namespace tessera
