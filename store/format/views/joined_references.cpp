// One array of many files, by references alone. Its chunks are cut so that each lies in one file and is contiguous
// there: whole along all dimensions that are faster than the one that it cuts.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/chunk_grid.h>
#include <tessera/convert.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/place.h>
#include <tessera/references.h>
#include <tessera/store_kind.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "file_chunks.h"
#include "packed_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t most_references = 1 << 20;
// Memory for one reference, as a Value and as text, without its file's name.
constexpr std::uint64_t reference_memory = 512;

Shape with_axis(const Shape& shape, int axis, std::int64_t length) {
    Shape longer;
    for (int d = 0; d < shape.rank() + 1; ++d) {
        longer.push_back(d == axis ? length : shape[d > axis ? d - 1 : d]);
    }
    return longer;
}

/// One of the arrays that are joined.
struct Part {
    std::string name;
    std::string file;  ///< as the references name it
    Packed packed;
    std::int64_t length = 1;  ///< along the axis
    Shape pieces = {};        ///< of its chunks in the joined array
};

/// A file's name in references that lie in `o.folder`.
std::string named_from(const fs::path& file, const JoinedReferences& o) {
    if (!is_local(file)) return name_elsewhere(file);
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    if (error) throw io_error("cannot follow", file.string(), error.value());
    const fs::path folder = real_path(o.folder.empty() ? fs::path(".") : o.folder);
    const fs::path below = real.lexically_relative(folder);
    if (!below.empty() && *below.begin() != "..") return below.string();
    if (o.allow_outside) return real.string();
    throw unsupported("{}: lies outside of {}, where the references are to lie; put them above all files",
                      file.string(), folder.string())
        .advising(Action::allow_outside, "names it by its absolute path");
}

std::vector<Part> parts_of(std::span<const std::string> files, const JoinedReferences& o) {
    std::vector<Part> parts;
    for (const std::string& name : files) {
        Located at;
        auto arrays = in_context([&] { return name; },
                                 [&] {
                                     at = locate(name);
                                     return packed_arrays(at);
                                 });
        if (arrays.size() != 1) {
            throw invalid_argument("{}: holds {} arrays; name one: {}::{}", name, arrays.size(), name,
                                   arrays.front().first);
        }
        if (arrays.front().second.row_stride != 0) {
            throw unsupported("{}: other variables lie between its records", name)
                .advising(Action::without_references, "does not mind");
        }
        parts.push_back({name, named_from(at.file.path, o), std::move(arrays.front().second)});
    }
    return parts;
}

[[noreturn]] void refuse(const Part& part, std::string_view what, std::string_view found, const Part& other,
                         std::string_view expected) {
    throw invalid_argument("{}: its {} is {}, but that of {} is {}; references cannot convert it", part.name, what,
                           found, other.name, expected)
        .advising(Action::without_references, "does");
}

/// Throws invalid_argument unless a part can follow the first one.
void require_fitting(const Part& part, const Part& first, const JoinedReferences& o) {
    if (part.packed.dtype != first.packed.dtype) {
        refuse(part, "dtype", part.packed.dtype.to_string(), first, first.packed.dtype.to_string());
    }
    if (const auto& a = part.packed.chunked, &b = first.packed.chunked; a || b) {
        const auto codecs = [](const PackedArray& array) {
            return Value(Value::Array{array.filters, array.compressor, array.fill}).dump();
        };
        // Along the axis they may differ: see rectilinear_document().
        const auto chunks = [&](const auto& array) {
            if (!array) return std::string("none");
            Shape shape = array->chunks;
            if (!o.new_axis && o.axis < shape.rank()) shape[o.axis] = b ? b->chunks[o.axis] : 1;
            return shape.to_string();
        };
        if (chunks(a) != chunks(b)) {
            refuse(part, "chunk shape", a ? a->chunks.to_string() : "none", first, b ? b->chunks.to_string() : "none");
        }
        if (codecs(*a) != codecs(*b)) refuse(part, "list of filters", codecs(*a), first, codecs(*b));
    }
    Shape shape = part.packed.shape;
    Shape expected = first.packed.shape;
    if (!o.new_axis && shape.rank() == expected.rank()) shape[o.axis] = expected[o.axis] = 1;
    if (shape != expected) refuse(part, "shape", part.packed.shape.to_string(), first, first.packed.shape.to_string());
}

