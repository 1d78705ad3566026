#include <tessera/references.h>

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/chunk_bytes.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/group_documents.h>
#include <tessera/locate.h>
#include <tessera/store_kind.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "file_chunks.h"
#include "hierarchy_plan.h"
#include "packed_file.h"

namespace tessera {

namespace {

constexpr JsonStyle indented{.indent = 4};

class Collector {
public:
    void document(const std::string& prefix, std::string_view name, const Value& value) {
        add(join_key(prefix, name), value.dump(indented));
    }
    void group(const std::string& prefix, const Value& attributes) {
        add(join_key(prefix, v2_group_name), v2_group_document().dump());
        document(prefix, v2_attributes_name, attributes);
    }
    void bytes(const std::string& prefix, const Index& chunk, const std::string& file, const ChunkBytes::Place& place) {
        Value at = Value::array();
        at.push_back(file);
        if (!place.whole) {
            at.push_back(place.offset);
            at.push_back(place.size);
        }
        add(join_key(prefix, keys_.key(chunk)), std::move(at));
    }
    [[nodiscard]] Value result() && {
        Value all = Value::object();
        all.set("version", 1);
        all.set("refs", Value(std::move(refs_)));
        return all;
    }

private:
    /// Does not look for the key first: no key comes twice, and Value::set would search all of them.
    void add(std::string key, Value value) { refs_.emplace_back(std::move(key), std::move(value)); }

