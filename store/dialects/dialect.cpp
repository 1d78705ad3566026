#include <tessera/dialect.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>

#include "dialects.h"
#include "keys.h"
#include "metadata_json.h"

namespace tessera {

// Each is defined at the end of its own file.
extern const Dialect zmeta_dialect, v1_dialect, v2_dialect, v3_dialect;

/// From the oldest to the newest.
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
        throw invalid_argument("no format \"{}\"; choose one of {}", name, fmt::join(names, ", "));
    }
    return *found;
}

namespace {

/// The newest dialect for which `is` is true: for a migrated array that kept its old metadata, zarr-python also reads
/// the newest.
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

void require_node_names(std::string_view path) {
    constexpr std::string_view reserved = "zarr.json";
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        if (path.substr(start, end - start) == reserved) {
            throw invalid_argument(
                "{}: no array or group can be named {}, as the metadata of v3 are; choose another name", path,
                reserved);
        }
        start = end + 1;
    }
}

std::optional<FoundArray> find_array(const KeyValueStore& store, std::string_view prefix) {
    FoundArray found;
    found.dialect = newest([&](const Dialect& d) {
        if (d.common_key && !d.probe(store, prefix)) return false;
        if (!store.get(join_key(prefix, d.metadata_key), found.document, metadata_limit)) return false;
        return d.is_group == nullptr || !d.is_group(text_of(found.document));
    });
    if (found.dialect == nullptr) return std::nullopt;
    return found;
}

ArrayMetadata parse_metadata(const Dialect& dialect, const KeyValueStore& store, std::string_view prefix,
                             const Buffer& document) {
    return reading(name_of(store, join_key(prefix, dialect.metadata_key)),
                   [&] { return dialect.parse(text_of(document)); });
}

ArrayMetadata load_metadata(const Dialect& dialect, const KeyValueStore& store, std::string_view prefix) {
    const std::string key = join_key(prefix, dialect.metadata_key);
    Buffer document;
    if (!store.get(key, document, metadata_limit)) {
        throw not_found("{} is not there: no {} array", name_of(store, key), dialect.name);
    }
    return parse_metadata(dialect, store, prefix, document);
}

const Dialect* probe_group_dialect(const KeyValueStore& store, std::string_view prefix) {
    return newest([&](const Dialect& d) { return d.probe_group != nullptr && d.probe_group(store, prefix); });
}

}  // namespace tessera
