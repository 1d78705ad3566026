// References in Parquet, as kerchunk and VirtualiZarr write them: a folder with the documents of all nodes in
// .zmetadata, and for each array files refs.0.parq, refs.1.parq, … of `record_size` rows. Row n of them is the chunk of
// this number in C order: `raw` are its bytes, or `path` its file, with `offset` and `size` (0 and 0: all of the file);
// where both are null there is no chunk.
//
// A file is read when one of its chunks is, and the last few are kept.
#include <tessera/action.h>
#include <tessera/chunk_grid.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/outside.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "keys.h"
#include "parquet_columns.h"
#include "reference_file.h"
#include "referenced_files.h"
#include "sorted_keys.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t longest_zmetadata = std::uint64_t{64} << 20;
constexpr std::uint64_t longest_parquet = std::uint64_t{256} << 20;
constexpr std::uint64_t json_bytes = 16;  ///< memory for each byte of JSON, at most
constexpr std::int64_t most_rows = std::int64_t{1} << 24;
constexpr std::size_t most_records = 32;

/// The references of one file.
struct Record {
    ParquetColumn path, offset, size, raw;
    std::vector<std::int64_t> files;  ///< of the texts of `path`
};

/// The place of a row's value in a column; -1 for null, and where there is no such row or column.
std::int64_t place_in(const ParquetColumn& column, std::int64_t row) {
    return std::cmp_less(row, column.rows.size()) ? column.rows[static_cast<std::size_t>(row)] : -1;
}

std::uint64_t number_in(const ParquetColumn& column, std::int64_t row) {
    const std::int64_t place = place_in(column, row);
    if (place < 0 || column.is_text) return 0;
    const std::int64_t n = column.integers[static_cast<std::size_t>(place)];
    if (n < 0) throw corrupt("row {} has the offset or size {}", row, n);
    return static_cast<std::uint64_t>(n);
}

Shape dims_of(const Value& document, std::string_view name) {
    Shape dims;
    for (const Value& length : document.at(name).as_array()) dims.push_back(length.as_int64());
    return dims;
}

