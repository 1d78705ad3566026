// Listings and facts of nodes as JSON, for the page and for programs.
#include <fmt/format.h>
#include <tessera/convert.h>
#include <tessera/error.h>
#include <tessera/file_system.h>
#include <tessera/group.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "array_facts.h"
#include "http.h"
#include "served.h"
#include "zarr_array.h"

namespace tessera::serve {

namespace {

/// Beyond this many children only names and kinds are listed, because shapes require opening each.
constexpr std::size_t most_opened = 1000;
/// The size of each chunk is queried only up to this many.
constexpr std::int64_t most_sizes = 50'000;

Value shape_value(const Shape& shape) {
    Value list = Value::array();
    for (const std::int64_t length : shape) list.push_back(length);
    return list;
}

/// Names of dimensions from metadata or attributes; null where there are none.
Value dimension_list(const ServedNode& node, const Value& attributes) {
    if (node.array) {
        const auto& names = node.array->metadata().dimension_names;
        if (!names.empty()) return dimension_names_json(names);
    }
    const Value* const named = attributes.find(dimensions_attribute);
    return named != nullptr && named->is_array() ? *named : Value();
}

void add_elements(Value& value, const ArrayInfo& info) {
    value.set("dtype", info.dtype.to_string());
    value.set("fields", fields_json(info.dtype));
    value.set("shape", shape_value(info.shape));
    value.set("logical_bytes", byte_count(info.shape, info.dtype.size()));
}

/// Why a format of Zarr cannot show an array; null if it can.
Value why_not(const Served& served, const ServedNode& node, ZarrFormat format) {
    try {
        static_cast<void>(node.zarr->in(node, format));
        return nullptr;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
        return served.shown_text(e.what());
    }
}

void add_array(Value& value, const ServedNode& node, bool count_stored) {
    const ArrayMetadata metadata = node.array->metadata();
    const ChunkLayout layout = chunk_layout(metadata);
    value.set("chunks", shape_value(layout.chunks));
    if (!layout.shards.empty()) value.set("shards", shape_value(layout.shards));
    value.set("codecs", codecs_json(metadata.codecs));
    value.set("separator", metadata.keys.separator);
    value.set("fill_value", fill_json(metadata));
    if (!metadata.unknown.as_object().empty()) value.set("unknown_members", metadata.unknown);
    Value remarks = Value::array();
    for (const std::string& remark : node.array->dialect().remarks(metadata)) remarks.push_back(remark);
    value.set("remarks", std::move(remarks));
    if (!count_stored) return;
    const StoredSize stored = node.array->stored_size(most_sizes);
    value.set("chunks_stored", stored.chunks);
    value.set("chunks_possible", stored.chunks_possible);
    value.set(stored.sized == stored.chunks ? "stored_bytes" : "stored_bytes_about", stored.bytes);
}

void add_file(Value& value, const ServedNode& node) {
    std::error_code ignored;
    value.set("file_bytes", static_cast<std::uint64_t>(std::filesystem::file_size(node.file_path->path, ignored)));
    value.set("header", node.file_format->describe(*node.file_path));
}

HttpResponse answer_info(Served& served, const HttpRequest& request) {
    const NodePointer node = served.node(request.parameter("path").value_or(""));
    Value value = Value::object();
    set_path(value, node->path);
    value.set("kind", kind_name(node->kind));
    value.set("format", node->format.empty() ? Value() : Value(node->format));
    Value attributes = Value::object();
    if (node->is_array()) {
        add_elements(value, node->source().info());
        attributes = node->source().attribute_values();
        value.set("dimension_names", dimension_list(*node, attributes));
        value.set("version", content_tag(std::as_bytes(std::span(node->version))));
    }
    if (node->array) add_array(value, *node, request.parameter("stored").has_value());
    if (node->file_path) add_file(value, *node);
    if (node->kind == ServedKind::group && node->place && !node->format.empty()) {
        attributes = Group::open(node->place->store, node->place->prefix).attributes().all();
    }
    value.set("attributes", std::move(attributes));
    if (node->is_array()) {
        value.set("why_not_v2", why_not(served, *node, ZarrFormat::v2));
        value.set("why_not_v3", why_not(served, *node, ZarrFormat::v3));
    } else {
        value.set("children", served.children(*node).size());
    }
    return json_response(value);
}

/// Adds what is known of a child when it is opened, or why it cannot be.
void add_facts(Value& value, Served& served, const std::string& path) {
    try {
        const NodePointer node = served.node(path);
        if (!node->is_array()) return;
        add_elements(value, node->source().info());
        if (node->array) value.set("chunks", shape_value(node->array->chunks()));
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;  // one file that takes too much memory must not hide the others
        value.set("error", served.shown_text(e.what()));
    }
}

HttpResponse answer_tree(Served& served, const HttpRequest& request) {
    const NodePointer node = served.node(request.parameter("path").value_or(""));
    const std::vector<ServedChild> children = served.children(*node);
    Value list = Value::array();
    for (const ServedChild& child : children) {
        if (request.stop.stop_requested()) throw cancelled("the request was given up");
        const std::string path = node->path.empty() ? child.name : node->path + "/" + child.name;
        Value value = Value::object();
        value.set("name", utf8_text(child.name));
        set_path(value, path);
        value.set("kind", kind_name(child.kind));
        value.set("format", child.format.empty() ? Value() : Value(child.format));
        if (children.size() <= most_opened) add_facts(value, served, path);
        list.push_back(std::move(value));
    }
    Value value = Value::object();
    set_path(value, node->path);
    value.set("kind", kind_name(node->kind));
    value.set("format", node->format.empty() ? Value() : Value(node->format));
    value.set("children", std::move(list));
    return json_response(value);
}

constexpr std::array routes_of_api{
    Route{.path = "api/tree", .answer = answer_tree},
    Route{.path = "api/info", .answer = answer_info},
};

}  // namespace

std::span<const Route> api_routes() {
    return routes_of_api;
}

}  // namespace tessera::serve
