// The slots of variable-length elements, in C order, for codecs that lay them out themselves.
#pragma once

#include <span>
#include <vector>

#include <tessera/view.h>

namespace tessera {

/// The arena of a view of variable-length elements. Throws invalid_argument if there is none.
[[nodiscard]] Arena& arena_of(const MutableArrayView& out);

/// The slots of a view. They point to the same content.
[[nodiscard]] std::vector<VariableSlot> gather_slots(const ArrayView& v);
/// Puts slots into a view as they are. Their bytes must live as long as `out.arena`.
void scatter_slots(std::span<const VariableSlot> slots, const MutableArrayView& out);

}  // namespace tessera
