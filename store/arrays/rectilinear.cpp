#include "rectilinear.h"

#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/pipeline.h>
#include <tessera/rectilinear_at.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "keys.h"
#include "metadata_json.h"

namespace tessera {

// ---- lengths

ChunkEdges::ChunkEdges(const Value& lengths, std::int64_t extent) {
    if (!lengths.is_array()) {
        const std::int64_t length = read_number(lengths, 1, INT64_MAX);
        add(length, std::max<std::int64_t>(1, ceil_div(extent, length)));
        return;
    }
    for (const Value& item : lengths.as_array()) {
        if (!item.is_array()) {
            add(read_number(item, 1, INT64_MAX), 1);
            continue;
        }
        if (item.as_array().size() != 2) throw corrupt("{} is no pair of a length and a count", excerpt(item));
        add(read_number(item.as_array()[0], 1, INT64_MAX), read_number(item.as_array()[1], 1, INT64_MAX));
    }
    if (runs_.empty()) throw corrupt("there are no lengths");
    if (end_ < extent) throw corrupt("the lengths add up to {}, and the array has {}", end_, extent);
}

void ChunkEdges::add(std::int64_t length, std::int64_t count) {
    if (!runs_.empty() && runs_.back().length == length) {
        runs_.back().count = checked_add(runs_.back().count, count, "the number of chunks");
    } else {
        runs_.push_back({chunks_, end_, length, count});
    }
    chunks_ = checked_add(chunks_, count, "the number of chunks");
    end_ = checked_add(end_, checked_multiply(length, count, "the lengths of chunks"), "the lengths of chunks");
}

ChunkEdges::Chunk ChunkEdges::at(std::int64_t position) const {
    const auto run = std::prev(std::ranges::upper_bound(runs_, position, {}, &Run::start));
    return run->chunk((position - run->start) / run->length);
}

ChunkEdges::Chunk ChunkEdges::numbered(std::int64_t index) const {
    const auto run = std::prev(std::ranges::upper_bound(runs_, index, {}, &Run::index));
    return run->chunk(index - run->index);
}

std::int64_t ChunkEdges::longest() const {
    return std::ranges::max_element(runs_, {}, &Run::length)->length;
}

// ---- reading

namespace {

/// The member of a document; nullptr unless it is an object of this name.
const Value* rectilinear_lengths(const Value& document) {
    const Value* grid = document.is_object() ? document.find("chunk_grid") : nullptr;
    if (grid == nullptr || !grid->is_object()) return nullptr;
    const Value* name = grid->find("name");
    if (name == nullptr || *name != Value("rectilinear")) return nullptr;
    const Value& configuration = grid->at("configuration");
    const Value* kind = configuration.find("kind");
    if (kind == nullptr || *kind != Value("inline")) {
        throw unsupported("member \"chunk_grid\": kind is {}, expected \"inline\"", kind ? kind->dump() : "missing");
    }
    return &configuration.at("chunk_shapes");
}

class RectilinearSource final : public ArraySource {
public:
    RectilinearSource(std::shared_ptr<const KeyValueStore> store, std::string_view prefix, ArrayMetadata metadata,
                      std::vector<ChunkEdges> edges, Value attributes, std::string name)
        : store_(std::move(store)),
          prefix_(prefix),
          metadata_(std::move(metadata)),
          edges_(std::move(edges)),
          attributes_(std::move(attributes)),
          name_(std::move(name)) {
        const ElementBytes& content = *metadata_.fill.bytes;
        slot_ = {reinterpret_cast<const char*>(content.data()), content.size()};
        (void)pipeline(metadata_.chunks);  // so that a codec that Tessera lacks is an error at once
    }

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info{.dtype = metadata_.dtype, .shape = metadata_.shape, .chunks = metadata_.chunks};
        for (int d = 0; d < info.shape.rank(); ++d) {
            info.chunks[d] = std::clamp<std::int64_t>(info.shape[d], 1, info.chunks[d]);
        }
        return info;
    }

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, metadata_.shape);
        if (region.empty()) return;
        Region touched = region;
        for (int d = 0; d < region.rank(); ++d) {
            const ChunkEdges& along = edges_[static_cast<std::size_t>(d)];
            touched.start[d] = along.at(region.start[d]).index;
            touched.extent[d] = along.at(region.start[d] + region.extent[d] - 1).index - touched.start[d] + 1;
        }
        parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
            const Index chunk = index_in(touched, n);
            const std::string key = join_key(prefix_, metadata_.keys.key(chunk));
            in_context([&] { return fmt::format("{}: chunk {} ({})", name_, chunk.to_string(), key); },
                       [&] { read_chunk(chunk, key, region, out); });
        });
    }

