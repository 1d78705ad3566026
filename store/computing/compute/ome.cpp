#include <tessera/conventions.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

constexpr std::array<std::pair<OmeVersion, std::string_view>, 3> ome_versions{
    {{OmeVersion::v0_4, "0.4"}, {OmeVersion::v0_5, "0.5"}, {OmeVersion::v0_6, "0.6rc0"}}};
constexpr std::array<std::string_view, 7> ome_members{
    "multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout"};

/// Calls change(item) for each object of a list, or for the object itself.
template <class Change>
Value for_objects(Value value, const Change& change) {
    if (value.is_object()) {
        change(value);
    } else if (value.is_array()) {
        Value list = Value::array();
        for (Value item : value.as_array()) {
            if (item.is_object()) change(item);
            list.push_back(std::move(item));
        }
        return list;
    }
    return value;
}

Value without(const Value& object, std::string_view name) {
    Value rest = Value::object();
    for (const auto& [key, value] : object.as_object()) {
        if (key != name) rest.set(key, value);
    }
    return rest;
}

/// 0.4's attributes as 0.5: everything below "ome", where one version stands.
Value as_0_5(const Value& attributes) {
    Value ome{{"version", "0.5"}};
    Value rest = Value::object();
    for (const auto& [key, value] : attributes.as_object()) {
        // GeoZarr has an object "multiscales".
        const bool of_ome =
            std::ranges::find(ome_members, key) != ome_members.end() &&
            ((value.is_object() && key != "multiscales") || value.is_array() || key == "bioformats2raw.layout");
        if (!of_ome) {
            rest.set(key, value);
            continue;
        }
        ome.set(key, for_objects(value, [&, &of = key](Value& object) {
                    const Value* version = object.find("version");
                    if (version != nullptr && *version != Value("0.4")) {
                        throw unsupported("its \"{}\" are of OME-NGFF {}; 0.4 and later are upgraded", of,
                                          version->dump());
                    }
                    object = without(object, "version");
                }));
    }
    if (ome.as_object().size() == 1) return attributes;
    rest.set("ome", std::move(ome));
    return rest;
}

/// Transformations one after the other, from `input` to `output`: 0.6 takes one, which may be a sequence.
Value one_transformation(const Value& list, Value input, Value output) {
    if (!list.is_array() || list.as_array().empty()) throw corrupt("coordinateTransformations: expected a list");
    for (const Value& each : list.as_array()) {
        const Value* type = each.is_object() ? each.find("type") : nullptr;
        if (type == nullptr || !type->is_string()) throw corrupt("coordinateTransformations: one has no type");
        if (each.find("path") != nullptr) throw unsupported("a transformation whose numbers lie in an array");
    }
    Value one = list.as_array().size() == 1 ? list.as_array()[0] : Value{{"type", "sequence"}};
    one.set("input", std::move(input));
    one.set("output", std::move(output));
    if (list.as_array().size() > 1) one.set("transformations", list);
    return one;
}

Value list_of(Value value) {
    Value list = Value::array();
    list.push_back(std::move(value));
    return list;
}

/// An image of 0.5 as 0.6: its axes are a coordinate system, into which each level is transformed.
void to_0_6(Value& image) {
    const Value* axes = image.find("axes");
    const Value* datasets = image.find("datasets");
    if (axes == nullptr || datasets == nullptr || !datasets->is_array()) {
        throw corrupt("multiscales: expected axes and datasets");
    }
    const std::string intrinsic = "intrinsic", world = "world";
    const auto named = [](const std::string& name) { return Value{{"name", name}}; };
    const auto system = [&](const std::string& name) { return Value{{"name", name}, {"axes", *axes}}; };
    Value systems = list_of(system(intrinsic));
    Value levels = Value::array();
    for (Value level : datasets->as_array()) {
        const Value* path = level.is_object() ? level.find("path") : nullptr;
        const Value* list = level.is_object() ? level.find("coordinateTransformations") : nullptr;
        if (path == nullptr || list == nullptr) {
            throw corrupt("datasets: expected a path and coordinateTransformations for each");
        }
        level.set("coordinateTransformations",
                  list_of(one_transformation(*list, Value{{"path", *path}}, named(intrinsic))));
        levels.push_back(std::move(level));
    }
    Value made = Value::object();
    for (const auto& [key, value] : image.as_object()) {
        if (key == "axes") {
            made.set("coordinateSystems", systems);
        } else if (key == "datasets") {
            made.set("datasets", levels);
        } else if (key == "coordinateTransformations") {
            systems.push_back(system(world));
            made.set(key, list_of(one_transformation(value, named(intrinsic), named(world))));
        } else {
            made.set(key, value);
        }
    }
    made.set("coordinateSystems", std::move(systems));
    image = std::move(made);
}

}  // namespace

OmeVersion ome_version_named(std::string_view text) {
    for (const auto& [version, name] : ome_versions) {
        if (text == name || (text == "0.6" && version == OmeVersion::v0_6)) return version;
    }
    throw invalid_argument("OME-Zarr is written as 0.4, 0.5 or 0.6, found {}", text);
}

std::string_view ome_version_text(OmeVersion version) {
    return ome_versions[static_cast<std::size_t>(version)].second;
}

Value upgraded_ome(const Value& attributes, OmeVersion to) {
    if (to == OmeVersion::v0_4) throw invalid_argument("0.4 is the oldest version, and none is upgraded to it");
    const bool old = attributes.find("ome") == nullptr;
    Value made = old ? as_0_5(attributes) : attributes;
    const Value* ome = made.find("ome");
    if (ome == nullptr || !ome->is_object()) return attributes;
    const Value* stored = ome->find("version");
    if (stored == nullptr || !stored->is_string()) throw corrupt("\"ome\" has no version");
    if (stored->as_string() == ome_version_text(to)) return made;
    if (stored->as_string() != "0.5") {
        throw unsupported("its metadata are of OME-NGFF {}, which is not upgraded to {}", stored->as_string(),
                          ome_version_text(to));
    }
    Value upgraded = *ome;
    upgraded.set("version", ome_version_text(to));
    if (const Value* images = ome->find("multiscales")) upgraded.set("multiscales", for_objects(*images, to_0_6));
    made.set("ome", std::move(upgraded));
    return made;
}

}  // namespace tessera
