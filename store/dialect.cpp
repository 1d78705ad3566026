#include <tessera/dialect.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>
#include <ranges>

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

const Dialect* probe_dialect(const KeyValueStore& store, std::string_view prefix) {
    // The newest first: of an array that was migrated and kept its old metadata, zarr-python reads those too.
    for (const Dialect& dialect : std::views::reverse(dialect_table())) {
        if (dialect.probe(store, prefix)) return &dialect;
    }
    return nullptr;
}

const Dialect* probe_group_dialect(const KeyValueStore& store, std::string_view prefix) {
    for (const Dialect& dialect : std::views::reverse(dialect_table())) {
        if (dialect.probe_group != nullptr && dialect.probe_group(store, prefix)) return &dialect;
    }
    return nullptr;
}

}  // namespace tessera
