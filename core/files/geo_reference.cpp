#include <tessera/geo_reference.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/number_text.h>

namespace tessera {

namespace {

struct GeoEntry {
    std::string_view name, uuid, description;
};
constexpr std::array<GeoEntry, 3> geo_entries{
    {{"multiscales", "d35379db-88df-4056-af3a-620245f8e347", "Multiscale layout of zarr datasets"},
     {"proj", "f17cb550-5864-4468-aeb7-f3180cfb622f", "Coordinate reference system information for geospatial data"},
     {"spatial", "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4", "Spatial coordinate information"}}};
constexpr std::array<std::string_view, 3> crs_members{"proj:code", "proj:wkt2", "proj:projjson"};

const GeoEntry& entry_of(GeoConvention convention) {
    return geo_entries[static_cast<std::size_t>(convention)];
}

template <std::size_t n>
std::optional<std::array<double, n>> numbers_of(const Value* list) {
    if (list == nullptr || !list->is_array() || list->as_array().size() != n) return std::nullopt;
    std::array<double, n> numbers{};
    for (std::size_t i = 0; i < n; ++i) {
        const Value& number = list->as_array()[i];
        if (!number.is_number() || !std::isfinite(number.as_double())) return std::nullopt;
        numbers[i] = number.as_double();
    }
    return numbers;
}

/// The first quoted text: WKT2 has the system's name there.
std::string first_name(std::string_view wkt) {
    const std::size_t begin = wkt.find('"');
    const std::size_t end = begin == wkt.npos ? begin : wkt.find('"', begin + 1);
    return std::string(end == wkt.npos ? "WKT2" : wkt.substr(begin + 1, end - begin - 1));
}

/// That of elements which begin at a place among those of `reference`, and are `by` as large.
GeoReference moved(const GeoReference& reference, std::array<double, 2> place, std::array<std::int64_t, 2> by,
                   std::array<std::int64_t, 2> shape) {
    GeoReference made = reference;
    made.shape = shape;
    if (!reference.transform) return made;
    const auto [a, b, c, d, e, f] = *reference.transform;
    const auto [row, column] = place;
    const double rows = static_cast<double>(by[0]), columns = static_cast<double>(by[1]);
    made.transform = {a * columns, b * rows, c + a * column + b * row, d * columns, e * rows, f + d * column + e * row};
    return made;
}

}  // namespace

Value geo_convention(GeoConvention convention) {
    const auto& [name, uuid, description] = entry_of(convention);
    const std::string url = "zarr-conventions/" + std::string(name);
    return Value{
        {"schema_url", "https://raw.githubusercontent.com/" + url + "/refs/tags/v0.1/schema.json"},
        {"spec_url", "https://github.com/" + url + "/blob/v0.1/README.md"},
        {"uuid", uuid},
        {"name", name},
        {"description", description},
    };
}

bool is_geo_convention(const Value& entry, GeoConvention convention) {
    if (!entry.is_object()) return false;
    const GeoEntry& known = entry_of(convention);
    if (const Value* uuid = entry.find("uuid")) return *uuid == Value(known.uuid);
    const auto names = [&](std::string_view member) {
        const Value* url = entry.find(member);
        return url != nullptr && url->is_string() &&
               url->as_string().find(fmt::format("/{}/", known.name)) != std::string::npos;
    };
    return names("schema_url") || names("spec_url");
}

std::optional<std::array<double, 4>> GeoReference::bounds() const {
    if (!transform || !shape) return std::nullopt;
    const auto [a, b, c, d, e, f] = *transform;
    const double less = nodes ? 1 : 0;
    const double rows = static_cast<double>((*shape)[0]) - less, columns = static_cast<double>((*shape)[1]) - less;
    const auto range = [&](double along_columns, double along_rows, double origin) {
        const double over = along_columns * columns, down = along_rows * rows;
        return std::pair(origin + std::min(over, 0.0) + std::min(down, 0.0),
                         origin + std::max(over, 0.0) + std::max(down, 0.0));
    };
    const auto x = range(a, b, c), y = range(d, e, f);
    return std::array{x.first, y.first, x.second, y.second};
}

std::string GeoReference::crs_name() const {
    if (const Value* code = crs.find("proj:code")) return code->as_string();
    if (const Value* wkt = crs.find("proj:wkt2")) return first_name(wkt->as_string());
    if (const Value* json = crs.find("proj:projjson")) {
        const Value* name = json->find("name");
        return name != nullptr && name->is_string() ? name->as_string() : "PROJJSON";
    }
    return "";
}

std::optional<GeoReference> geo_reference_in(const Value& attributes) {
    if (!attributes.is_object()) return std::nullopt;
    GeoReference reference;
    const Value* names = attributes.find("spatial:dimensions");
    if (names != nullptr && names->is_array() && names->as_array().size() == 2 && names->as_array()[0].is_string() &&
        names->as_array()[1].is_string()) {
        reference.dimensions = {names->as_array()[0].as_string(), names->as_array()[1].as_string()};
    }
    const Value* type = attributes.find("spatial:transform_type");
    if (type == nullptr || *type == Value("affine")) {
        reference.transform = numbers_of<6>(attributes.find("spatial:transform"));
    }
    if (const auto shape = numbers_of<2>(attributes.find("spatial:shape"))) {
        constexpr double most = 9.0e18;
        const bool fits = std::ranges::all_of(*shape, [](double n) { return n >= 1 && n < most; });
        if (fits) {
            reference.shape = {static_cast<std::int64_t>((*shape)[0]), static_cast<std::int64_t>((*shape)[1])};
        }
    }
    const Value* registration = attributes.find("spatial:registration");
    reference.nodes = registration != nullptr && *registration == Value("node");
    for (const std::string_view member : crs_members) {
        const Value* value = attributes.find(member);
        if (value == nullptr || (member == "proj:projjson" ? !value->is_object() : !value->is_string())) continue;
        reference.crs.set(member, *value);
    }
    const bool known = reference.transform || !reference.crs.as_object().empty();
    return known ? std::optional(std::move(reference)) : std::nullopt;
}

void add_geo_convention(Value& attributes, GeoConvention convention) {
    Value list = Value::array();
    const Value* stored = attributes.find("zarr_conventions");
    if (stored != nullptr && stored->is_array()) {
        for (const Value& entry : stored->as_array()) {
            if (!is_geo_convention(entry, convention)) list.push_back(entry);
        }
    }
    list.push_back(geo_convention(convention));
    attributes.set("zarr_conventions", std::move(list));
}

void set_geo_reference(Value& attributes, const GeoReference& reference) {
    const auto replace = [&](std::string_view member, std::optional<Value> value) {
        if (value) {
            attributes.set(member, *std::move(value));
        } else {
            attributes.erase(member);
        }
    };
    const auto list = [](const auto& numbers) { return Value(Value::Array(numbers.begin(), numbers.end())); };
    if (reference.transform) {
        replace("spatial:dimensions", list(reference.dimensions));
        replace("spatial:transform", list(*reference.transform));
        replace("spatial:shape", reference.shape ? std::optional(list(*reference.shape)) : std::nullopt);
        replace("spatial:registration", reference.nodes ? std::optional(Value("node")) : std::nullopt);
        // One of other elements would be wrong.
        const auto bounds = reference.bounds();
        if (attributes.find("spatial:bbox") != nullptr) {
            replace("spatial:bbox", bounds ? std::optional(list(*bounds)) : std::nullopt);
        }
        add_geo_convention(attributes, GeoConvention::spatial);
    }
    if (reference.crs.as_object().empty()) return;
    for (const std::string_view member : crs_members) {
        const Value* value = reference.crs.find(member);
        replace(member, value != nullptr ? std::optional(*value) : std::nullopt);
    }
    add_geo_convention(attributes, GeoConvention::proj);
}

GeoReference coarsened(const GeoReference& reference, std::array<std::int64_t, 2> by, std::array<std::int64_t, 2> shape,
                       bool of_first) {
    const auto middle = [&](std::int64_t n) {
        return reference.nodes && !of_first ? static_cast<double>(n - 1) / 2 : 0.0;
    };
    return moved(reference, {middle(by[0]), middle(by[1])}, by, shape);
}

GeoReference selected(const GeoReference& reference, std::array<std::int64_t, 2> start,
                      std::array<std::int64_t, 2> step, std::array<std::int64_t, 2> shape) {
    // Backwards, the outer edge of the first element is its other one.
    const auto edge = [&](std::size_t d) {
        return static_cast<double>(start[d]) + (step[d] < 0 && !reference.nodes ? 1 : 0);
    };
    return moved(reference, {edge(0), edge(1)}, step, shape);
}

void erase_geo_place(Value& attributes) {
    for (const std::string_view member : {"spatial:dimensions", "spatial:transform", "spatial:transform_type",
                                          "spatial:shape", "spatial:bbox", "spatial:registration"}) {
        attributes.erase(member);
    }
    const Value* const stored = attributes.find("zarr_conventions");
    if (stored == nullptr || !stored->is_array()) return;
    Value::Array list = stored->as_array();
    std::erase_if(list, [](const Value& entry) { return is_geo_convention(entry, GeoConvention::spatial); });
    if (list.empty()) {
        attributes.erase("zarr_conventions");
    } else {
        attributes.set("zarr_conventions", std::move(list));
    }
}

bool is_crs_code(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == text.npos || colon == 0 || colon + 1 == text.size()) return false;
    const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return std::ranges::all_of(text.substr(0, colon), capital) && std::ranges::all_of(text.substr(colon + 1), digit);
}

