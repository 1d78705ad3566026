// Listings and facts of nodes as JSON, for the page and for programs.
#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/file_system.h>
#include <tessera/group.h>
#include <tessera/node_facts.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "http.h"
#include "served.h"
#include "zarr_array.h"

namespace tessera::serve {

namespace {

/// Beyond this many children only names and kinds are listed, because shapes require opening each.
constexpr std::size_t most_opened = 1000;

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

void add_file(Value& value, const ServedNode& node) {
    std::error_code ignored;
    value.set("file_bytes", static_cast<std::uint64_t>(std::filesystem::file_size(node.file_path->path, ignored)));
    value.set("header", node.file_format->describe(*node.file_path));
}

void add_elements(Value& value, const ArraySource& source) {
    const ArrayInfo info = source.info();
    tessera::add_elements(value, info.dtype, info.shape);
    value.set("logical_bytes", byte_count(info.shape, info.dtype.size()));
}

void add_array(Value& value, const Served& served, const ServedNode& node, bool count_stored) {
    if (node.array) {
        FactsOptions options;
        if (!count_stored) options.most_sizes.reset();
        add_facts(value, array_facts(*node.array, options));
    } else {
        add_elements(value, node.source());
        value.set("attributes", node.source().attribute_values());
    }
    const auto names = dimension_names_of(node.source());
    value.set("dimension_names", names.empty() ? Value() : dimension_names_json(names));
    value.set("version", content_tag(std::as_bytes(std::span(node.version))));
    value.set("why_not_v2", why_not(served, node, ZarrFormat::v2));
    value.set("why_not_v3", why_not(served, node, ZarrFormat::v3));
}

HttpResponse answer_info(Served& served, const HttpRequest& request) {
    const NodePointer node = served.node(request.parameter("path").value_or(""));
    Value value = Value::object();
    set_path(value, node->path);
    value.set("kind", kind_name(node->kind));
    value.set("format", node->format.empty() ? Value() : Value(node->format));
    if (node->is_array()) add_array(value, served, *node, request.parameter("stored").has_value());
    if (node->file_path) add_file(value, *node);
    if (node->is_array()) return json_response(value);
    value.set("attributes", node->group().attributes);
    value.set("children", served.children(*node).size());
    return json_response(value);
}

/// Adds what is known of a child when it is opened, or why it cannot be.
void add_child(Value& value, Served& served, const std::string& path) {
    try {
        const NodePointer node = served.node(path);
        if (!node->is_array()) return;
        add_elements(value, node->source());
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
        if (children.size() <= most_opened) add_child(value, served, path);
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
