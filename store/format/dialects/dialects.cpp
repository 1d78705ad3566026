#include <tessera/dialect.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
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

bool Dialect::probe(const PlaceView& place) const {
    return place.store.contains(place.key(metadata_key));
}

void Dialect::save(const PlaceRef& place, const ArrayMetadata& metadata, const Value* attributes) const {
    const Value json = document(metadata);
    if (attributes != nullptr) save_attributes(place, *attributes);
    put_object(place.store, place.key(metadata_key), json);
}

bool Dialect::probe_group(const PlaceView& /*place*/) const {
    return false;
}

void Dialect::save_group(const PlaceRef& /*place*/, const Value& /*attributes*/, const Value& /*unknown*/) const {
    throw unsupported("{} has no groups", name);
}

Value Dialect::load_group_unknown(const PlaceView& /*place*/) const {
    return Value::object();
}

std::optional<Value> Dialect::load_attributes(const PlaceView& place) const {
    return get_object(place.store, place.key(documents.back()));
}

void Dialect::save_attributes(const PlaceRef& place, const Value& attributes) const {
    put_object(place.store, place.key(documents.back()), attributes);
}

std::optional<Value> Dialect::load_consolidated(const PlaceView& /*place*/) const {
    return std::nullopt;
}

void Dialect::save_consolidated(const PlaceRef& /*place*/, const Value& /*nodes*/) const {
    throw unsupported("{} has no consolidated metadata", name);
}

bool Dialect::owns(const ArrayMetadata& metadata, std::string_view child) const {
    return child == metadata_key || child == readme_name || child == documents.back() || is_chunk_name(metadata, child);
}

// ---- finding them

const Dialect* probe_dialect(const PlaceView& place) {
    return newest([&](const Dialect& d) { return d.probe(place); });
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

std::optional<FoundArray> find_array(const PlaceView& place) {
    FoundArray found;
    found.dialect = newest([&](const Dialect& d) {
        if (d.common_key && !d.probe(place)) return false;
        if (!place.store.get(place.key(d.metadata_key), found.document, metadata_limit)) return false;
        return !d.is_group(text_of(found.document));
    });
    if (found.dialect == nullptr) return std::nullopt;
    return found;
}

ArrayMetadata parse_metadata(const Dialect& dialect, const PlaceView& place, const Buffer& document) {
    return reading(place.store.name_of(place.key(dialect.metadata_key)),
                   [&] { return dialect.parse(text_of(document)); });
}

ArrayMetadata load_metadata(const Dialect& dialect, const PlaceView& place) {
    const std::string key = place.key(dialect.metadata_key);
    Buffer document;
    if (!place.store.get(key, document, metadata_limit)) {
        throw not_found("{} is not there: no {} array", place.store.name_of(key), dialect.name);
    }
    return parse_metadata(dialect, place, document);
}

const Dialect* probe_group_dialect(const PlaceView& place) {
    return newest([&](const Dialect& d) { return d.probe_group(place); });
}

}  // namespace tessera
