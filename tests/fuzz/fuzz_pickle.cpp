// Pickles: what is read is written again and read as the same.
#include "fuzz.h"
#include "pickle.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const PickledStrings a = read_pickled_strings(Buffer(input));
    Buffer again;
    PickleWriter writer(a.dtype.kind(), a.shape, false, [&](ByteSpan bytes) { again.append(bytes); });
    for (const VariableSlot& element : a.elements) writer.add(element.view());
    writer.finish();
    const PickledStrings b = read_pickled_strings(std::move(again));
    if (!(b.shape == a.shape) || b.elements.size() != a.elements.size()) __builtin_trap();
    for (std::size_t i = 0; i < a.elements.size(); ++i) {
        if (a.elements[i].view() != b.elements[i].view()) __builtin_trap();
    }
}
