// N5 as a read-only store of Zarr v3: attributes.json is shown as zarr.json, and block i/j/k as chunk c/k/j/i without
// its header. So whatever reads Zarr reads N5, and a copy takes the blocks as they are. A block that is cut at the edge
// of the array is decoded, filled up with zeros and encoded again, because chunks of Zarr are whole.
//
// The header of a block, big-endian: its mode (2 bytes; 0), the number of dimensions (2), and the length of each (4),
// the fastest first.
#include "n5_store.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/copy_elements.h>
#include <tessera/counted.h>
#include <tessera/error_text.h>
#include <tessera/group_documents.h>
#include <tessera/ndarray.h>
#include <tessera/pipeline.h>
#include <tessera/place.h>
#include <tessera/store_kind.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys.h"
#include "metadata_json.h"
#include "n5_metadata.h"
#include "read_only_store.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

std::uint32_t load_big(ByteSpan in, std::size_t at, std::size_t size) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < size; ++i) v = v << 8 | std::to_integer<std::uint32_t>(in[at + i]);
    return v;
}

/// A number as a part of a block's key: "0", "17"; nullopt for anything else.
std::optional<std::int64_t> block_number(std::string_view part) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    const bool whole = error == std::errc() && end == part.data() + part.size();
    return whole && n >= 0 && (part[0] != '0' || part.size() == 1) ? std::optional(n) : std::nullopt;
}

/// A data set, as its attributes.json has it.
struct DataSet {
    explicit DataSet(ArrayMetadata m)
        : metadata(std::move(m)), grid(chunk_grid(metadata)), pipeline(of(metadata.chunks)) {}

    [[nodiscard]] CodecPipeline of(const Shape& block) const {
        return {{metadata.dtype, block, metadata.fill.bytes}, metadata.codecs};
    }
    [[nodiscard]] int rank() const { return metadata.shape.rank(); }
    [[nodiscard]] std::size_t header() const { return 4 + 4 * static_cast<std::size_t>(rank()); }

    /// The shape that a block's header tells, in the order of the array's dimensions.
    [[nodiscard]] Shape block_shape(ByteSpan block) const {
        if (block.size() < header())
            throw corrupt("{} bytes are too few for a block's header, {}", block.size(), header());
        if (const auto mode = load_big(block, 0, 2); mode != 0) {
            throw unsupported("the block has mode {}, {}; only 0, the default one, is read", mode,
                              mode == 1 ? "of elements that vary in length" : "of objects");
        }
        if (const auto found = load_big(block, 2, 2); std::cmp_not_equal(found, rank())) {
            throw corrupt("the block has {} dimensions, expected {}", found, rank());
        }
        Shape shape;
        for (int d = rank(); d-- > 0;) shape.push_back(load_big(block, 4 + 4 * static_cast<std::size_t>(d), 4));
        const auto fits = [&](int d) { return shape[d] >= 1 && shape[d] <= metadata.chunks[d]; };
        for (int d = 0; d < rank(); ++d) {
            if (fits(d)) continue;
            throw corrupt("the block is of {}, expected at most {}", shape.to_string(), metadata.chunks.to_string());
        }
        return shape;
    }

    /// The whole chunk that a cut block begins, encoded.
    [[nodiscard]] Buffer filled_up(ByteSpan elements, const Shape& block) const {
        NDArray cut(metadata.dtype, block);
        CodecScratch scratch;
        of(block).decode(elements, cut, scratch);
        NDArray whole(metadata.dtype, metadata.chunks);
        fill_elements(whole.view(), fill_element(metadata).data());
        copy_elements(std::as_const(cut).view(), whole.view().part(Region::whole(block)));
        return pipeline.encoded(std::as_const(whole).view());
    }

    ArrayMetadata metadata;
    ChunkGrid grid;
    CodecPipeline pipeline;
};

/// What a key leads to in the N5 container.
struct Block {
    std::shared_ptr<const DataSet> set;
    std::string key;
};

using ChunkNumbers = CountedVector<std::int64_t>;