class ParquetReferences final : public StoreOfReferences {
public:
    ParquetReferences(const fs::path& folder, const Value& document, std::uint64_t size,
                      std::shared_ptr<KeyValueStore> records)
        : name_(folder.string()),
          memory_(size * 2),
          records_(std::move(records)),
          files_(folder, outside_allowed(), nullptr),
          record_size_(document.at("record_size").as_int64()) {
        if (record_size_ < 1 || record_size_ > most_rows) throw corrupt("record_size is {}", record_size_);
        for (const auto& [key, value] : document.at("metadata").as_object()) {
            in_context([&key = key] { return key; },
                       [&, &key = key, &value = value] {
                           require_key(key);
                           if (!has_own_name(key)) add(key, value);
                       });
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        if (const auto found = documents_.find(key); found != documents_.end()) {
            return memory_source(Buffer(std::as_bytes(std::span(found->second))), name_of(key));
        }
        const auto chunk = chunk_of(key);
        if (!chunk) return nullptr;
        const auto at = reference(*chunk);
        return at ? files_.open(*at, name_of(key)) : nullptr;
    }
    [[nodiscard]] bool contains(std::string_view key) const override {
        if (documents_.contains(key)) return true;
        const auto chunk = chunk_of(key);
        return chunk && reference(*chunk).has_value();
    }
    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        Listing listing = list_below(documents_, prefix);
        for_each_chunk(prefix, [&](std::string name, const Reference&) { listing.keys.push_back(std::move(name)); });
        std::ranges::sort(listing.keys);
        return listing;
    }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(documents_, prefix, each, folder, [](const std::string& text) { return text.size(); });
        for_each_chunk(prefix, [&](const std::string& name, const Reference& at) {
            each(name, [&] { return files_.size_of(at); });
        });
    }
    [[nodiscard]] std::vector<fs::path> files() const override {
        for (const auto& [array, grid] : arrays_) {
            const std::int64_t count = grid.chunk_count();
            for (std::int64_t first = 0, number = 0; first < count; first += record_size_, ++number) {
                (void)load(array, number);
            }
        }
        return files_.all();
    }
    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    struct Chunk {
        std::string_view array;
        std::int64_t number = 0;
    };

    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported("{}: references are never changed; copy the array and change the copy", name_of(key))
            .advising(Action::copy, "copies it", name_);
    }

    void add(const std::string& key, const Value& value) {
        documents_.insert_or_assign(key, value.is_string() ? value.as_string() : value.dump());
        if (key.substr(parent_of(key).empty() ? 0 : parent_of(key).size() + 1) != v2_array_name) return;
        const Value* separator = value.find("dimension_separator");
        if (separator != nullptr && *separator != Value(".") && !separator->is_null()) {
            throw unsupported("chunks with the separator {}: references in Parquet number those with \".\"",
                              separator->dump());
        }
        arrays_.insert_or_assign(std::string(parent_of(key)),
                                 ChunkGrid(dims_of(value, "shape"), dims_of(value, "chunks")));
    }

    [[nodiscard]] std::optional<Chunk> chunk_of(std::string_view key) const {
        const auto array = arrays_.find(parent_of(key));
        if (array == arrays_.end()) return std::nullopt;
        const Shape& grid = array->second.grid();
        std::string_view name = key.substr(array->first.empty() ? 0 : array->first.size() + 1);
        if (grid.empty()) return name == "0" ? std::optional(Chunk{array->first, 0}) : std::nullopt;
        Index index;
        for (int d = 0; d < grid.rank(); ++d) {
            std::int64_t n = 0;
            const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
            if (error != std::errc() || n < 0 || n >= grid[d]) return std::nullopt;
            name.remove_prefix(static_cast<std::size_t>(end - name.data()));
            index.push_back(n);
            if (d + 1 == grid.rank()) break;
            if (!name.starts_with('.')) return std::nullopt;
            name.remove_prefix(1);
        }
        if (!name.empty()) return std::nullopt;
        return Chunk{array->first, array->second.linear(index)};
    }

    /// Where the bytes of a chunk are; nullopt where it is not stored.
    [[nodiscard]] std::optional<Reference> reference(const Chunk& chunk) const {
        const auto record = load(chunk.array, chunk.number / record_size_);
        return record == nullptr ? std::nullopt : reference_in(*record, chunk.number % record_size_);
    }

    static std::optional<Reference> reference_in(const Record& record, std::int64_t row) {
        if (const std::int64_t raw = record.raw.is_text ? place_in(record.raw, row) : -1; raw >= 0) {
            return Reference{.text = record.raw.texts[static_cast<std::size_t>(raw)]};
        }
        const std::int64_t path = record.path.is_text ? place_in(record.path, row) : -1;
        if (path < 0) return std::nullopt;
        Reference at{.text = {},
                     .file = record.files[static_cast<std::size_t>(path)],
                     .offset = number_in(record.offset, row),
                     .size = number_in(record.size, row)};
        at.whole = at.offset == 0 && at.size == 0;
        return at;
    }

    static std::string record_key(std::string_view array, std::int64_t number) {
        return join_key(array, "refs." + std::to_string(number) + ".parq");
    }

    [[nodiscard]] std::shared_ptr<const Record> load(std::string_view array, std::int64_t number) const {
        const std::string key = record_key(array, number);
        const std::lock_guard guard(mutex_);
        const auto known = std::ranges::find(loaded_, key, &Loaded::first);
        if (known != loaded_.end()) {
            std::rotate(loaded_.begin(), known, known + 1);
            return loaded_.front().second;
        }
        Buffer bytes;
        std::shared_ptr<const Record> record;
        if (records_->get(key, bytes, longest_parquet)) {
            record =
                in_context([&] { return records_->name_of(key); }, [&] { return parse(std::as_const(bytes).span()); });
        }
        if (loaded_.size() == most_records) loaded_.pop_back();
        loaded_.emplace(loaded_.begin(), key, record);
        return record;
    }

    [[nodiscard]] std::shared_ptr<const Record> parse(ByteSpan file) const {
        auto record = std::make_shared<Record>();
        const auto column = [&](std::string_view name) {
            return in_context([&] { return "column " + std::string(name); },
                              [&] { return read_parquet_column(file, name, most_rows).value_or(ParquetColumn()); });
        };
        record->path = column("path");
        record->offset = column("offset");
        record->size = column("size");
        record->raw = column("raw");
        for (const std::string& path : record->path.texts) record->files.push_back(files_.number(path));
        return record;
    }

    template <class Each>
    void for_each_chunk(std::string_view array, const Each& each) const {
        const auto found = arrays_.find(array);
        if (found == arrays_.end()) return;
        const ChunkGrid& grid = found->second;
        const std::int64_t count = grid.chunk_count();
        for (std::int64_t first = 0, number = 0; first < count; first += record_size_, ++number) {
            const auto record = load(array, number);
            if (record == nullptr) continue;
            for (std::int64_t row = 0; row < std::min(record_size_, count - first); ++row) {
                if (const auto at = reference_in(*record, row)) each(name_of_chunk(grid, first + row), *at);
            }
        }
    }

    static std::string name_of_chunk(const ChunkGrid& grid, std::int64_t number) {
        if (grid.grid().empty()) return "0";
        const Index index = grid.index(number);
        std::string name;
        for (const std::int64_t n : index) name += (name.empty() ? "" : ".") + std::to_string(n);
        return name;
    }

    using Loaded = std::pair<std::string, std::shared_ptr<const Record>>;

    std::string name_;
    MemoryHold memory_;
    std::shared_ptr<KeyValueStore> records_;
    mutable ReferencedFiles files_;
    std::int64_t record_size_;
    std::map<std::string, std::string, std::less<>> documents_;
    std::map<std::string, ChunkGrid, std::less<>> arrays_;
    mutable std::mutex mutex_;
    mutable std::vector<Loaded> loaded_;  ///< the last used first
};

}  // namespace

std::shared_ptr<KeyValueStore> probe_parquet_references(const fs::path& folder,
                                                        const std::shared_ptr<KeyValueStore>& store) {
    const std::string key(v2_consolidated_name);
    if (!store->contains(key) || store->contains(v2_group_name)) return nullptr;
    Buffer bytes;
    if (!store->get(key, bytes, longest_zmetadata)) return nullptr;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.find("\"record_size\"") == std::string_view::npos) return nullptr;
    const MemoryHold parsing(bytes.size() * json_bytes);
    return in_context([&] { return store->name_of(key); },
                      [&] {
                          const Value document = Value::parse(text);
                          return std::make_shared<ParquetReferences>(folder, document, bytes.size(), store);
                      });
}

}  // namespace tessera
