#include <tessera/absent.h>

#include <tessera/array.h>
#include <tessera/copy_elements.h>

#include <algorithm>

#include "array_access.h"
#include "array_state.h"
#include "stored_chunks.h"

namespace tessera {

bool knows_absent(const ArraySource& source) {
    const auto* const array = as_array(source);
    return array != nullptr && !array->dtype().is_variable() && ArrayAccess::state(*array)->store->lists();
}

void fill_as_absent(const ArraySource& source, const MutableArrayView& out) {
    const auto loaded = ArrayAccess::state(*as_array(source))->loaded();
    fill_elements(out, loaded->metadata.dtype, loaded->fill());
}

bool add_stored_blocks(const ArraySource& source, const ChunkGrid& blocks, CountedVector<std::int64_t>& numbers) {
    const ArrayState& state = *ArrayAccess::state(*as_array(source));
    const auto loaded = state.loaded();
    bool known = true;
    const auto add = [&](const Index& chunk) {
        if (!in_grid(loaded->grid, chunk)) return;
        const Region touched = blocks.overlapping(loaded->grid.chunk_region(chunk));
        for (std::int64_t n = 0; n < touched.count(); ++n) numbers.push_back(blocks.linear(index_in(touched, n)));
    };
    for_each_stored(state, *loaded,
                    {.each = [&](const Index& chunk, const std::string&, const auto&) { add(chunk); },
                     .in_the_way = [&](const Index* chunk, const std::string&,
                                       const std::string&) { chunk != nullptr ? add(*chunk) : void(known = false); }});
    Index last = loaded->grid.grid();
    for (std::int64_t& index : last) --index;
    state.require_chunk(*loaded, last);  // of an array that is gone, or shorter by now, nothing is listed
    return known;
}

}  // namespace tessera
