// Every node as Zarr v2 and v3: documents and chunks by the names that readers of these formats ask for.
#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/group_documents.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "http.h"
#include "served.h"
#include "zarr_array.h"

namespace tessera::serve {

namespace {

constexpr std::size_t most_consolidated = 10'000;
constexpr int deepest_consolidated = 64;

std::string joined(const std::vector<std::string>& segments, std::size_t first, std::size_t last) {
    std::string path;
    for (std::size_t i = first; i < last; ++i) path += (i == first ? "" : "/") + segments[i];
    return path;
}

/// As the original programs write documents, with NaN in attributes as they spell it.
HttpResponse document(const Value& value) {
    HttpResponse response{.type = "application/json", .body = HttpBody(value.dump({.indent = 4, .ascii = true}))};
    response.etag = content_tag(*response.body.in_memory());
    return response;
}

const ZarrArray& zarr_of(const ServedNode& node, ZarrFormat format) {
    return node.zarr->in(node, format);
}

/// All nodes below a group, each group before its members. Nodes that cannot be opened are left out; a request for one
/// of them gets the error.
class Walk {
public:
    using Each = std::function<void(const std::string& below, const ServedNode& node)>;
    Walk(Served& served, const HttpRequest& request, Each each)
        : served_(served), stop_(request.stop), each_(std::move(each)) {}

    /// False if there are too many.
    bool run(const ServedNode& group, const std::string& below = "", int depth = 0) {
        if (!enter(group) || depth > deepest_consolidated) return true;
        for (const ServedChild& child : served_.children(group)) {
            if (stop_.stop_requested()) throw cancelled("the request was given up");
            if (++count_ > most_consolidated) return false;
            const std::string name = below.empty() ? child.name : below + "/" + child.name;
            try {
                const NodePointer node = served_.node(group.path.empty() ? child.name : group.path + "/" + child.name);
                each_(name, *node);
                if (!node->is_array() && !run(*node, name, depth + 1)) return false;
            } catch (const Error& e) {
                if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            }
        }
        return true;
    }

private:
    /// False for a folder that was entered already, by another path.
    bool enter(const ServedNode& group) {
        if (!group.place) return true;
        const auto id = group.place->store->local_files().folder_id(group.place->prefix);
        return !id || entered_.insert(*id).second;
    }

    Served& served_;
    std::stop_token stop_;
    Each each_;
    std::size_t count_ = 0;
    std::set<FileId> entered_;
};

HttpResponse consolidated(Served& served, const ServedNode& group, const HttpRequest& request) {
    Value documents = Value::object();
    Value::Object all;
    const auto add = [&](const std::string& below, std::string_view name, Value value) {
        all.emplace_back(below.empty() ? std::string(name) : fmt::format("{}/{}", below, name), std::move(value));
    };
    const auto add_group = [&](const std::string& below, const ServedNode& node) {
        add(below, v2_group_name, v2_group_document());
        Value attributes = node.group().attributes;
        if (!attributes.as_object().empty()) add(below, v2_attributes_name, std::move(attributes));
    };
    add_group("", group);
    Walk walk(served, request, [&](const std::string& below, const ServedNode& node) {
        if (!node.is_array()) return add_group(below, node);
        const ZarrArray& array = zarr_of(node, ZarrFormat::v2);
        add(below, v2_array_name, array.document());
        add(below, v2_attributes_name, array.attributes());
    });
    if (!walk.run(group)) {
        throw unsupported("more than {} nodes are not put into one document", most_consolidated);
    }
    return document(v2_consolidated_document(Value(std::move(all))));
}

HttpResponse v2_chunk(Served& served, const ServedNode& node, const std::string& key, const HttpRequest& request) {
    if (!node.is_array()) return not_found_response();
    const ZarrArray& array = zarr_of(node, ZarrFormat::v2);
    const auto index = array.index(key);
    return index ? chunk_response(node, array, *index, request, served.io(request)) : not_found_response();
}

HttpResponse answer_v2(Served& served, const HttpRequest& request) {
    const auto& segments = request.segments;
    if (segments.size() < 2 || segments.back().empty()) return not_found_response();
    const std::string& name = segments.back();
    const NodePointer node = served.node(joined(segments, 1, segments.size() - 1));
    if (node->is_array()) {
        if (name == v2_array_name) return document(zarr_of(*node, ZarrFormat::v2).document());
        if (name == v2_attributes_name) return document(zarr_of(*node, ZarrFormat::v2).attributes());
        return v2_chunk(served, *node, name, request);
    }
    if (name == v2_group_name) return document(v2_group_document());
    if (name == v2_attributes_name) return document(node->group().attributes);
    if (name == v2_consolidated_name) return consolidated(served, *node, request);
    return not_found_response();
}

/// With the metadata of all nodes below, which zarr-python 3 reads in place of a listing.
HttpResponse answer_v3_group(Served& served, const ServedNode& group, const HttpRequest& request) {
    Value::Object all;
    Walk walk(served, request, [&](const std::string& below, const ServedNode& node) {
        all.emplace_back(below, node.is_array() ? zarr_of(node, ZarrFormat::v3).document()
                                                : v3_group_document(node.group().attributes));
    });
    Value value = v3_group_document(group.group().attributes);
    if (walk.run(group)) {
        value.set("consolidated_metadata", v3_consolidated_metadata(Value(std::move(all))));
    }
    return document(value);
}

bool is_number(const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

/// Keys may have several parts: all places where one could begin are tried, the longest array path first.
HttpResponse v3_chunk(Served& served, const HttpRequest& request) {
    const auto& segments = request.segments;
    std::vector<std::size_t> begins;
    for (std::size_t i = segments.size() - 1; i >= 1; --i) {
        const std::string& first = segments[i];
        const bool chunk = first == "c" || first.starts_with("c.");
        // "c" is what chunks of most arrays begin with, and the name of hardly any array.
        if (chunk) begins.insert(begins.begin(), i);
        if (!chunk && !is_number(first)) break;
        if (!chunk) begins.push_back(i);
        if (segments.size() - i > 33) break;
    }
    for (const std::size_t begin : begins) {
        NodePointer node;
        try {
            node = served.node(joined(segments, 1, begin));
        } catch (const Error& e) {
            if (e.code() != ErrorCode::not_found) throw;
            continue;
        }
        if (!node->is_array()) continue;
        const ZarrArray& array = zarr_of(*node, ZarrFormat::v3);
        if (const auto index = array.index(joined(segments, begin, segments.size()))) {
            return chunk_response(*node, array, *index, request, served.io(request));
        }
    }
    return not_found_response();
}

HttpResponse answer_v3(Served& served, const HttpRequest& request) {
    const auto& segments = request.segments;
    if (segments.size() < 2 || segments.back().empty()) return not_found_response();
    if (segments.back() != v3_document_name) return v3_chunk(served, request);
    const NodePointer node = served.node(joined(segments, 1, segments.size() - 1));
    if (node->is_array()) return document(zarr_of(*node, ZarrFormat::v3).document());
    return answer_v3_group(served, *node, request);
}

constexpr std::array routes_of_zarr{
    Route{.path = "v2", .below = true, .answer = answer_v2},
    Route{.path = "v3", .below = true, .answer = answer_v3},
};

}  // namespace

std::span<const Route> zarr_routes() {
    return routes_of_zarr;
}

}  // namespace tessera::serve
