// The dialect of Zarr v3 as zarr-python 3 writes it: one document, `zarr.json`, for an array or a group with its
// attributes and, in a group, consolidated metadata; chunks `c/1/0`, or named as in v2.
#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/group_documents.h>
#include <tessera/zarr_names.h>

#include <array>
#include <utility>

#include "dialects.h"
#include "v3_document.h"
#include "v3_grid.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 1> document_keys{v3_document_name};

std::optional<Value> load_document(const PlaceView& place) {
    return get_object(place.store, place.key(v3_document_name));
}

constexpr std::string_view blanks = " \t\r\n";

/// The end of the text that begins after the quote before `at`: its closing quote, or npos.
std::size_t end_of_text(std::string_view json, std::size_t at) {
    while ((at = json.find_first_of("\"\\", at)) != std::string_view::npos && json[at] == '\\') at += 2;
    return at;
}

/// The JSON of a member of the outermost object as it is written; nullopt if there is none, or if the object does not
/// end. Builds no values: consolidated metadata of a large group take far longer to parse than to skip.
std::optional<std::string_view> outer_member(std::string_view json, std::string_view name) {
    std::optional<std::string_view> found;
    std::size_t begin = 0;  // of the member's value, while that is not over
    int depth = 0;
    for (std::size_t at = json.find_first_not_of(blanks); at < json.size(); ++at) {
        const char c = json[at];
        if (depth == 0 && c != '{') return {};
        if (depth == 1 && begin != 0 && (c == ',' || c == '}')) {
            found = json.substr(begin, at - begin);
            begin = 0;
        }
        if (c == '"') {
            const std::size_t end = end_of_text(json, at + 1);
            if (end == std::string_view::npos) return {};
            const std::size_t after = json.find_first_not_of(blanks, end + 1);
            if (depth == 1 && !found && after < json.size() && json[after] == ':' &&
                json.substr(at + 1, end - at - 1) == name) {
                begin = after + 1;
            }
            at = end;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return json.find_first_not_of(blanks, at + 1) == std::string_view::npos ? found : std::nullopt;
        }
    }
    return {};
}

void put_document(const PlaceRef& place, const Value& document) {
    put_object(place.store, place.key(v3_document_name), document, zarr3_json_style);
}

/// The existing document, to be changed.
Value document_at(const PlaceView& place) {
    auto document = load_document(place);
    if (!document) throw not_found("{} is not there", place.name_of(v3_document_name));
    return std::move(*document);
}

/// Makes the fields of structures little-endian.
void take_little_endian(ArrayMetadata& m, std::vector<std::string>& changes) {
    const DType little = m.dtype.with_order(ByteOrder::little);
    if (m.dtype.kind() != Kind::structure || little == m.dtype) return;
    changes.push_back(
        fmt::format("the fields become little-endian: {}, because v3 has no other structures", little.to_string()));
    if (m.fill.bytes) {
        NDArray element(little, {});
        copy_elements(view_bytes(std::as_const(*m.fill.bytes).data(), m.dtype, {}), element);
        m.fill.bytes->assign(element.bytes().begin(), element.bytes().end());
    }
    m.dtype = little;
}

struct V3 final : Dialect {
    constexpr V3()
        : Dialect({.name = "v3",
                   .about = "zarr-python 3 (zarr.json)",
                   .metadata_key = v3_document_name,
                   .dimension_names = true,
                   .shards = true,
                   .edges = true,
                   .null_fill = false,
                   .separators = true,
                   .group_key = v3_document_name,
                   .documents = document_keys,
                   .url_scheme = "zarr3"}) {}

    bool probe(const PlaceView& place) const override;
    ArrayMetadata parse(std::string_view text) const override { return read_v3_document(Value::parse(text)); }
    bool is_group(std::string_view text) const override;
    Value document(const ArrayMetadata& m) const override { return v3_document(m, Value::object()); }
    void save(const PlaceRef& place, const ArrayMetadata& m, const Value* attributes) const override;
    KeyScheme default_keys() const override { return v3_keys(); }
    FillValue default_fill(const DType& dtype) const override { return zero_fill(dtype); }
    /// v3 also allows v2's keys.
    KeyScheme keys_like(const KeyScheme& keys) const override {
        const bool bare = keys.prefix.empty() && keys.suffix.empty() && keys.zero_d == "0";
        return bare ? keys : v3_keys();
    }
    void adapt(ArrayMetadata& m, std::vector<std::string>& changes) const override { take_little_endian(m, changes); }
    std::vector<std::string> remarks(const ArrayMetadata& m) const override { return what_zarr_python_cannot(m); }

