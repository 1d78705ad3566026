#include "file_chunks.h"

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/metadata.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "keys.h"
#include "read_only_store.h"

namespace tessera {

namespace {

Buffer bytes_of(const std::string& text) {
    return Buffer(std::as_bytes(std::span(text)));
}

/// One array's chunks in a file as a store for reading.
class FileChunks final : public ReadOnlyStore {
public:
    FileChunks(std::shared_ptr<const ByteSource> file, PackedArray array, std::string name)
        : file_(std::move(file)),
          array_(std::move(array)),
          name_(std::move(name)),
          grid_(array_.shape, array_.chunks),
          documents_{{".zarray", chunked_document(array_, array_.shape, array_.chunks).dump()},
                     {".zattrs", chunked_attributes(array_).dump()}} {
        std::ranges::sort(array_.stored, {}, &PackedArray::Chunk::number);
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        for (const auto& [name, text] : documents_) {
            if (name == key) return memory_source(bytes_of(text), join_key(name_, key));
        }
        const PackedArray::Chunk* const chunk = find(key);
        if (chunk == nullptr) return nullptr;
        return slice_source(file_, chunk->offset, chunk->size, join_key(name_, key));
    }
    [[nodiscard]] bool contains(std::string_view key) const override {
        return std::ranges::count(documents_, key, [](const auto& d) { return std::string_view(d.first); }) > 0 ||
               find(key) != nullptr;
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        Listing listing;
        for_each(
            prefix, [&](std::string_view name, const ValueSize& /*size*/) { listing.keys.emplace_back(name); },
            nullptr);
        std::ranges::sort(listing.keys);
        return listing;
    }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& /*folder*/) const override {
        require_prefix(prefix);
        if (!prefix.empty()) return;
        for (const auto& [name, text] : documents_) {
            each(name, [&text = text] { return std::uint64_t{text.size()}; });
        }
        for (const PackedArray::Chunk& chunk : array_.stored) {
            each(keys_.key(grid_.index(chunk.number)), [&chunk] { return chunk.size; });
        }
    }

    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        return unsupported("{}: what lies in a file of another format is never changed in place; copy it",
                           join_key(name_, key));
    }

    [[nodiscard]] const PackedArray::Chunk* find(std::string_view key) const {
        const std::optional<Index> index = keys_.parse(key, grid_.shape().rank());
        if (!index || !in_grid(grid_, *index)) return nullptr;
        const std::int64_t number = grid_.linear(*index);
        const auto found = std::ranges::lower_bound(array_.stored, number, {}, &PackedArray::Chunk::number);
        return found == array_.stored.end() || found->number != number ? nullptr : &*found;
    }

    std::shared_ptr<const ByteSource> file_;
    PackedArray array_;
    std::string name_;
    ChunkGrid grid_;
    KeyScheme keys_{.prefix = "", .separator = ".", .suffix = "", .zero_d = "0"};
    std::vector<std::pair<std::string, std::string>> documents_;
};

}  // namespace

Value chunked_document(const PackedArray& array, const Shape& shape, const Shape& chunks) {
    Value document = Value::object();
    document.set("zarr_format", 2);
    document.set("shape", Value::Array(shape.begin(), shape.end()));
    document.set("chunks", Value::Array(chunks.begin(), chunks.end()));
    document.set("dtype", array.dtype.descr());
    document.set("compressor", array.compressor);
    document.set("filters", array.filters);
    document.set("fill_value", array.fill);
    document.set("order", "C");
    return document;
}

Value chunked_attributes(const PackedArray& array) {
    Value attributes = array.attributes;
    if (!array.fill.is_null()) attributes.erase(fill_attribute);
    return attributes;
}

std::unique_ptr<ArraySource> open_file_source(const ArrayPath& path, const ArrayFileOptions& options) {
    ArrayPath file = path;
    file.opened = path.bytes();
    const ArrayFileFormat* const format = array_file_format_of(*file.opened);
    if (format == nullptr || format->chunked == nullptr) return open_array_file(file, options);
    std::optional<PackedArray> array = format->chunked(file);
    if (!array) return open_array_file(file, options);
    std::string name = fmt::format("{}::{}", path.path.string(), array->name);
    return std::make_unique<Array>(
        Array::open(std::make_shared<FileChunks>(file.opened, *std::move(array), std::move(name))));
}

}  // namespace tessera
