#include "node_files.h"

#include <fmt/format.h>
#include <tessera/buffer.h>
#include <tessera/descriptor.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/store_kind.h>
#include <tessera/system_calls.h>
#include <tessera/value.h>

#include <algorithm>
#include <set>
#include <utility>

#include "destination_lock_file.h"
#include "keys.h"

namespace tessera {

namespace {

std::string place_name(const PlaceView& place) {
    return place.name();
}

}  // namespace

bool is_document(const Node& node, std::string_view name) {
    return node.dialect != nullptr && ((node.kind == NodeKind::group && name == node.dialect->consolidated_key) ||
                                       std::ranges::count(node.dialect->documents, name) > 0);
}

NodeFiles::NodeFiles(const ReadableStore& store, Node node, BrokenNodes broken) : node_(std::move(node)) {
    if (node_.kind != NodeKind::array) return;
    if (node_.dialect != nullptr) {
        try {
            metadata_ = load_metadata(*node_.dialect, {store, node_.path});
        } catch (const Error& e) {
            if (broken == BrokenNodes::refuse || e.code() == ErrorCode::io) throw;
            node_.dialect = nullptr;
        }
        return;
    }
    Buffer text;
    if (!store.get(join_key(node_.path, unfinished_marker_key), text, metadata_limit)) return;
    try {
        const Value marker = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
        const Dialect& dialect = dialect_named(marker.at("format").as_string());
        metadata_ = dialect.parse(marker.at("metadata").dump());
        node_.dialect = &dialect;
    } catch (const Error&) {  // the default layouts then
    }
}

bool NodeFiles::owns(std::string_view name) const {
    if (name == own_folder || is_description(name)) return true;
    if (node_.kind != NodeKind::array) return name == readme_name || is_document(node_, name);
    if (node_.dialect != nullptr) return node_.dialect->owns(metadata_, name);
    if (name.starts_with("c.")) name.remove_prefix(2);
    const auto rank = 1 + std::ranges::count(name, '.');  // if it is that of a chunk
    if (rank > max_rank) return false;
    return std::ranges::any_of(dialect_table(), [&](const Dialect* d) {
        ArrayMetadata defaults;
        defaults.shape = Shape::filled(static_cast<int>(rank), 1);
        defaults.keys = d->default_keys();
        return d->owns(defaults, name);
    });
}

namespace {

/// A lock file of a killed run does not matter; a held one means that something is being made there.
void require_no_builder(const PlaceView& place, const std::string& lock_name) {
    if (!is_local(place.store.name())) return;
    const std::string folder = place_name(place);
    const Descriptor opened(open_at(AT_FDCWD, folder.c_str(), os::lookup | O_DIRECTORY));
    if (!opened) return;
    const auto builder = destination_builder(opened.get(), lock_name);
    if (!builder) return;
    throw invalid_argument("{}: {} is writing there ({}); try again later", folder, *builder, lock_name);
}

}  // namespace

void require_nothing_foreign(const ReadableStore& store, const std::vector<Node>& nodes,
                             const std::vector<std::string>& links, ErrorCode code, BrokenNodes broken) {
    std::set<std::string_view> paths(links.begin(), links.end());
    for (const Node& node : nodes) paths.insert(node.path);
    for (const Node& node : nodes) {
        const NodeFiles files(store, node, broken);
        const Listing listing = store.list(node.path);
        for (const auto* names : {&listing.prefixes, &listing.keys}) {
            for (const std::string& name : *names) {
                if (files.owns(name) || paths.contains(join_key(node.path, name))) continue;
                if (is_destination_lock(name)) {
                    require_no_builder({store, node.path}, name);
                    continue;
                }
                throw Error(code, fmt::format("{} also holds {}, which is not part of it; move that away first",
                                              place_name({store, node.path}), name));
            }
        }
    }
}

bool lost_its_metadata(const PlaceView& place) {
    return !probe_node(place) && std::ranges::count(place.store.list(place.prefix).prefixes, own_folder) > 0;
}

bool is_direct(const PlaceView& place) {
    try {
        place.store.local_files().require_direct(place.key(own_folder));
        return true;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::invalid_argument) throw;
        return false;
    }
}

}  // namespace tessera