    std::optional<Value> load_attributes(const PlaceView& place) const override;
    void save_attributes(const PlaceRef& place, const Value& attributes) const override;
    bool probe_group(const PlaceView& place) const override;
    Value load_group_unknown(const PlaceView& place) const override;
    void save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const override;
    std::optional<Value> load_consolidated(const PlaceView& place) const override;
    void save_consolidated(const PlaceRef& place, const Value& nodes) const override;
};

constexpr V3 v3;

bool V3::is_group(std::string_view text) const {
    try {
        const auto type = outer_member(text, "node_type");
        return type && Value::parse(*type) == Value("group");
    } catch (const Error&) {
        return false;
    }
}

bool V3::probe_group(const PlaceView& place) const {
    Buffer document;
    try {
        return place.store.get(place.key(v3_document_name), document, metadata_limit) && is_group(text_of(document));
    } catch (const Error&) {
        return false;
    }
}

bool V3::probe(const PlaceView& place) const {
    // An unreadable document counts as a damaged array: loading it reports the error.
    return place.store.contains(place.key(v3_document_name)) && !probe_group(place);
}

std::optional<Value> V3::load_attributes(const PlaceView& place) const {
    Buffer document;
    if (!place.store.get(place.key(v3_document_name), document, metadata_limit)) return {};
    return reading(place.name_of(v3_document_name), [&]() -> std::optional<Value> {
        const auto written = outer_member(text_of(document), "attributes");
        if (!written) {
            const Value whole = Value::parse(text_of(document));  // damaged, or without attributes
            (void)whole.as_object();
            return {};
        }
        Value attributes = Value::parse(*written);
        (void)in_member("attributes", [&] { return attributes.as_object().size(); });
        return attributes;
    });
}

void V3::save(const PlaceRef& place, const ArrayMetadata& metadata, const Value* attributes) const {
    Value kept = Value::object();
    if (attributes != nullptr) {
        (void)attributes->as_object();
        kept = *attributes;
    } else if (auto there = load_attributes(place)) {
        kept = std::move(*there);
    }
    put_document(place, v3_document(metadata, std::move(kept)));
}

void V3::save_attributes(const PlaceRef& place, const Value& attributes) const {
    (void)attributes.as_object();
    Value document = document_at(place);
    document.set("attributes", attributes);
    put_document(place, document);
}

// ---- groups

Value V3::load_group_unknown(const PlaceView& place) const {
    constexpr std::array<std::string_view, 4> known{"attributes", "zarr_format", "node_type", "consolidated_metadata"};
    const auto group = load_document(place);
    return group ? unknown_members(*group, known) : Value::object();
}

void V3::save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const {
    (void)attributes.as_object();
    require_optional(unknown);
    Value group = v3_group_document(attributes);
    for (const auto& [key, value] : unknown.as_object()) group.set(key, value);
    put_document(place, group);
}

std::optional<Value> V3::load_consolidated(const PlaceView& place) const {
    const auto document = load_document(place);
    const Value* consolidated = document ? document->find("consolidated_metadata") : nullptr;
    if (consolidated == nullptr || consolidated->is_null()) return {};
    return reading(place.name_of(v3_document_name), [&] {
        return in_member("consolidated_metadata", [&] {
            member(*consolidated, "kind", [](const Value& v) {
                if (v != Value("inline")) throw unsupported("{} was found, expected \"inline\"", excerpt(v));
                return 0;
            });
            return member(*consolidated, "metadata", [](const Value& v) {
                Value::Object nodes;
                for (const auto& [path, node] : v.as_object()) {
                    nodes.emplace_back(path, Value::Object{{std::string(v3_document_name), node}});
                }
                return Value(std::move(nodes));
            });
        });
    });
}

void V3::save_consolidated(const PlaceRef& place, const Value& nodes) const {
    Value::Object metadata;
    for (const auto& [path, held] : nodes.as_object()) {
        Value node = held.at(v3_document_name);
        // As zarr-python 3 writes it: a listed group has an empty copy of its own.
        const Value* type = node.find("node_type");
        if (type != nullptr && *type == Value("group")) {
            node.set("consolidated_metadata", v3_consolidated_metadata(Value::object()));
        }
        metadata.emplace_back(path, std::move(node));
    }
    Value document = document_at(place);
    document.set("consolidated_metadata", v3_consolidated_metadata(std::move(metadata)));
    put_document(place, document);
}

}  // namespace

constinit const Dialect& v3_dialect = v3;

}  // namespace tessera