    KeyScheme keys_ = dialect_named("v2").default_keys();
    Value::Object refs_;
};

// ---- arrays in directories

Value attributes_of(const Array& array) {
    Value attributes = array.attributes().all();
    const auto names = array.metadata().dimension_names;
    const bool all_named = std::ranges::all_of(names, [](const auto& name) { return name.has_value(); });
    if (!names.empty() && all_named && attributes.find(dimensions_attribute) == nullptr) {
        attributes.set(dimensions_attribute, dimension_names_json(names));
    }
    return attributes;
}

void add_array(Collector& refs, const ReadableStore& store, const Array& array, const std::string& below) {
    const ArrayState& state = *ArrayAccess::state(array);
    if (state.store->read_only() && batch_pending(state)) {
        throw unsupported(array.name() + ": a batch of edits is recorded but not in place, and nobody may write here");
    }
    if (!array.metadata().edges.empty()) {
        throw unsupported(array.name() + ": its chunks differ in length, which Zarr v2 cannot say");
    }
    const ChunkBytes chunks(array);
    if (!chunks.zarray()) throw unsupported(array.name() + ": Zarr v2 cannot say how its chunks are encoded");
    if (!chunks.may_be_absent() && array.metadata().fill.bytes) {
        throw unsupported(array.name() + ": other programs do not read an absent chunk as the fill value");
    }
    const Value& fill = chunks.zarray()->at("fill_value");
    if (fill.is_array() && std::ranges::any_of(fill.as_array(), &Value::is_string)) {
        // zarr-python 2 makes a complex fill by arithmetic: beside an infinity the other part becomes NaN.
        throw unsupported(array.name() + ": other programs do not read its complex fill, which is not finite");
    }
    refs.document(below, v2_array_name, *chunks.zarray());
    refs.document(below, v2_attributes_name, attributes_of(array));
    chunks.for_each([&](const Index& chunk, const ChunkBytes::Place& place) {
        refs.bytes(below, chunk, store.name_of(place.key), place);
    });
}

void add_place(Collector& refs, const Located& located, const OnRefusal& refused) {
    const Place& at = *located.place;
    if (!at.store->local_files().folder_id("") && !at.store->is_far()) {
        throw unsupported(at.store->name() +
                          ": what lies in a zip, in references or in such a store has no byte ranges of its own");
    }
    if (!at.store->lists()) throw unsupported(at.store->name() + ": the server does not say which chunks there are");
    if (located.kind == PathKind::array) return add_array(refs, *at.store, located.array(), "");
    const Group group = Group::open(at);
    refs.group("", group.dialect() != nullptr ? group.attributes().all() : Value::object());
    for (const Node& node : group.nodes()) {
        if (node.kind == NodeKind::array) {
            unless_refused(refused, [&] { add_array(refs, *at.store, group.open_array(node.path), node.path); });
        } else {
            const Group below = group.open_group(node.path);
            refs.group(node.path, below.dialect() != nullptr ? below.attributes().all() : Value::object());
        }
    }
}

// ---- array files

/// Lengths of contiguous pieces that make up the array: as large as most_piece_bytes allows, or larger if there would
/// be more than most_pieces.
Shape pieces_of(const Packed& packed) {
    const int rank = packed.shape.rank();
    const std::int64_t count = element_count(packed.shape);
    Shape best = Shape::filled(rank, 1);
    if (count == 0) return best;
    std::int64_t elements = 1;
    const auto good_enough = [&](std::int64_t n) { return count / n <= most_pieces; };
    for (int i = 0; i < rank; ++i) {
        const int d = packed.order == Order::C ? rank - 1 - i : i;
        const std::int64_t length = packed.shape[d];
        std::int64_t chosen = 1;
        for (const std::int64_t n : divisors(length)) {
            const bool small = elements * n <= most_piece_bytes / std::max<std::int64_t>(packed.dtype.size(), 1);
            if (!small && good_enough(elements * chosen)) break;
            chosen = n;
        }
        best[d] = chosen;
        elements *= chosen;
        if (chosen < length) break;
    }
    return best;
}

void add_chunked(Collector& refs, const std::string& prefix, const std::string& file, const PackedArray& array) {
    const ChunkGrid grid(array.shape, array.chunks);
    for (const PackedArray::Chunk& chunk : array.stored) {
        refs.bytes(prefix, grid.index(chunk.number), file, {.key = {}, .offset = chunk.offset, .size = chunk.size});
    }
}

void add_packed(Collector& refs, const std::string& prefix, const std::string& file, const Packed& packed) {
    if (packed.chunked) {
        const PackedArray& array = *packed.chunked;
        refs.document(prefix, v2_array_name, chunked_document(array, array.shape, array.chunks));
        refs.document(prefix, v2_attributes_name, packed.attributes);
        return add_chunked(refs, prefix, file, array);
    }
    Shape pieces = packed.shape;
    if (packed.row_stride != 0) pieces[0] = 1;  // other arrays lie between the rows
    const ChunkGrid grid(packed.shape, packed.row_stride != 0 ? pieces : pieces_of(packed));
    refs.document(prefix, v2_array_name, packed_document(packed, grid.chunks()));
    refs.document(prefix, v2_attributes_name, packed.attributes);
    const auto size = static_cast<std::uint64_t>(byte_count(grid.chunks(), packed.dtype.size()));
    const auto step = packed.row_stride != 0 ? static_cast<std::uint64_t>(packed.row_stride) : size;
    // A piece is whole along all dimensions that are faster than the one that it cuts. So pieces lie in the file in
    // their own order.
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
        refs.bytes(prefix, piece_index(grid, n, packed.order), file,
                   {.key = {}, .offset = packed.offset + static_cast<std::uint64_t>(n) * step, .size = size});
    }
}

void add_file(Collector& refs, const Located& at, const OnRefusal& refused) {
    const std::string file = at.file.path.string();
    bool all = true;
    const OnRefusal one = [&](const Error& e) {
        all = false;
        refused(e);
    };
    const auto arrays = packed_arrays(at, refused ? one : nullptr);
    const bool alone = at.file.member.has_value() || (all && arrays.size() == 1);
    const std::vector<ArrayFileGroup> groups = file_groups(at);
    const bool grouped = !groups.empty() && !at.file.member;
    if (grouped || !alone) refs.group("", grouped ? groups.front().attributes : Value::object());
    for (const auto& [name, packed] : arrays) add_packed(refs, alone && !grouped ? "" : name, file, packed);
}

}  // namespace

Value references(const std::filesystem::path& path, const OnRefusal& refused) {
    Collector refs;
    const std::string absolute = is_local(path) ? std::filesystem::absolute(path).string() : name_elsewhere(path);
    try {
        // Opened for changes, so that an interrupted batch is finished: references must not lead to its staged values.
        const Located at = locate(absolute, {});
        if (at.place && !at.file.member) {
            add_place(refs, at, refused);
        } else {
            add_file(refs, at, refused);
        }
    } catch (const Error& e) {
        if (std::string_view(e.what()).starts_with(split_array_path(absolute).path.string())) throw;
        throw e.within(path.string());
    }
    return std::move(refs).result();
}

}  // namespace tessera
