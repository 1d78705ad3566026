#include "remove_array.h"

#include <tessera/buffer.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/own_names.h>
#include <tessera/value.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "destination_lock_file.h"
#include "keys.h"
#include "node_files.h"

namespace tessera {

namespace {

/// What its marker says that an array is made from, which is no copy.
constexpr std::string_view removal = "a removal that was interrupted";

std::optional<Value> document_at(const PlaceView& place, std::string_view key) {
    Buffer text;
    if (!place.store.get(place.key(key), text, metadata_limit)) return std::nullopt;
    try {
        return Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
    } catch (const Error&) {
        return std::nullopt;
    }
}

void mark(const PlaceRef& place, const Dialect& dialect) {
    Value marker = Value::object();
    marker.set("about", "an array that tessera was removing: rm, create and copy go on with that");
    marker.set("format", dialect.name);
    marker.set("made_from", removal);
    if (auto metadata = document_at(place, dialect.metadata_key)) marker.set("metadata", *std::move(metadata));
    const std::string text = marker.dump(python_json_style);
    place.store.put(place.key(unfinished_marker_key), std::as_bytes(std::span(text)));
    place.store.sync();
}

}  // namespace

Node array_at(const PlaceView& place) {
    return {std::string(place.prefix), NodeKind::array, probe_dialect(place)};
}

void erase_owned(const PlaceRef& place, const NodeFiles& files) {
    const Listing top = place.store.list(place.prefix);
    for (const auto* names : {&top.prefixes, &top.keys}) {
        for (const std::string& name : *names) {
            if (name == own_folder || !(files.owns(name) || is_destination_lock(name))) continue;
            const std::string key = place.key(name);
            place.store.erase(key);
            place.store.erase_below(key);
        }
    }
}

void erase_own_but(const PlaceRef& place, std::initializer_list<std::string_view> kept) {
    const std::string own = place.key(own_folder);
    const Listing listing = place.store.list(own);
    const auto is_kept = [&](const std::string& name) {
        return std::ranges::count(kept, join_key(own_folder, name)) > 0;
    };
    for (const std::string& name : listing.keys) {
        if (!is_kept(name)) place.store.erase(join_key(own, name));
    }
    for (const std::string& name : listing.prefixes) {
        if (!is_kept(name)) place.store.erase_below(join_key(own, name));
    }
}

void remove_array(const PlaceRef& place) {
    place.store.abandon_uploads(place.prefix);
    const Node array = array_at(place);
    const NodeFiles files(place.store, array, BrokenNodes::guess);  // who forbids that has looked before
    if (array.dialect != nullptr) {
        mark(place, *array.dialect);
        place.store.erase(place.key(array.dialect->metadata_key));
    }
    erase_owned(place, files);
    erase_own_but(place, {unfinished_marker_key, lease_key});  // the lease is released by who holds it
    place.store.erase(place.key(unfinished_marker_key));
    place.store.erase_below(place.key(own_folder));
}

bool is_being_removed(const PlaceView& place) {
    const auto marker = document_at(place, unfinished_marker_key);
    const Value* const from = marker && marker->is_object() ? marker->find("made_from") : nullptr;
    return from != nullptr && *from == Value(removal);
}

}  // namespace tessera