class N5Store final : public ReadOnlyStore {
public:
    N5Store(Place place, std::string name) : inner_(std::move(place)), name_(std::move(name)) {}

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        if (const auto node = node_of_document(key)) return open_document(key, *node);
        const auto block = find_block(key);
        if (!block) return nullptr;
        std::shared_ptr<const ByteSource> file = inner_.store->open(block->key);
        if (file == nullptr) return nullptr;
        return reading(inner_.store->name_of(block->key), [&]() -> std::unique_ptr<ByteSource> {
            const DataSet& set = *block->set;
            const std::uint64_t head = std::min<std::uint64_t>(set.header(), file->size());
            const Shape shape = set.block_shape(read_range(*file, 0, head).span());
            const std::uint64_t rest = file->size() - head;
            if (shape == set.metadata.chunks) return slice_source(file, head, rest, name_of(key));
            require_size(file->name(), rest, set.pipeline.encoded_limit());
            const Buffer elements = read_range(*file, head, rest);
            return memory_source(set.filled_up(elements.span(), shape), name_of(key));
        });
    }

    /// By one look or request, where open() needs two.
    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        require_key(key);
        const auto block = node_of_document(key) ? std::nullopt : find_block(key);
        if (!block) return ReadOnlyStore::get(key, out, limit);
        const DataSet& set = *block->set;
        const std::uint64_t head = set.header();
        Buffer whole;
        if (!inner_.store->get(block->key, whole, limit > UINT64_MAX - head ? limit : limit + head)) return false;
        reading(inner_.store->name_of(block->key), [&] {
            const Shape shape = set.block_shape(whole.span());
            const ByteSpan elements = std::as_const(whole).span().subspan(static_cast<std::size_t>(head));
            if (shape == set.metadata.chunks) {
                out.reset(elements.size());
                std::ranges::copy(elements, out.data());
            } else {
                out = set.filled_up(elements, shape);
            }
        });
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        if (const auto node = node_of_document(key)) {
            auto found = inner_.store->stamp(document_key(*node));
            if (!found && node->empty()) return ValueStamp{};
            return found;
        }
        const auto block = find_block(key);
        return block ? inner_.store->stamp(block->key) : std::nullopt;
    }

    [[nodiscard]] bool contains(std::string_view key) const override {
        require_key(key);
        if (const auto node = node_of_document(key))
            return node->empty() || inner_.store->contains(document_key(*node));
        const auto block = find_block(key);
        return block && inner_.store->contains(block->key);
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        if (auto chunks = list_chunks(prefix)) return *std::move(chunks);
        Listing listing = inner_.store->list(inner_.key(prefix));
        const bool described = prefix.empty() || std::ranges::binary_search(listing.keys, n5_document_name);
        const auto set = described ? data_set(prefix) : nullptr;
        if (set != nullptr) {
            const auto& names = set->rank() == 1 ? listing.keys : listing.prefixes;
            const bool any =
                std::ranges::any_of(names, [](const auto& name) { return block_number(name).has_value(); });
            listing.prefixes = any ? std::vector<std::string>{"c"} : std::vector<std::string>();
        } else {
            // A link may lead back above itself.
            std::erase_if(listing.prefixes,
                          [&](const auto& name) { return std::ranges::binary_search(listing.links, name); });
        }
        listing.links.clear();
        listing.keys.clear();
        if (described) listing.keys.emplace_back(v3_document_name);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        const Listing listing = list(prefix);
        for (const std::string& name : listing.keys) {
            each(name, [&]() -> std::uint64_t { return stamp(join_key(prefix, name)).value_or(ValueStamp{}).size; });
        }
        if (!folder) return;
        for (const std::string& name : listing.prefixes) folder(name, false);
    }

    [[nodiscard]] bool lists() const override { return inner_.store->lists(); }
    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported("{}: N5 is only read; copy it to Zarr, and change the copy", name_of(key))
            .advising(Action::copy, "copies it", name_);
    }

    [[nodiscard]] std::string document_key(std::string_view node) const {
        return inner_.key(join_key(node, n5_document_name));
    }

    /// The node whose zarr.json a key is.
    static std::optional<std::string> node_of_document(std::string_view key) {
        const std::string_view node = parent_of(key);
        if (key.substr(node.empty() ? 0 : node.size() + 1) != v3_document_name) return std::nullopt;
        return std::string(node);
    }

    /// attributes.json of a node, an object; nullopt where there is none.
    [[nodiscard]] std::optional<Value> load(std::string_view node) const {
        return get_object(*inner_.store, document_key(node));
    }

    [[nodiscard]] std::shared_ptr<const DataSet> data_set_in(std::string_view node, const Value& document) const {
        return reading(inner_.store->name_of(document_key(node)),
                       [&] { return std::make_shared<const DataSet>(n5_metadata(document)); });
    }

    /// The data set at a node, as it was last read; nullptr if there is none.
    [[nodiscard]] std::shared_ptr<const DataSet> data_set(std::string_view node) const {
        {
            const std::lock_guard guard(mutex_);
            if (const auto known = sets_.find(node); known != sets_.end()) return known->second;
        }
        const auto document = load(node);
        if (!document || !is_n5_dataset(*document)) return nullptr;
        auto set = data_set_in(node, *document);
        const std::lock_guard guard(mutex_);
        return sets_.insert_or_assign(std::string(node), std::move(set)).first->second;
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open_document(std::string_view key, const std::string& node) const {
        const auto document = load(node);
        if (!document && !node.empty()) return nullptr;
        Value shown;
        if (document && is_n5_dataset(*document)) {
            const auto set = data_set_in(node, *document);
            shown = dialect_named("v3").document(set->metadata);
            shown.set("attributes", n5_attributes(*document));
            const std::lock_guard guard(mutex_);
            sets_.insert_or_assign(node, set);
        } else {
            shown = v3_group_document(document ? n5_attributes(*document) : Value::object());
        }
        const std::string text = shown.dump(zarr3_json_style);
        return memory_source(Buffer(std::as_bytes(std::span(text))), name_of(key));
    }

    /// The node above a folder of chunks, and the part of the key or prefix from that folder on, "c/2/0".
    static std::pair<std::string_view, std::string_view> split_chunk(std::string_view key) {
        std::size_t at = key.size();
        for (;;) {
            const std::size_t slash = key.substr(0, at).rfind('/');
            const std::size_t begin = slash == key.npos ? 0 : slash + 1;
            const std::string_view part = key.substr(begin, at - begin);
            if (part == "c") return {key.substr(0, begin == 0 ? 0 : begin - 1), key.substr(begin)};
            if (slash == key.npos || !block_number(part)) return {};
            at = slash;
        }
    }

    [[nodiscard]] std::optional<Block> find_block(std::string_view key) const {
        const auto [node, rest] = split_chunk(key);
        if (rest.empty()) return std::nullopt;
        auto set = data_set(node);
        if (set == nullptr) return std::nullopt;
        const auto index = set->metadata.keys.parse(rest, set->rank());
        if (!index) return std::nullopt;
        std::string inner = inner_.key(node);
        for (int d = set->rank(); d-- > 0;) inner = join_key(inner, std::to_string((*index)[d]));
        return Block{std::move(set), std::move(inner)};
    }

    // ---- the chunks of a data set, in C order of their grid

    void collect(const DataSet& set, const std::string& folder, Index& index, int d, ChunkNumbers& numbers) const {
        const auto take = [&](std::string_view name) {
            const auto n = block_number(name);
            if (!n || *n >= set.grid.grid()[d]) return false;
            index[d] = *n;
            return true;
        };
        if (d == 0) {
            inner_.store->for_each(folder, [&](std::string_view name, const ValueSize&) {
                if (take(name)) numbers.push_back(set.grid.linear(index));
            });
            return;
        }
        for (const std::string& name : inner_.store->list(folder).prefixes) {
            if (take(name)) collect(set, join_key(folder, name), index, d - 1, numbers);
        }
    }

    /// All chunks of the data set at a node: afresh, or as they were last listed.
    [[nodiscard]] std::shared_ptr<const ChunkNumbers> numbers(std::string_view node, const DataSet& set,
                                                              bool afresh) const {
        if (!afresh) {
            const std::lock_guard guard(mutex_);
            if (listed_ != nullptr && listed_node_ == node) return listed_;
        }
        auto found = std::make_shared<ChunkNumbers>();
        Index index = Index::filled(set.rank(), 0);
        collect(set, inner_.key(node), index, set.rank() - 1, *found);
        std::ranges::sort(*found);
        const std::lock_guard guard(mutex_);
        listed_ = found;
        listed_node_ = node;
        return found;
    }

    /// The indices that a prefix gives, "c/2/0".
    static Index indices_in(std::string_view rest) {
        Index indices;
        for (std::size_t at = 1; at < rest.size();) {
            const std::size_t end = std::min(rest.find('/', at + 1), rest.size());
            indices.push_back(block_number(rest.substr(at + 1, end - at - 1)).value());
            at = end;
        }
        return indices;
    }

    /// What lies in the folder of chunks or below; nullopt if the prefix is of something else.
    [[nodiscard]] std::optional<Listing> list_chunks(std::string_view prefix) const {
        const auto [node, rest] = split_chunk(prefix);
        const auto set = rest.empty() ? nullptr : data_set(node);
        const auto parts = std::ranges::count(rest, '/');
        if (set == nullptr || std::cmp_greater_equal(parts, set->rank())) return std::nullopt;
        const Index above = indices_in(rest);
        const int depth = above.rank();
        const Shape& grid = set->grid.grid();
        Listing listing;
        Index start = Index::filled(set->rank(), 0);
        for (int d = 0; d < depth; ++d) {
            if (above[d] >= grid[d]) return listing;
            start[d] = above[d];
        }
        if (set->grid.chunk_count() == 0) return listing;
        const std::int64_t first = set->grid.linear(start);
        std::int64_t step = 1;  // from one name to the next
        for (int d = depth + 1; d < set->rank(); ++d) step *= grid[d];
        const auto all = numbers(node, *set, depth == 0);
        auto& names = depth == set->rank() - 1 ? listing.keys : listing.prefixes;
        for (auto at = std::ranges::lower_bound(*all, first); at != all->end();) {
            const std::int64_t n = (*at - first) / step;
            if (n >= grid[depth]) break;
            names.push_back(std::to_string(n));
            at = std::lower_bound(at, all->end(), first + (n + 1) * step);
        }
        std::ranges::sort(names);
        return listing;
    }

    Place inner_;
    std::string name_;
    mutable std::mutex mutex_;  ///< of what follows
    mutable std::map<std::string, std::shared_ptr<const DataSet>, std::less<>> sets_;
    mutable std::shared_ptr<const ChunkNumbers> listed_;  ///< of the data set that was listed last
    mutable std::string listed_node_;
};

