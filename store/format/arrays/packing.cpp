#include <tessera/packing.h>

#include <cmath>

namespace tessera {

namespace {

std::optional<double> finite(const Value* value) {
    // Some writers make a list of each attribute.
    if (value != nullptr && value->is_array() && value->as_array().size() == 1) value = &value->as_array()[0];
    if (value == nullptr || !value->is_number() || !std::isfinite(value->as_double())) return std::nullopt;
    return value->as_double();
}

}  // namespace

std::optional<Packing> packing_of(const Value& attributes) {
    if (!attributes.is_object()) return std::nullopt;
    const auto scale = finite(attributes.find("scale_factor"));
    const auto offset = finite(attributes.find("add_offset"));
    Packing packing{.scale = scale.value_or(1), .offset = offset.value_or(0), .scaled = scale || offset};
    packing.valid_min = finite(attributes.find("valid_min"));
    packing.valid_max = finite(attributes.find("valid_max"));
    const Value* range = attributes.find("valid_range");
    if (range != nullptr && range->is_array() && range->as_array().size() == 2) {
        packing.valid_min = finite(&range->as_array()[0]);
        packing.valid_max = finite(&range->as_array()[1]);
    }
    if (!packing.scaled && !packing.valid_min && !packing.valid_max) return std::nullopt;
    return packing;
}

}  // namespace tessera
