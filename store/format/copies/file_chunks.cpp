#include "file_chunks.h"

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_access.h"
#include "array_state.h"
#include "keys.h"
#include "read_only_store.h"

namespace tessera {

namespace {

Buffer bytes_of(const std::string& text) {
    return Buffer(std::as_bytes(std::span(text)));
}

/// One array's chunks in a file as a store for reading.
class FileChunks final : public ReadOnlyStore, private FarStore {
public:
    FileChunks(const ArrayPath& file, PackedArray array)
        : file_(file.opened),
          far_(file.is_elsewhere()),
          array_(std::move(array)),
          name_(fmt::format("{}::{}", file.path.string(), array_.name)),
          grid_(array_.shape, array_.chunks),
          documents_{{v2_array_name, chunked_document(array_, array_.shape, array_.chunks).dump()},
                     {v2_attributes_name, array_.attributes.dump()}} {
        std::ranges::sort(array_.stored, {}, &PackedArray::Chunk::number);
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        for (const auto& [name, text] : documents_) {
            if (name == key) return memory_source(bytes_of(text), join_key(name_, key));
        }
        const PackedArray::Chunk* const chunk = find(key);
        if (chunk == nullptr) return nullptr;
        if (far_) go_on_ahead(chunk->offset);
        return slice_source(file_, chunk->offset, chunk->size, join_key(name_, key));
    }
    [[nodiscard]] bool contains(std::string_view key) const override {
        return std::ranges::count(documents_, key, [](const auto& d) { return d.first; }) > 0 || find(key) != nullptr;
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

    [[nodiscard]] const FarStore* far() const override { return far_ ? this : nullptr; }
    [[nodiscard]] StoreOptions options_beside() const override { return {.read_only = true}; }
    [[nodiscard]] std::unique_ptr<ByteSource> open_from(std::string_view key,
                                                        ByteSource::Extent /*first*/) const override {
        return open(key);
    }
    [[nodiscard]] std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const override {
        std::vector<std::optional<ValueStamp>> found;
        for (const std::string& key : keys) found.push_back(stamp(key));
        return found;
    }
    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t /*usual*/, NextWish next,
                                                        std::uint64_t /*room*/) const override {
        auto ahead = std::make_unique<Ahead>(*this, std::move(next));
        const std::lock_guard lock(mutex_);
        ahead_ = ahead.get();
        return ahead;
    }

    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        return unsupported("{}: what lies in a file of another format is never changed in place; copy it",
                           join_key(name_, key));
    }

    /// The chunks that are wanted next, some MiB at a time.
    class Ahead final : public ReadAhead {
    public:
        Ahead(const FileChunks& chunks, NextWish next) : chunks_(chunks), next_(std::move(next)) {}
        ~Ahead() override {
            const std::lock_guard lock(chunks_.mutex_);
            if (chunks_.ahead_ == this) chunks_.ahead_ = nullptr;
        }
        Ahead(const Ahead&) = delete;
        Ahead& operator=(const Ahead&) = delete;

        /// Announces more once the chunk at `offset` is asked for, if that is none of those announced.
        void reach(std::uint64_t offset) {
            if (std::ranges::count(asked_, offset, &ByteSource::Extent::begin) > 0) return;
            constexpr std::size_t most_chunks = 256;
            constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;
            asked_.clear();
            ReadWish wish;
            for (std::uint64_t bytes = 0; asked_.size() < most_chunks && bytes < most_bytes && next_(wish);) {
                const PackedArray::Chunk* const chunk = chunks_.find(wish.key);
                if (chunk == nullptr) continue;
                asked_.push_back({chunk->offset, chunk->offset + chunk->size});
                bytes += chunk->size;
            }
            chunks_.file_->expect(asked_);
        }

    private:
        const FileChunks& chunks_;
        NextWish next_;
        std::vector<ByteSource::Extent> asked_;
    };

    void go_on_ahead(std::uint64_t offset) const {
        const std::lock_guard lock(mutex_);
        if (ahead_ != nullptr) ahead_->reach(offset);
    }

    [[nodiscard]] const PackedArray::Chunk* find(std::string_view key) const {
        const std::optional<Index> index = keys_.parse(key, grid_.shape().rank());
        if (!index || !in_grid(grid_, *index)) return nullptr;
        const std::int64_t number = grid_.linear(*index);
        const auto found = std::ranges::lower_bound(array_.stored, number, {}, &PackedArray::Chunk::number);
        return found == array_.stored.end() || found->number != number ? nullptr : &*found;
    }

    std::shared_ptr<const ByteSource> file_;
    bool far_;
    mutable std::mutex mutex_;
    mutable Ahead* ahead_ = nullptr;  ///< of the read that began last
    PackedArray array_;
    std::string name_;
    ChunkGrid grid_;
    KeyScheme keys_ = dialect_named("v2").default_keys();
    std::vector<std::pair<std::string_view, std::string>> documents_;
};

}  // namespace

Value chunked_document(const PackedArray& array, const Shape& shape, const Shape& chunks) {
    Value document = Value::object();
    document.set("zarr_format", 2);
    document.set("shape", Value::Array(shape.begin(), shape.end()));
    document.set("chunks", Value::Array(chunks.begin(), chunks.end()));
    document.set("dtype", array.dtype.descr());
    document.set("compressor", array.compressor);
    const bool none = array.filters.is_array() && array.filters.as_array().empty();
    document.set("filters", none ? Value() : array.filters);
    document.set("fill_value", array.fill);
    document.set("order", "C");
    return document;
}

Value chunked_attributes(const PackedArray& array) {
    Value attributes = array.attributes;
    if (!array.fill.is_null()) attributes.erase(fill_attribute);
    return attributes;
}

bool is_in_file(const Array& array) {
    return dynamic_cast<const FileChunks*>(ArrayAccess::state(array)->store.get()) != nullptr;
}

std::unique_ptr<ArraySource> open_file_source(const ArrayPath& path, const ArrayFileOptions& options) {
    ArrayPath file = path;
    file.opened = path.bytes();
    const ArrayFileFormat* const format = array_file_format_of(*file.opened);
    if (format == nullptr || format->chunked == nullptr) return open_array_file(file, options);
    std::optional<PackedArray> array = format->chunked(file);
    if (!array) return open_array_file(file, options);
    return std::make_unique<Array>(Array::open(std::make_shared<FileChunks>(file, *std::move(array))));
}

}  // namespace tessera
