#include "tile_array.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/complex_part.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/picture.h>
#include <tessera/slices.h>

#include "array_access.h"
#include "region_io.h"
#include "shown_elements.h"
#include "stored_chunks.h"

namespace tessera {

namespace {

// Length of the blocks, along each dimension, in which arrays without chunks are read.
constexpr std::int64_t plain_block = 1024;
// The most bytes of a slice of a compressed stream, which is read as one block.
constexpr std::int64_t most_streamed = std::int64_t{512} << 20;
// The largest decoded chunk that is kept for neighbouring slices.
constexpr std::int64_t most_kept = std::int64_t{8} << 20;
// A folder with more names than this takes too long to list.
constexpr std::size_t most_listed = 300'000;

/// Whether a chain decodes some elements of a chunk without the others.
bool decodes_parts(const std::vector<CodecConfig>& codecs) {
    static constexpr std::array<std::string_view, 3> whole_or_block{"bytes", "transpose", "blosc"};
    for (const CodecConfig& codec : codecs) {
        if (is_shard(codec)) {
            const Value* inner = codec.configuration.find("codecs");
            if (inner == nullptr || !inner->is_array()) return false;
            std::vector<CodecConfig> chain;
            for (const Value& one : inner->as_array()) chain.push_back(codec_from_json(one));
            return decodes_parts(chain);
        }
        if (std::ranges::find(whole_or_block, codec.name) == whole_or_block.end()) return false;
    }
    return true;
}

struct TooMany {};

}  // namespace

static void require_tiles(const ArrayInfo& info, const std::string& name) {
    if (!has_picture(info.dtype)) {
        throw unsupported("{}: elements of {} are not numbers, so there are no tiles", name, info.dtype.to_string());
    }
    if (info.shape.rank() < 2) {
        throw invalid_argument("{}: tiles take two dimensions, the shape is {}", name, info.shape.to_string());
    }
}

TileArray::TileArray(std::shared_ptr<const ArraySource> s, std::shared_ptr<TileCache> c, std::string name)
    : source(std::move(s)),
      cache(std::move(c)),
      identity(std::move(name)),
      info(source->info()),
      native(native_dtype(info.dtype)),
      meaning(shown_meaning(*source, false)) {
    require_tiles(info, source->name());
    missing = missing_codes(*source, meaning, "auto");
    std::erase_if(missing, [](double v) { return v != v; });
    const auto* array = as_array(*source);
    if (const auto* field = dynamic_cast<const ArrayField*>(source.get())) {
        array = &field->array();
        const std::string_view field_name = std::string_view(field->name()).substr(array->name().size() + 2);  // "a::b"
        offset = find_field(array->dtype(), field_name, array->name()).offset;
    }
    complex = dynamic_cast<const ComplexPart*>(source.get());
    if (complex != nullptr) array = as_array(complex->whole());
    // Where chunks differ in length, blocks of one shape do not lie in one value each, so that none has a version.
    if (array != nullptr && array->metadata().edges.empty()) {
        state = ArrayAccess::state(*array).get();
        loaded = state->loaded();
        chunk_bytes = byte_count(array->chunks(), array->dtype().size());
        reads_parts = decodes_parts(loaded->metadata.codecs);
    } else if (info.access != Access::any) {
        reads_parts = false;
    }
}

void TileArray::require_slice(const TileSlice& slice) const {
    const int rank = info.shape.rank();
    const auto inside = [&](int d) { return d >= 0 && d < rank; };
    if (!inside(slice.rows) || !inside(slice.columns) || slice.rows == slice.columns) {
        throw invalid_argument("{}: expected two different dimensions from 0 to {}, found {} and {}", source->name(),
                               rank - 1, slice.rows, slice.columns);
    }
    if (slice.at.empty()) return;
    if (slice.at.rank() != rank) {
        throw invalid_argument("{}: expected {} indices of a slice, found {}", source->name(), rank,
                               slice.at.to_string());
    }
    for (int d = 0; d < rank; ++d) {
        if (d == slice.rows || d == slice.columns) continue;
        if (slice.at[d] < 0 || slice.at[d] >= info.shape[d]) {
            throw out_of_bounds("{}: index {} along dimension {} is outside of the shape {}", source->name(),
                                slice.at[d], d, info.shape.to_string());
        }
    }
}

TileBox TileArray::elements_of(const TileSlice& slice) const {
    return {0, 0, info.shape[slice.rows], info.shape[slice.columns]};
}

TileBox TileArray::block_of(const TileSlice& slice) const {
    if (info.chunks.rank() == info.shape.rank()) {
        return {0, 0, info.chunks[slice.rows], info.chunks[slice.columns]};
    }
    if (info.access == Access::any) return {0, 0, plain_block, plain_block};
    const TileBox all = elements_of(slice);
    if (checked_multiply(checked_multiply(all.rows, all.columns, "slice"), native.size(), "slice") > most_streamed) {
        throw unsupported(
            "{}: a slice of this compressed stream is too large to be looked at; copy the array into chunks first",
            source->name());
    }
    return {0, 0, std::max<std::int64_t>(1, all.rows), std::max<std::int64_t>(1, all.columns)};
}

std::int64_t TileArray::decoded_bytes(const TileSlice& slice) const {
    if (chunk_bytes > 0) return chunk_bytes;
    if (info.chunks.rank() == info.shape.rank())
        return std::max<std::int64_t>(1, byte_count(info.chunks, native.size()));
    const TileBox block = block_of(slice);
    return block.rows * block.columns * native.size();
}

Index TileArray::at_of(const TileSlice& slice) const {
    return slice.at.empty() ? Index::filled(info.shape.rank(), 0) : slice.at;
}

Index TileArray::value_of(const TileSlice& slice, std::int64_t block_row, std::int64_t block_column) const {
    const TileBox block = block_of(slice);
    Index at = at_of(slice);
    at[slice.rows] = block_row * block.rows;
    at[slice.columns] = block_column * block.columns;
    if (!loaded) return at;
    // The dimensions of a field's sub-array lie within each element.
    Index value;
    for (int d = 0; d < loaded->grid.grid().rank(); ++d) value.push_back(at[d] / loaded->grid.chunks()[d]);
    return value;
}

std::optional<std::string> TileArray::version_of(const Index& value) const {
    if (state == nullptr) return "";
    const auto stamp = state->store->stamp(state->chunk_key(*loaded, value));
    if (!stamp) return std::nullopt;
    if (stamp->by_content) return fmt::format("{}.{}", stamp->size, stamp->id);
    // A file may be rewritten in place and get its old time back.
    return fmt::format("{}.{}.{}.{}", stamp->size, stamp->modified, stamp->id, stamp->changed);
}

double TileArray::fill_number() const {
    const DType& dtype = info.dtype;
    if (complex != nullptr && loaded) return complex->number_of(loaded->fill());
    ElementBytes element = zero_element(dtype);
    if (loaded) std::memcpy(element.data(), loaded->fill() + offset, element.size());
    return element_number(dtype, meaning.stored, element);
}

Region TileArray::region_of(const TileSlice& slice, const TileBox& box) const {
    Region region(at_of(slice), Shape::filled(info.shape.rank(), 1));
    region.start[slice.rows] = box.row;
    region.start[slice.columns] = box.column;
    region.extent[slice.rows] = box.rows;
    region.extent[slice.columns] = box.columns;
    return region;
}

MutableArrayView TileArray::view_of(const TileSlice& slice, const Region& region, NDArray& elements) const {
    Strides strides = Strides::filled(info.shape.rank(), native.size());
    strides[slice.rows] = region.extent[slice.columns] * native.size();
    return {elements.bytes().data(), native, region.extent, strides, nullptr};
}

void TileArray::read_into(const TileSlice& slice, const TileBox& box, NDArray& elements, const IoOptions& io) const {
    const Region region = region_of(slice, box);
    source->read_into(region, view_of(slice, region, elements), io);
}

bool TileArray::keeps_chunks(const TileSlice& slice) const {
    if (!loaded || reads_parts) return false;
    const std::int64_t bytes = byte_count(info.chunks, native.size());
    return bytes <= most_kept && bytes > info.chunks[slice.rows] * info.chunks[slice.columns] * native.size();
}

Region TileArray::chunk_of(const TileSlice& slice, std::int64_t block_row, std::int64_t block_column) const {
    Region chunk(at_of(slice), info.chunks);
    for (int d = 0; d < info.shape.rank(); ++d) {
        const std::int64_t number = d == slice.rows      ? block_row
                                    : d == slice.columns ? block_column
                                                         : chunk.start[d] / info.chunks[d];
        chunk.start[d] = number * info.chunks[d];
        chunk.extent[d] = std::min(info.chunks[d], info.shape[d] - chunk.start[d]);
    }
    return chunk;
}

void TileArray::copy_slice(const NDArray& chunk, const Region& region, const TileSlice& slice, const TileBox& box,
                           NDArray& elements) const {
    const Region wanted = region_of(slice, box);
    copy_elements(chunk.view().part(within(region, wanted)), view_of(slice, wanted, elements));
}

void TileArray::list_values() const {
    const auto begun = std::chrono::steady_clock::now();
    if (begun < listing_.until) return;
    listing_.values.clear();
    listing_.complete = true;
    const Shape& grid = loaded->grid.grid();
    try {
        for_each_stored(*state, *loaded,
                        {.each =
                             [&](const Index& value, const std::string&, const KeyValueStore::ValueSize&) {
                                 for (int d = 0; d < grid.rank(); ++d) {
                                     if (value[d] >= grid[d]) return;
                                 }
                                 listing_.values.push_back(loaded->grid.linear(value));
                                 if (listing_.values.size() > most_listed) throw TooMany();
                             },
                         .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
    } catch (const TooMany&) {
        listing_.complete = false;
        listing_.values.clear();
    }
    const auto now = std::chrono::steady_clock::now();
    listing_.until = now + std::max<std::chrono::steady_clock::duration>(std::chrono::seconds(2), 10 * (now - begun));
}

/// Whether a value holds elements of the slice in which `wanted` lies.
static bool is_in_slice(const Index& value, const Index& wanted, const TileSlice& slice) {
    for (int d = 0; d < value.rank(); ++d) {
        if (d != slice.rows && d != slice.columns && value[d] != wanted[d]) return false;
    }
    return true;
}

std::optional<std::vector<BlockRange>> TileArray::stored_in(const TileSlice& slice, const BlockRange& range) const {
    if (state == nullptr) return std::nullopt;
    const std::lock_guard lock(mutex_);
    list_values();
    if (!listing_.complete) return std::nullopt;
    const TileBox block = block_of(slice);
    // A value holds this many blocks along a dimension. A dimension of a sub-array lies in one value as a whole.
    const Shape& grid = loaded->grid.grid();
    const auto blocks = [&](int d, std::int64_t length) {
        return d < grid.rank() ? loaded->grid.chunks()[d] / length : 1;
    };
    const auto place = [&](const Index& value, int d) { return d < grid.rank() ? value[d] : 0; };
    const std::int64_t rows = blocks(slice.rows, block.rows);
    const std::int64_t columns = blocks(slice.columns, block.columns);
    const Index wanted = value_of(slice, 0, 0);
    std::vector<BlockRange> found;
    for (const std::int64_t number : listing_.values) {
        const Index value = loaded->grid.index(number);
        if (!is_in_slice(value, wanted, slice)) continue;
        const std::int64_t first_row = place(value, slice.rows) * rows;
        const std::int64_t first_column = place(value, slice.columns) * columns;
        BlockRange part{std::max(range.row, first_row), std::max(range.column, first_column), 0, 0};
        part.rows = std::min(range.row + range.rows, first_row + rows) - part.row;
        part.columns = std::min(range.column + range.columns, first_column + columns) - part.column;
        if (part.rows > 0 && part.columns > 0) found.push_back(part);
    }
    return found;
}

}  // namespace tessera