/// The common order of elements. A part with at most one dimension longer than 1 has either order.
Order order_of(const std::vector<Part>& parts) {
    const Part* known = nullptr;
    for (const Part& part : parts) {
        if (std::ranges::count_if(part.packed.shape, [](std::int64_t n) { return n != 1; }) <= 1) continue;
        if (known != nullptr && known->packed.order != part.packed.order) {
            refuse(part, "order of elements", part.packed.order == Order::C ? "C" : "F", *known,
                   known->packed.order == Order::C ? "C" : "F");
        }
        known = &part;
    }
    return known == nullptr ? parts.front().packed.order : known->packed.order;
}

/// Lengths of pieces that are contiguous in every part. Along `axis` (-1: none) they divide all the lengths.
Shape pieces_of(const std::vector<Part>& parts, int axis, Order order) {
    const Packed& first = parts.front().packed;
    const int rank = first.shape.rank();
    std::int64_t common = 0;
    for (const Part& part : parts) common = std::gcd(common, part.length);
    Shape best = Shape::filled(rank, 1);
    std::int64_t bytes = std::max<std::int64_t>(first.dtype.size(), 1);
    const std::int64_t most = most_pieces / std::ssize(parts);  // of each part
    std::int64_t left = element_count(first.shape);
    for (int i = 0; i < rank; ++i) {
        const int d = order == Order::C ? rank - 1 - i : i;
        const std::int64_t length = d == axis ? common : first.shape[d];
        std::int64_t chosen = 1;
        for (const std::int64_t n : divisors(length)) {
            if (bytes * n > most_piece_bytes && left / chosen <= std::max<std::int64_t>(most, 1)) break;
            chosen = n;
        }
        best[d] = chosen;
        bytes *= chosen;
        left /= chosen;
        const bool whole = std::ranges::all_of(
            parts, [&](const Part& part) { return chosen == (d == axis ? part.length : first.shape[d]); });
        if (!whole) break;
    }
    return best;
}

/// The references to one part, whose first chunk along the axis is `begin`. Keys are as in the formats, v3 or v2.
void add_part(Value::Object& refs, const Part& part, std::int64_t begin, const JoinedReferences& o, Order order,
              const KeyScheme& keys) {
    const Shape& pieces = part.pieces;
    const ChunkGrid grid(part.packed.shape, pieces);
    const auto add = [&](Index chunk, std::uint64_t offset, std::uint64_t size) {
        if (!o.new_axis) chunk[o.axis] += begin;
        if (o.new_axis) chunk = with_axis(chunk, o.axis, begin);
        Value place = Value::array();
        place.push_back(part.file);
        place.push_back(offset);
        place.push_back(size);
        refs.emplace_back(keys.key(chunk), std::move(place));
    };
    if (part.packed.chunked) {
        for (const PackedArray::Chunk& chunk : part.packed.chunked->stored) {
            add(grid.index(chunk.number), chunk.offset, chunk.size);
        }
        return;
    }
    const auto size = static_cast<std::uint64_t>(byte_count(pieces, part.packed.dtype.size()));
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
        add(piece_index(grid, n, order), part.packed.offset + static_cast<std::uint64_t>(n) * size, size);
    }
}

/// Parts that are chunks already keep them. Along the axis every part but the last must end where a chunk ends.
void keep_chunks(std::vector<Part>& parts, const JoinedReferences& o) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].pieces = parts[i].packed.chunked->chunks;
        if (o.new_axis || i + 1 == parts.size() || parts[i].length % parts[i].pieces[o.axis] == 0) continue;
        throw unsupported("{}: its length {} is no multiple of its chunks' length {}", parts[i].name, parts[i].length,
                          parts[i].pieces[o.axis])
            .advising(Action::without_references, "does not mind");
    }
}

/// The document of v3 for chunks that differ in length along the axis; `document` is that of v2 with the first's.
Value rectilinear_document(const Value& document, const Value& attributes, const std::vector<Part>& parts,
                           const JoinedReferences& o) {
    const Dialect& v2 = dialect_named("v2");
    const Dialect& v3 = dialect_named("v3");
    Conversion made = convert_metadata(v2.parse(document.dump()), attributes, v2, v3);
    std::vector<ChunkEdges> edges;
    for (const std::int64_t length : parts.front().pieces) edges.emplace_back(length);
    std::vector<ChunkEdges::Run> along;
    for (const Part& part : parts) {
        const std::int64_t length = part.pieces[o.axis];
        along.push_back({length, ceil_div(part.length, length)});
    }
    edges[static_cast<std::size_t>(o.axis)] = ChunkEdges(along);
    made.metadata.keys = v3.default_keys();
    set_edges(made.metadata, std::move(edges));
    Value v3_document = v3.document(made.metadata);
    v3_document.set("attributes", made.attributes.value_or(Value::object()));
    return v3_document;
}

