// Dangling views must not compile: check.py expects an error on each line that ends in "// refused", and on no other.
#include <tessera/tessera.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

using namespace tessera;

struct Reading {
    std::int64_t time;
    float value;
};
struct Other {
    std::int64_t time;
    float value;
};
struct Owner {
    std::vector<int> elements;
};
TESSERA_STRUCTURE(Reading, time);       // refused
TESSERA_STRUCTURE(Other, value, time);  // refused
TESSERA_STRUCTURE(Owner, elements);     // refused

namespace {

std::vector<std::uint8_t> elements() {
    return std::vector<std::uint8_t>(6, 5);
}

void stay_valid(Array& a, Array& b, Edit& edit, const Region& region) {
    a.write("1", view(elements()));
    a.write("1", view(elements(), {2, 3}));
    b.write(region, a.read(region));
    b.write(region, a.read(region).view());
    edit->write(region, a.read(region));
    b.append(a.read("0"));
    for (const float x : a.read("0").values<float>()) b.fill(Selection::parse("0", b.shape()), Value(x));
    for (const std::byte x : a.read("0").bytes()) b.fill(Selection::parse("0", b.shape()), Value(static_cast<int>(x)));

    std::vector<std::uint8_t> own = elements();
    const auto of_own = view(own);
    a.write("1", of_own);
    const ArrayView of_span = view(std::span(own), {2, 3});
    a.write("1", of_span);
    a.read_into(region, view(own));

    NDArray array = a.read("0");
    const ArrayView of_array = array;
    a.write("1", of_array);
    a.read_into(region, array);
    const auto values = a.read("0").values<float>();
    const std::span<const float> of_values = values;
    b.fill(Selection::parse("0", b.shape()), Value(of_values[0] + values[0]));
}

void dangle(Array& a, Array& b, const Region& region) {
    const auto kept = view(elements(), {2, 3});
    b.write("1", kept);                                                 // refused
    const auto moved = view(std::move(kept));                           // refused
    const ArrayView of_vector = view(elements());                       // refused
    const ArrayView of_array = a.read("0");                             // refused
    const ArrayView braced{a.read("0")};                                // refused
    const ArrayView of_view = a.read("0").view();                       // refused
    const MutableArrayView to_write = a.read("0");                      // refused
    const auto typed = a.read("0").view().typed<float>();               // refused
    const std::span<const float> values = a.read("0").values<float>();  // refused
    const std::span<const std::byte> bytes = a.read("0").bytes();       // refused

    ArrayView assigned;
    assigned = a.read("0");                                               // refused
    const RegionWrite write{region, a.read("0")};                         // refused
    const RegionRead read{region, a.read("0")};                           // refused
    const auto source = view_source(a.read("0"), "elements");             // refused
    const auto of_temporary = view_source(view(elements()), "elements");  // refused
    a.read_into(region, view(elements()));                                // refused
}

}  // namespace
