#include <tessera/absent.h>

#include <tessera/array.h>
#include <tessera/copy_elements.h>

#include <algorithm>

#include "array_access.h"
#include "array_state.h"
#include "stored_chunks.h"

namespace tessera {

std::optional<ElementBytes> Array::absent_element() const {
    if (dtype().is_variable() || !state_->store->lists()) return std::nullopt;
    try {
        return fill_element(state_->loaded()->metadata);
    } catch (const Error&) {
        return std::nullopt;  // whoever reads an absent chunk learns what is wrong with the fill
    }
}

bool Array::visit_stored(const std::function<void(const Region&)>& each) const {
    const auto loaded = state_->loaded();
    bool known = true;
    const auto chunk = [&](const Index& index) {
        if (in_grid(loaded->grid, index)) each(loaded->grid.chunk_region(index));
    };
    for_each_stored(
        *state_, *loaded,
        {.each = [&](const Index& index, const std::string&, const auto&) { chunk(index); },
         .in_the_way = [&](const Index* index, const std::string&,
                           const std::string&) { index != nullptr ? chunk(*index) : void(known = false); }});
    Index last = loaded->grid.grid();
    for (std::int64_t& index : last) --index;
    state_->require_chunk(*loaded, last);  // of an array that is gone, or shorter by now, nothing is listed
    return known;
}

void fill_as_absent(const ArraySource& source, const MutableArrayView& out) {
    fill_elements(out, source.info().dtype, source.absent_element().value().data());
}

bool add_stored_blocks(const ArraySource& source, const ChunkGrid& blocks, CountedVector<std::int64_t>& numbers) {
    const std::int64_t most = blocks.chunk_count();
    bool few = true;
    const bool known = source.visit_stored([&](const Region& stored) {
        const Region touched = blocks.overlapping(stored);
        few = few && touched.count() <= most - std::ssize(numbers);
        if (!few) return;
        for (std::int64_t n = 0; n < touched.count(); ++n) numbers.push_back(blocks.linear(index_in(touched, n)));
    });
    return known && few;
}

}  // namespace tessera
