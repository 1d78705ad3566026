#include <tessera/dialect.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>

#include "dialects.h"
#include "keys.h"
#include "metadata_json.h"

namespace tessera {

// Each is defined at the end of its own file.
extern const Dialect &zmeta_dialect, &v1_dialect, &v2_dialect, &v3_dialect;

std::span<const Dialect* const> dialect_table() {
    static const std::array table{&zmeta_dialect, &v1_dialect, &v2_dialect, &v3_dialect};
    return table;
}

const Dialect& dialect_named(std::string_view name) {
    const auto table = dialect_table();
    const auto found = std::ranges::find(table, name, &Dialect::name);
    if (found == table.end()) {
        std::vector<std::string_view> names;
        for (const Dialect* d : table) names.push_back(d->name);
        throw invalid_argument("no format \"{}\"; choose one of {}", name, fmt::join(names, ", "));
    }
    return **found;
}

namespace {

/// The newest dialect for which `is` is true: for a migrated array that kept its old metadata, zarr-python also reads
/// the newest.
template <class Is>
const Dialect* newest(const Is& is) {
    const auto table = dialect_table();
    const auto found = std::find_if(table.rbegin(), table.rend(), [&](const Dialect* d) { return is(*d); });
    return found == table.rend() ? nullptr : *found;
}

}  // namespace

// ---- what most dialects have in common

bool Dialect::probe(const KeyValueStore& store, std::string_view prefix) const {
    return store.contains(join_key(prefix, metadata_key));
}

void Dialect::save(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata,
                   const Value* attributes) const {
    const Value json = document(metadata);
    if (attributes != nullptr) save_attributes(store, prefix, *attributes);
    put_object(store, join_key(prefix, metadata_key), json);
}

bool Dialect::probe_group(const KeyValueStore& /*store*/, std::string_view /*prefix*/) const {
    return false;
}

void Dialect::save_group(KeyValueStore& /*store*/, std::string_view /*prefix*/, const Value& /*attributes*/,
                         const Value& /*unknown*/) const {
    throw unsupported("{} has no groups", name);
}

Value Dialect::load_group_unknown(const KeyValueStore& /*store*/, std::string_view /*prefix*/) const {
    return Value::object();
}

std::optional<Value> Dialect::load_attributes(const KeyValueStore& store, std::string_view prefix) const {
    return get_object(store, join_key(prefix, documents.back()));
}

void Dialect::save_attributes(KeyValueStore& store, std::string_view prefix, const Value& attributes) const {
    put_object(store, join_key(prefix, documents.back()), attributes);
}

std::optional<Value> Dialect::load_consolidated(const KeyValueStore& /*store*/, std::string_view /*prefix*/) const {
    return std::nullopt;
}

void Dialect::save_consolidated(KeyValueStore& /*store*/, std::string_view /*prefix*/, const Value& /*nodes*/) const {
    throw unsupported("{} has no consolidated metadata", name);
}

bool Dialect::owns(const ArrayMetadata& metadata, std::string_view child) const {
    return child == metadata_key || child == documents.back() || is_chunk_name(metadata, child);
}

// ---- finding them

const Dialect* probe_dialect(const KeyValueStore& store, std::string_view prefix) {
    return newest([&](const Dialect& d) { return d.probe(store, prefix); });
}

void require_node_names(std::string_view path) {
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        if (path.substr(start, end - start) == v3_document_name) {
            throw invalid_argument(
                "{}: no array or group can be named {}, as the metadata of v3 are; choose another name", path,
                v3_document_name);
        }
        start = end + 1;
    }
}

std::optional<FoundArray> find_array(const KeyValueStore& store, std::string_view prefix) {
    FoundArray found;
    found.dialect = newest([&](const Dialect& d) {
        if (d.common_key && !d.probe(store, prefix)) return false;
        if (!store.get(join_key(prefix, d.metadata_key), found.document, metadata_limit)) return false;
        return !d.is_group(text_of(found.document));
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
    return newest([&](const Dialect& d) { return d.probe_group(store, prefix); });
}

}  // namespace tessera
