#include <tessera/geo_problems.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <tessera/geo_reference.h>

#include "document_checker.h"

namespace tessera {

namespace {

constexpr std::array<GeoConvention, 3> geo_conventions{GeoConvention::multiscales, GeoConvention::proj,
                                                       GeoConvention::spatial};

std::string name_of(GeoConvention convention) {
    return geo_convention(convention).at("name").as_string();
}

/// Whether attributes have members of a convention.
bool uses(const Value& attributes, GeoConvention convention) {
    if (convention == GeoConvention::multiscales) {
        const Value* value = attributes.find("multiscales");  // OME-Zarr's is a list
        return value != nullptr && value->is_object();
    }
    const std::string prefix = name_of(convention) + ":";
    return std::ranges::any_of(attributes.as_object(),
                               [&](const auto& member) { return member.first.starts_with(prefix); });
}

const Value* entry_of(const Value& attributes, GeoConvention convention) {
    const Value* list = attributes.find("zarr_conventions");
    if (list == nullptr || !list->is_array()) return nullptr;
    const auto found = std::ranges::find_if(list->as_array(),
                                            [&](const Value& entry) { return is_geo_convention(entry, convention); });
    return found == list->as_array().end() ? nullptr : &*found;
}

bool is_asset(const Value& v) {
    if (!v.is_string()) return false;
    const std::string& path = v.as_string();
    return !path.empty() && !path.starts_with('/') && !path.ends_with('/') && path.find("//") == std::string::npos &&
           path.find("..") == std::string::npos;
}

constexpr ExpectedValue an_asset{"a path below the group, without '..'", is_asset};
constexpr ExpectedValue a_code{"an authority and a number, as EPSG:4326",
                               [](const Value& v) { return v.is_string() && is_crs_code(v.as_string()); }};
constexpr ExpectedValue a_registration{"\"pixel\" or \"node\"",
                                       [](const Value& v) { return v == Value("pixel") || v == Value("node"); }};

class GeoChecker : public DocumentChecker {
public:
    void check(const Value& attributes, bool of_array);

private:
    void convention(const DocumentSpot& attributes, GeoConvention convention);
    void spatial(const DocumentSpot& attributes, bool of_array);
    /// The members that may stand in a level, too.
    void place(const DocumentSpot& at);
    void proj(const DocumentSpot& attributes);
    void multiscales(const DocumentSpot& attributes);
    void level(const DocumentSpot& level);
    void steps(const std::vector<DocumentSpot>& levels);
};

void GeoChecker::convention(const DocumentSpot& attributes, GeoConvention convention) {
    const Value known = geo_convention(convention);
    const Value* entry = entry_of(*attributes.value, convention);
    if (entry == nullptr) {
        add(ConventionRule::schema, "zarr_conventions", "expected an entry of \"{}\" with uuid {}, found none",
            name_of(convention), known.at("uuid").as_string());
        return;
    }
    const std::string at = "zarr_conventions, " + name_of(convention);
    const Value* url = entry->find("schema_url");
    if (url == nullptr) url = entry->find("spec_url");
    if (url != nullptr && *url != known.at("schema_url") && *url != known.at("spec_url")) {
        add(ConventionRule::advice, at, "is of another version than v0.1, by which it is checked: {}", shown(*url));
        return;
    }
    for (const auto& [key, value] : entry->as_object()) {
        const Value* expected = known.find(key);
        if (expected == nullptr) {
            add(ConventionRule::schema, at, "has a member {}, which it cannot have", shown(Value(key)));
        } else if (*expected != value) {
            add(ConventionRule::schema, at, "{}: expected {}, found {}", key, expected->dump(), shown(value));
        }
    }
}

void GeoChecker::place(const DocumentSpot& at) {
    list(at, "spatial:shape", from_1, {.least = 2, .most = 2});
    list(at, "spatial:transform", a_number, {.least = 6, .most = 6});
    const auto reference = geo_reference_in(*at.value);
    if (!reference || !reference->transform) return;
    const auto& t = *reference->transform;
    if (t[0] * t[4] == t[1] * t[3]) {
        add(ConventionRule::text, at.at.empty() ? "spatial:transform" : at.at + ".spatial:transform",
            "rows and columns run in one direction");
    }
}

void GeoChecker::spatial(const DocumentSpot& attributes, bool of_array) {
    const auto names = list(attributes, "spatial:dimensions", a_string, {.least = 2, .most = 2},
                            of_array ? Need::required : Need::optional);
    if (names.size() == 2 && *names[0].value == *names[1].value) {
        add(ConventionRule::text, "spatial:dimensions", "y and x run along two dimensions, found {} twice",
            shown(*names[0].value));
    }
    get(attributes, "spatial:transform_type", a_string);
    get(attributes, "spatial:registration", a_registration);
    place(attributes);
    const auto box = list(attributes, "spatial:bbox", a_number, {.least = 4, .most = 4});
    if (box.size() != 4) return;
    std::array<double, 4> found{};
    std::ranges::transform(box, found.begin(), [](const DocumentSpot& spot) { return spot.value->as_double(); });
    if (!(found[0] <= found[2] && found[1] <= found[3])) {
        add(ConventionRule::text, "spatial:bbox", "expected [xmin, ymin, xmax, ymax], found {}",
            attributes.value->at("spatial:bbox").dump());
        return;
    }
    const auto reference = geo_reference_in(*attributes.value);
    const auto bounds = reference ? reference->bounds() : std::nullopt;
    for (std::size_t i = 0; bounds && i < 4; ++i) {
        // The numbers may have been rounded, but to less than a thousandth of the whole.
        const double span = i % 2 == 0 ? (*bounds)[2] - (*bounds)[0] : (*bounds)[3] - (*bounds)[1];
        if (std::abs(found.at(i) - bounds->at(i)) <= span / 1000) continue;
        add(ConventionRule::text, "spatial:bbox", "expected {}, as transform and shape say, found {}",
            Value(Value::Array(bounds->begin(), bounds->end())).dump(), attributes.value->at("spatial:bbox").dump());
        return;
    }
}

void GeoChecker::proj(const DocumentSpot& attributes) {
    get(attributes, "proj:code", a_code);
    get(attributes, "proj:wkt2", a_string);
    get(attributes, "proj:projjson", an_object);
    const auto has = [&](std::string_view name) { return attributes.value->find(name) != nullptr; };
    if (!has("proj:code") && !has("proj:wkt2") && !has("proj:projjson")) {
        add(ConventionRule::schema, "", "expected \"proj:code\", \"proj:wkt2\" or \"proj:projjson\", found none");
    }
}

void GeoChecker::level(const DocumentSpot& level) {
    get(level, "asset", an_asset, Need::required);
    const auto source = get(level, "derived_from", an_asset);
    get(level, "resampling_method", a_string);
    place(level);
    const auto transform = get(level, "transform", an_object, source ? Need::required : Need::optional);
    if (!transform) return;
    list(*transform, "scale", a_number, {});
    list(*transform, "translation", a_number, {});
}

/// Says where the steps of two levels are in another ratio than the scale between them.
void GeoChecker::steps(const std::vector<DocumentSpot>& levels) {
    for (const DocumentSpot& level : levels) {
        const Value* from = level.value->find("derived_from");
        const auto source = std::ranges::find_if(levels, [&](const DocumentSpot& other) {
            const Value* asset = other.value->find("asset");
            return from != nullptr && asset != nullptr && *asset == *from;
        });
        const Value* transform = level.value->find("transform");
        const Value* scale = transform != nullptr && transform->is_object() ? transform->find("scale") : nullptr;
        if (source == levels.end() || scale == nullptr || !scale->is_array() || scale->as_array().size() != 2) continue;
        const auto fine = geo_reference_in(*source->value), coarse = geo_reference_in(*level.value);
        if (!fine || !coarse || !fine->transform || !coarse->transform) continue;
        for (std::size_t i = 0; i < 2; ++i) {
            const Value& number = scale->as_array()[i];
            if (!number.is_number()) continue;
            const auto step = [&](const GeoReference& reference) {  // along y, then along x
                const auto& t = *reference.transform;
                return i == 0 ? std::hypot(t[1], t[4]) : std::hypot(t[0], t[3]);
            };
            const double expected = step(*fine) * number.as_double(), found = step(*coarse);
            if (std::abs(found - expected) <= expected / 100) continue;
            add(ConventionRule::text, level.at + ".spatial:transform",
                "expected steps of {} along {}, {} times those of {}, found {}", expected, i == 0 ? "y" : "x",
                number.dump(), shown(*from), found);
        }
    }
}

void GeoChecker::multiscales(const DocumentSpot& attributes) {
    const auto pyramid = get(attributes, "multiscales", an_object, Need::required);
    if (!pyramid) return;
    get(*pyramid, "resampling_method", a_string);
    const std::vector<DocumentSpot> levels = list(*pyramid, "layout", an_object, {.least = 1}, Need::required);
    for (const DocumentSpot& each : levels) level(each);
    require_distinct(ConventionRule::text, levels, "asset");
    steps(levels);
}

void GeoChecker::check(const Value& attributes, bool of_array) {
    const DocumentSpot all{&attributes, ""};
    list(all, "zarr_conventions", an_object, {});
    for (const GeoConvention each : geo_conventions) {
        if (!uses(attributes, each) && entry_of(attributes, each) == nullptr) continue;
        convention(all, each);
        if (each == GeoConvention::proj) {
            proj(all);
        } else if (each == GeoConvention::spatial) {
            spatial(all, of_array);
        } else if (of_array) {
            add(ConventionRule::schema, "multiscales", "stands in groups, and this is an array");
        } else {
            multiscales(all);
        }
    }
}

}  // namespace

bool has_geo_metadata(const Value& attributes) {
    return attributes.is_object() && std::ranges::any_of(geo_conventions, [&](GeoConvention convention) {
               return uses(attributes, convention) || entry_of(attributes, convention) != nullptr;
           });
}

std::vector<ConventionProblem> geo_problems(const Value& attributes, bool of_array) {
    if (!has_geo_metadata(attributes)) return {};
    GeoChecker checker;
    checker.check(attributes, of_array);
    return std::move(checker.problems);
}

}  // namespace tessera
