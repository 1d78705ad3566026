#include <tessera/dialect.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>

#include "dialects.h"

namespace tessera {

std::span<const Dialect> dialect_table() {
    static const std::array table{zmeta_dialect, v1_dialect, v2_dialect, v3_dialect};
    return table;
}

const Dialect& dialect_named(std::string_view name) {
    const auto table = dialect_table();
    const auto found = std::ranges::find(table, name, &Dialect::name);
    if (found == table.end()) {
        std::vector<std::string_view> names;
        for (const Dialect& d : table) names.push_back(d.name);
        throw invalid_argument(fmt::format("no format \"{}\"; choose one of {}", name, fmt::join(names, ", ")));
    }
    return *found;
}

namespace {

/// The newest dialect of which `is` holds: of an array that was migrated and kept its old metadata, zarr-python reads
/// the newest too.
template <class Is>
const Dialect* newest(const Is& is) {
    const auto table = dialect_table();
    const auto found = std::find_if(table.rbegin(), table.rend(), is);
    return found == table.rend() ? nullptr : &*found;
}

}  // namespace

const Dialect* probe_dialect(const KeyValueStore& store, std::string_view prefix) {
    return newest([&](const Dialect& d) { return d.probe(store, prefix); });
}

const Dialect* probe_group_dialect(const KeyValueStore& store, std::string_view prefix) {
    return newest([&](const Dialect& d) { return d.probe_group != nullptr && d.probe_group(store, prefix); });
}

}  // namespace tessera
