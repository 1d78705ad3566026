// An array of any kind as a Zarr array of format 2 or 3: its documents and chunks.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/chunk_bytes.h>
#include <tessera/metadata.h>
#include <tessera/pipeline.h>
#include <tessera/value.h>

#include "http.h"
#include "served.h"

namespace tessera::serve {

enum class ZarrFormat : std::uint8_t { v2, v3 };

/// Thread rule: immutable.
class ZarrArray {
public:
    /// Throws unsupported for what the format cannot say.
    ZarrArray(const ServedNode& node, ZarrFormat format);
    ~ZarrArray();
    ZarrArray(const ZarrArray&) = delete;
    ZarrArray& operator=(const ZarrArray&) = delete;

    /// ".zarray" or "zarr.json"; in format 3 with the attributes.
    [[nodiscard]] const Value& document() const { return document_; }
    /// ".zattrs", with the names of dimensions as xarray looks for them.
    [[nodiscard]] const Value& attributes() const { return attributes_; }
    /// The chunk that a key names; nullopt if it names none.
    [[nodiscard]] std::optional<Index> index(std::string_view key) const;
    /// The chunk's bytes. Status 404 where it is absent and reads as the fill.
    [[nodiscard]] HttpResponse chunk(const ServedNode& node, const Index& index, const HttpRequest& request,
                                     const IoOptions& io) const;
    /// Whether stored bytes are passed on as they are.
    [[nodiscard]] bool passes_stored() const { return how_ != How::decoded; }

private:
    enum class How : std::uint8_t {
        chunk_bytes,  ///< chunks as they are stored, taken out of shards, without checksums
        values,       ///< values as they are stored, whole shards
        decoded       ///< elements
    };
    struct Bytes;  ///< of a chunk: none if it is absent

    void pass_chunks(const ServedNode& node);
    [[nodiscard]] bool pass_values(const ServedNode& node);
    void plan_decoded(const ServedNode& node, ZarrFormat format);
    void set_documents(ZarrFormat format, const std::optional<Value>& attributes);

    [[nodiscard]] HttpBody read(const ServedNode& node, const Index& index, const IoOptions& io, bool& present) const;
    [[nodiscard]] HttpBody stored_value(const StoredValues::Opened& opened, const StoredValues& values) const;
    [[nodiscard]] HttpBody decoded(const Index& index, const IoOptions& io) const;
    [[nodiscard]] HttpBody full_of_fill() const;

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
    std::string version_;
};

/// The formats of one node, made on demand. Thread rule: any thread.
class ZarrArrays {
public:
    /// Throws unsupported for what the format cannot say.
    [[nodiscard]] const ZarrArray& in(const ServedNode& node, ZarrFormat format);

private:
    std::mutex mutex_;
    std::unique_ptr<ZarrArray> v2_;
    std::unique_ptr<ZarrArray> v3_;
};

}  // namespace tessera::serve