/// Whether a part of a path ends in ".n5".
bool is_named_n5(const fs::path& path) {
    return std::ranges::any_of(path, [](const fs::path& part) { return part.extension() == ".n5"; });
}

/// Whether an array or group is there, or an unfinished copy of one.
bool has_zarr(const PlaceView& place) {
    return place.store.contains(place.key(unfinished_marker_key)) ||
           std::ranges::any_of(metadata_names,
                               [&](std::string_view name) { return place.store.contains(place.key(name)); });
}

bool is_n5(const PlaceView& place, bool named) {
    try {
        const auto document = get_object(place.store, place.key(n5_document_name));
        if (document && !named && document->find("n5") == nullptr && !is_n5_dataset(*document)) return false;
        if (!document && (!named || place.store.list(place.prefix).prefixes.empty())) return false;
        return !has_zarr(place);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return named;  // an attributes.json of something else
    }
}

Place n5_place(const fs::path& path, const StoreOptions& options) {
    const std::string name = path.string();
    if (!options.read_only) {
        throw unsupported("{}: N5 is only read; copy it to Zarr, and change the copy", name)
            .advising(Action::copy, "copies it", name);
    }
    Place place = find_place(name.substr(std::string_view("n5:").size()), options);
    if (has_zarr(place)) return place;  // of N5 that was known as such
    return {std::make_shared<N5Store>(std::move(place), name), ""};
}

}  // namespace

Place as_n5(Place place, const fs::path& path) {
    const bool named = is_named_n5(path);
    if (!named && place.store->is_far()) return place;
    if (!is_n5(place, named)) return place;
    return {std::make_shared<N5Store>(std::move(place), "n5:" + path.string()), ""};
}

extern constinit const StoreKind n5_kind{.scheme = "n5", .about = "N5", .place = n5_place};

}  // namespace tessera