Value parse_crs(std::string_view text) {
    if (is_crs_code(text)) return Value{{"proj:code", text}};
    if (text.starts_with('{')) {
        try {
            return Value{{"proj:projjson", Value::parse(text)}};
        } catch (const Error&) {
            // Said below.
        }
    }
    const std::size_t bracket = text.find('[');
    const std::string_view keyword = text.substr(0, bracket);
    const bool wkt2 = bracket != text.npos && text.ends_with(']') && keyword.ends_with("CRS") &&
                      std::ranges::all_of(keyword, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (wkt2) return Value{{"proj:wkt2", text}};
    throw invalid_argument("expected a code such as EPSG:4326, WKT2 such as PROJCRS[…], or PROJJSON, found {}",
                           Value(text.substr(0, 60)).dump({.ascii = true}));
}

std::string grid_mapping_in(const Value& attributes) {
    const Value* const text = attributes.find("grid_mapping");
    if (text == nullptr || !text->is_string()) return {};
    // "crs", or "crs: x y"
    return text->as_string().substr(0, text->as_string().find_first_of(": "));
}

std::vector<double> geo_transform_in(const Value& attributes) {
    const Value* const found = attributes.find(geo_transform_attribute);
    const Value value = found != nullptr ? *found : Value();
    std::vector<double> numbers;
    if (value.is_array()) {
        for (const Value& one : value.as_array()) {
            if (one.is_number()) numbers.push_back(one.as_double());
        }
    } else if (value.is_string()) {
        const std::string& text = value.as_string();
        const char* at = text.data();
        const char* const end = at + text.size();
        while (at != end) {
            double number = 0;
            const auto [stop, error] = number_from_text(at, end, number);
            if (error == std::errc()) numbers.push_back(number);
            at = error == std::errc() ? stop : at + 1;
        }
    }
    return numbers.size() == 6 ? numbers : std::vector<double>{};
}

}  // namespace tessera