/// Those of the first part, with no name for a new dimension; and what is wished besides.
Value joined_attributes(const Packed& first, const JoinedReferences& o) {
    Value attributes = first.attributes;
    const Value* const named = attributes.find(dimensions_attribute);
    if (o.new_axis && named != nullptr && named->is_array()) {
        Value::Array names = named->as_array();
        names.insert(names.begin() + std::min<std::ptrdiff_t>(o.axis, std::ssize(names)), Value());
        attributes.set(dimensions_attribute, Value(std::move(names)));
    }
    for (const auto& [name, value] : o.attributes.as_object()) attributes.set(name, value);
    return attributes;
}

/// Of the parts, once they fit together.
struct Joined {
    std::vector<Part> parts;
    Packed whole;         ///< its shape is that of all
    Shape pieces;         ///< of the first part
    bool differ = false;  ///< pieces of others are of other lengths
};

std::int64_t joined_length(std::vector<Part>& parts, const JoinedReferences& o) {
    std::int64_t length = 0;
    for (Part& part : parts) {
        require_fitting(part, parts.front(), o);
        if (!o.new_axis) part.length = part.packed.shape[o.axis];
        length += part.length;
    }
    return length;
}

Joined joined_parts(std::span<const std::string> files, const JoinedReferences& o) {
    Joined joined{.parts = parts_of(files, o), .whole = {}, .pieces = {}};
    std::vector<Part>& parts = joined.parts;
    const Packed first = parts.front().packed;
    const int axes = first.shape.rank() + (o.new_axis ? 1 : 0);
    if (o.axis < 0 || o.axis >= axes) throw invalid_argument("no axis {} of {}", o.axis, axes);
    const std::int64_t length = joined_length(parts, o);
    joined.whole = first;
    joined.whole.order = order_of(parts);
    if (o.new_axis) {
        joined.whole.shape = with_axis(first.shape, o.axis, length);
    } else {
        joined.whole.shape[o.axis] = length;
    }
    // An empty part has no chunks, and would leave no length to divide.
    std::erase_if(parts, [](const Part& part) { return element_count(part.packed.shape) == 0; });
    joined.pieces = Shape::filled(first.shape.rank(), 1);
    if (parts.empty()) return joined;
    if (first.chunked) {
        keep_chunks(parts, o);
        joined.pieces = parts.front().pieces;
    } else {
        joined.pieces = pieces_of(parts, o.new_axis ? -1 : o.axis, joined.whole.order);
        for (Part& part : parts) part.pieces = joined.pieces;
    }
    joined.differ = std::ranges::any_of(parts, [&](const Part& part) { return part.pieces != joined.pieces; });
    return joined;
}

std::uint64_t references_of(const std::vector<Part>& parts) {
    std::int64_t count = 0;
    for (const Part& part : parts) count += ChunkGrid(part.packed.shape, part.pieces).chunk_count();
    if (count > most_references) {
        throw unsupported("{} references would be needed, more than {}; join along an axis that is slower in memory",
                          count, most_references)
            .advising(Action::without_references, "needs none");
    }
    return static_cast<std::uint64_t>(count);
}

void add_documents(Value::Object& refs, const Joined& joined, const Value& attributes, const JoinedReferences& o) {
    const Shape chunks = o.new_axis ? with_axis(joined.pieces, o.axis, 1) : joined.pieces;
    const Value document = joined.whole.chunked ? chunked_document(*joined.whole.chunked, joined.whole.shape, chunks)
                                                : packed_document(joined.whole, chunks);
    if (joined.differ) {
        refs.emplace_back(v3_document_name,
                          rectilinear_document(document, attributes, joined.parts, o).dump({.indent = 4}));
    } else {
        refs.emplace_back(v2_array_name, document.dump({.indent = 4}));
        refs.emplace_back(v2_attributes_name, attributes.dump({.indent = 4}));
    }
}

}  // namespace

Value joined_references(std::span<const std::string> files, const JoinedReferences& o) {
    if (files.empty()) throw invalid_argument("no files to join");
    const Joined joined = joined_parts(files, o);
    const MemoryHold memory(references_of(joined.parts) * reference_memory);
    Value::Object refs;
    add_documents(refs, joined, joined_attributes(joined.whole, o), o);
    const KeyScheme keys = dialect_named(joined.differ ? "v3" : "v2").default_keys();
    std::int64_t begin = 0;
    for (const Part& part : joined.parts) {
        add_part(refs, part, begin, o, joined.whole.order, keys);
        begin += o.new_axis ? 1 : part.length / part.pieces[o.axis];
    }
    Value all = Value::object();
    all.set("version", 1);
    all.set("refs", Value(std::move(refs)));
    return all;
}

}  // namespace tessera
