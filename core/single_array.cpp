#include <tessera/single_array.h>

#include <algorithm>

#include <fmt/format.h>

namespace tessera {

std::string single_array_message(std::string_view path, const DType& dtype, std::string_view name) {
    const auto is_named = [&](const Field& f) { return f.name == name; };
    if (dtype.kind() != Kind::structure || !std::ranges::any_of(dtype.fields(), is_named)) {
        return fmt::format("{} is a single array; leave out '::{}'", path, name);
    }
    return fmt::format(
        "'{1}' is a field of the structures in {0}, and fields are not read by themselves: `tessera stats {0}` sums up "
        "each "
        "field, `tessera get {0}` shows the structures, and after `tessera export {0} all.npy` NumPy picks the field: "
        "numpy.load(\"all.npy\", mmap_mode=\"r\")[\"{1}\"]",
        path, name);
}

}  // namespace tessera
