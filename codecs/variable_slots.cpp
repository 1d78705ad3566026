#include "variable_slots.h"

#include <tessera/copy_elements.h>
#include <tessera/error.h>

namespace tessera {

namespace {

/// Slots as raw bytes: copying them copies no content.
DType slot_bytes() {
    return DType::raw(sizeof(VariableSlot));
}

}  // namespace

Arena& arena_of(const MutableArrayView& out) {
    if (out.arena == nullptr)
        throw invalid_argument("variable-length elements are decoded into an arena; use an NDArray");
    return *out.arena;
}

std::vector<VariableSlot> gather_slots(const ArrayView& v) {
    std::vector<VariableSlot> slots(static_cast<std::size_t>(v.count()));
    copy_elements({v.data, slot_bytes(), v.shape, v.strides},
                  view_bytes(reinterpret_cast<std::byte*>(slots.data()), slot_bytes(), v.shape));
    return slots;
}

void scatter_slots(std::span<const VariableSlot> slots, const MutableArrayView& out) {
    copy_elements(view_bytes(reinterpret_cast<const std::byte*>(slots.data()), slot_bytes(), out.shape),
                  {out.data, slot_bytes(), out.shape, out.strides, nullptr});
}

}  // namespace tessera