private:
    void read_chunk(const Index& chunk, const std::string& key, const Region& region,
                    const MutableArrayView& out) const {
        Region box = Region::whole(metadata_.chunks);
        for (int d = 0; d < box.rank(); ++d) {
            const ChunkEdges::Chunk along = edges_[static_cast<std::size_t>(d)].numbered(chunk[d]);
            box.start[d] = along.start;
            box.extent[d] = along.length;
        }
        Region part = intersection(box, region);
        Region in_request = part;
        for (int d = 0; d < box.rank(); ++d) {
            part.start[d] -= box.start[d];
            in_request.start[d] -= region.start[d];
        }
        const MutableArrayView to = out.part(in_request);
        const auto source = store_->open(key);
        if (source == nullptr) return fill_elements(to, metadata_.dtype, fill());
        CodecScratch scratch;
        pipeline(box.extent)->decode_part(*source, part, to, scratch);
    }

    [[nodiscard]] const std::byte* fill() const {
        return metadata_.dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot_)
                                             : metadata_.fill.bytes->data();
    }

    /// For chunks of this shape. Few are kept, because a document may say very many.
    [[nodiscard]] std::shared_ptr<const CodecPipeline> pipeline(const Shape& shape) const {
        constexpr std::size_t most_kept = 64;
        const std::vector<std::int64_t> key(shape.begin(), shape.end());
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
        }
        auto made = std::make_shared<const CodecPipeline>(ChunkSpec{metadata_.dtype, shape, metadata_.fill.bytes},
                                                          metadata_.codecs);
        const std::lock_guard lock(mutex_);
        if (pipelines_.size() >= most_kept) pipelines_.clear();
        pipelines_.emplace(key, made);
        return made;
    }

    std::shared_ptr<const KeyValueStore> store_;
    std::string prefix_;
    ArrayMetadata metadata_;  ///< of which `chunks` are the longest lengths
    VariableSlot slot_;       ///< the fill of variable-length elements
    std::vector<ChunkEdges> edges_;
    Value attributes_;
    std::string name_;
    mutable std::mutex mutex_;
    mutable std::map<std::vector<std::int64_t>, std::shared_ptr<const CodecPipeline>> pipelines_;
};

/// The attributes, with the names of dimensions where xarray's convention has them.
Value named_attributes(const Value& document, const ArrayMetadata& m) {
    const Value* stored = document.find("attributes");
    Value attributes = stored == nullptr ? Value::object() : *stored;
    if (!m.dimension_names.empty() && attributes.find(dimensions_attribute) == nullptr) {
        attributes.set(dimensions_attribute, dimension_names_json(m.dimension_names));
    }
    return attributes;
}

}  // namespace

std::unique_ptr<ArraySource> rectilinear_source(std::shared_ptr<const KeyValueStore> store, std::string_view prefix,
                                                ByteSpan document, std::string name) {
    const Dialect& v3 = dialect_named("v3");
    // What is no such array is not parsed twice.
    const std::string_view text(reinterpret_cast<const char*>(document.data()), document.size());
    if (text.find("rectilinear") == std::string_view::npos) return nullptr;
    return reading(join_key(store->name(), join_key(prefix, v3.metadata_key)), [&]() -> std::unique_ptr<ArraySource> {
        Value meta = Value::parse(text);
        const Value* lengths = rectilinear_lengths(meta);
        if (lengths == nullptr) return nullptr;
        const Shape shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
        std::vector<ChunkEdges> edges;
        Shape longest;
        in_member("chunk_grid", [&] {
            if (lengths->as_array().size() != static_cast<std::size_t>(shape.rank())) {
                throw corrupt("chunk_shapes has {} dimensions, the array has {}", lengths->as_array().size(),
                              shape.rank());
            }
            for (int d = 0; d < shape.rank(); ++d) {
                edges.emplace_back(lengths->as_array()[static_cast<std::size_t>(d)], shape[d]);
                longest.push_back(edges.back().longest());
            }
        });
        // All else is as with chunks of one shape.
        Value configuration = Value::object();
        configuration.set("chunk_shape", dims_json(longest));
        Value grid = Value::object();
        grid.set("name", "regular");
        grid.set("configuration", std::move(configuration));
        meta.set("chunk_grid", std::move(grid));
        ArrayMetadata metadata = v3.parse(meta.dump());
        Value attributes = named_attributes(meta, metadata);
        return std::make_unique<RectilinearSource>(std::move(store), prefix, std::move(metadata), std::move(edges),
                                                   std::move(attributes), std::move(name));
    });
}

std::unique_ptr<ArraySource> rectilinear_at(const Located& at) {
    if (!at.place || at.dialect == nullptr || at.dialect->name != "v3") return nullptr;
    Buffer document;
    if (!at.place->store->get(join_key(at.place->prefix, at.dialect->metadata_key), document, metadata_limit))
        return nullptr;
    return rectilinear_source(at.place->store, at.place->prefix, document.span(), at.path);
}

}  // namespace tessera
