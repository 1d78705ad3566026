// The metadata of OME-Zarr in a hierarchy: each group's own, and what they say of other nodes.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/group.h>
#include <tessera/ome_problems.h>

#include "convention_tree.h"

namespace tessera {

namespace {

/// A group with metadata of OME-Zarr.
struct OmeGroup {
    const Dialect* dialect;
    std::string document;  ///< the key of the file with the attributes
    Value attributes;
    const Value* ome;  ///< the members, in `attributes`
    std::optional<OmeVersion> version;

    OmeGroup(const Dialect* d, std::string key, Value all)
        : dialect(d),
          document(std::move(key)),
          attributes(std::move(all)),
          ome(ome_members_of(attributes)),
          version(stored_ome_version(attributes)) {}
    OmeGroup(OmeGroup&&) = delete;

    [[nodiscard]] const Value* find(std::string_view name) const {
        return ome != nullptr && ome->is_object() ? ome->find(name) : nullptr;
    }
    [[nodiscard]] std::string at(std::string_view member) const {
        return ome == &attributes ? std::string(member) : fmt::format("ome.{}", member);
    }
};

/// The names of the axes into which an image's levels lead; nullopt where the metadata do not say.
std::optional<std::vector<std::string>> axes_of_levels(const Value& image) {
    const Value* axes = member_of(image, "axes");
    const Value* datasets = member_of(image, "datasets");
    if (const Value* systems = member_of(image, "coordinateSystems")) {
        const Value* name = nullptr;
        each_item(datasets, "", [&](const Value& level, const auto&) {
            each_item(member_of(level, "coordinateTransformations"), "", [&](const Value& t, const auto&) {
                const Value* output = member_of(t, "output");
                if (name == nullptr && output != nullptr) name = member_of(*output, "name");
            });
        });
        each_item(systems, "", [&](const Value& system, const auto&) {
            const Value* its = member_of(system, "name");
            if (name != nullptr && its != nullptr && *its == *name) axes = member_of(system, "axes");
        });
    }
    if (axes == nullptr || !axes->is_array()) return std::nullopt;
    std::vector<std::string> names;
    for (const Value& axis : axes->as_array()) {
        const Value* name = member_of(axis, "name");
        names.push_back(name != nullptr && name->is_string() ? name->as_string() : "");
    }
    return names;
}

std::size_t count_levels(const OmeGroup& group) {
    const Value* images = group.find("multiscales");
    if (images == nullptr || !images->is_array() || images->as_array().empty()) return 0;
    const Value* levels = member_of(images->as_array()[0], "datasets");
    return levels != nullptr && levels->is_array() ? levels->as_array().size() : 0;
}

class OmeTree : public ConventionTree {
public:
    OmeTree(const Group& root, VerifyReport& report) : ConventionTree(root, Convention::ome, report) {}
    void check();

private:
    void check_document(const std::string& path, const OmeGroup& group);
    /// A group that metadata name, if it has one of OME-Zarr's members; else nullptr, with a finding.
    const OmeGroup* group_at(const std::string& path, const OmeGroup& from, const Value& relative,
                             const std::string& at, std::string_view member);
    void check_image(const std::string& path, const OmeGroup& group, const Value& image, const std::string& at);
    /// Whether a level goes with its image and those before it.
    void check_level(const std::string& node, const Array& level, const Array* first, const Array* before);
    void check_names(const std::string& node, const Array& level, const std::vector<std::string>& axes,
                     const OmeGroup& group);
    void check_labels(const std::string& path, const OmeGroup& group);
    void check_plate(const std::string& path, const OmeGroup& group);
    void check_well(const std::string& path, const OmeGroup& group);
    void check_series(const std::string& path, const OmeGroup& group);
    void check_scene(const std::string& path, const OmeGroup& group);

    std::map<std::string, OmeGroup> groups_;
    std::set<std::string> label_images_;
};

void OmeTree::check() {
    const std::size_t before = report_.findings.size();
    each_group([&](const std::string& path, const Group& group, const std::string& document) {
        Value attributes = group.attributes().all();
        if (ome_members_of(attributes) == nullptr) return;
        groups_.try_emplace(path, group.dialect(), document, std::move(attributes));
    });
    report_.groups += static_cast<std::int64_t>(groups_.size());
    if (groups_.empty() && report_.findings.size() == before) {
        add(FindingKind::damage, "", "", ConventionRule::schema, "no group here has metadata of OME-Zarr");
    }
    // Label images last: they are compared with the images, which are known by then.
    for (const auto& [path, group] : groups_) {
        check_document(path, group);
        if (!group.version) continue;
        check_labels(path, group);
        check_plate(path, group);
        check_well(path, group);
        check_series(path, group);
        check_scene(path, group);
    }
    for (const auto& [path, group] : groups_) {
        if (!group.version) continue;
        each_item(group.find("multiscales"), group.at("multiscales"),
                  [&, &of = group, &at_path = path](const Value& image, const std::string& at) {
                      check_image(at_path, of, image, at);
                  });
    }
}

void OmeTree::check_document(const std::string& path, const OmeGroup& group) {
    add(path, group.document, ome_problems(group.attributes));
    if (!group.version) return;
    const std::string_view version = ome_version_text(*group.version);
    const std::string_view format = *group.version == OmeVersion::v0_4 ? "v2" : "v3";
    if (group.dialect->name != format) {
        add(FindingKind::damage, path, group.document, ConventionRule::text,
            fmt::format("metadata of {} stand in groups of {}, and this one is of {}", version, format,
                        group.dialect->name));
    }
    const auto& [first_path, first] = *groups_.begin();
    if (first.version && *first.version != *group.version) {
        add(FindingKind::damage, path, group.document, ConventionRule::tree,
            fmt::format("these metadata are of {}, and those in {} of {}", version, first.document,
                        ome_version_text(*first.version)));
    }
}

const OmeGroup* OmeTree::group_at(const std::string& path, const OmeGroup& from, const Value& relative,
                                  const std::string& at, std::string_view member) {
    const auto place = node_at(path, from.document, relative, at, NodeKind::group);
    if (!place) return nullptr;
    const auto group = groups_.find(*place);
    if (group != groups_.end() && group->second.find(member) != nullptr) return &group->second;
    add(FindingKind::damage, *place, "", ConventionRule::tree,
        fmt::format("expected \"{}\" in the metadata of this group, which {} of {} names", member, at, from.document));
    return nullptr;
}

void OmeTree::check_image(const std::string& path, const OmeGroup& group, const Value& image, const std::string& at) {
    const auto axes = axes_of_levels(image);
    std::optional<Array> first, before;
    each_item(member_of(image, "datasets"), at + ".datasets", [&](const Value& level, const std::string& level_at) {
        const Value* relative = member_of(level, "path");
        if (relative == nullptr) return;
        const auto node = node_at(path, group.document, *relative, level_at + ".path", NodeKind::array);
        if (!node) return;
        guarded(*node, "", [&] {
            const Array array = root_.open_array(*node);
            ++report_.arrays;
            const int rank = array.shape().rank();
            if (axes && axes->size() != static_cast<std::size_t>(rank)) {
                add(FindingKind::damage, *node, "", ConventionRule::tree,
                    fmt::format("has {} dimensions, and {} in {} has {} axes", rank, at, group.document, axes->size()));
            } else if (axes) {
                check_names(*node, array, *axes, group);
            }
            check_level(*node, array, first ? &*first : nullptr, before ? &*before : nullptr);
            const Kind kind = array.dtype().kind();
            if (label_images_.contains(path) && kind != Kind::integer && kind != Kind::unsigned_integer) {
                add(FindingKind::damage, *node, "", ConventionRule::tree,
                    fmt::format("is of {}, and labels are integers", array.dtype().str()));
            }
            if (!first) first = array;
            before = array;
        });
    });
}

void OmeTree::check_level(const std::string& node, const Array& level, const Array* first, const Array* before) {
    if (first == nullptr || before == nullptr) return;
    const auto damaged = [&](std::string text) {
        add(FindingKind::damage, node, "", ConventionRule::tree, std::move(text));
    };
    const Shape shape = level.shape();
    if (first->shape().rank() != shape.rank()) {
        damaged(fmt::format("has {} dimensions, and the first level {}", shape.rank(), first->shape().rank()));
    }
    if (first->dtype() != level.dtype()) {
        damaged(fmt::format("is of {}, and the first level of {}", level.dtype().str(), first->dtype().str()));
    }
    for (int d = 0; d < shape.rank() && d < before->shape().rank(); ++d) {
        if (shape[d] <= before->shape()[d]) continue;
        damaged(fmt::format("is longer than the level before, {} and {}: the largest comes first", shape.to_string(),
                            before->shape().to_string()));
        break;
    }
}

void OmeTree::check_names(const std::string& node, const Array& level, const std::vector<std::string>& axes,
                          const OmeGroup& group) {
    if (group.version != OmeVersion::v0_5) return;
    const std::vector<std::optional<std::string>> names = level.metadata().dimension_names;
    if (names.empty()) {
        add(FindingKind::note, node, "", ConventionRule::text,
            "has no dimension_names, which 0.5 requires to name the axes");
        return;
    }
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (names[d] == axes[d]) continue;
        add(FindingKind::damage, node, "", ConventionRule::text,
            fmt::format("names dimension {} {}, and the axis is {}", d, names[d].value_or("null"), axes[d]));
    }
}

void OmeTree::check_labels(const std::string& path, const OmeGroup& group) {
    const Value* labels = group.find("labels");
    if (labels == nullptr) return;
    std::set<std::string> listed;
    const auto image = groups_.find(parent_of(path));
    each_item(labels, group.at("labels"), [&](const Value& label, const std::string& at) {
        const OmeGroup* there = group_at(path, group, label, at, "multiscales");
        const auto place = label.is_string() ? path_from(path, label.as_string()) : std::nullopt;
        if (place) listed.insert(*place);
        if (there == nullptr) return;
        label_images_.insert(*place);
        if (path.empty() || image == groups_.end()) return;
        const std::size_t expected = count_levels(image->second), found = count_levels(*there);
        if (expected == 0 || found == expected) return;
        add(FindingKind::damage, *place, there->document, ConventionRule::tree,
            fmt::format("{}: expected {} levels, as the image has, found {}", there->at("multiscales[0].datasets"),
                        expected, found));
    });
    for (const auto& [other, of] : groups_) {
        if (parent_of(other) != path || other == path || of.find("multiscales") == nullptr || listed.contains(other)) {
            continue;
        }
        add(FindingKind::note, other, "", ConventionRule::tree,
            fmt::format("is a label image that {} of {} does not list", group.at("labels"), group.document));
    }
}

void OmeTree::check_plate(const std::string& path, const OmeGroup& group) {
    const Value* plate = group.find("plate");
    if (plate == nullptr) return;
    std::set<std::string> ids;
    each_item(member_of(*plate, "acquisitions"), "", [&](const Value& acquisition, const auto&) {
        if (const Value* id = member_of(acquisition, "id")) ids.insert(id->dump());
    });
    each_item(member_of(*plate, "wells"), group.at("plate.wells"), [&](const Value& well, const std::string& at) {
        const Value* relative = member_of(well, "path");
        if (relative == nullptr) return;
        const OmeGroup* there = group_at(path, group, *relative, at + ".path", "well");
        if (there == nullptr) return;
        each_item(
            member_of(*there->find("well"), "images"), there->at("well.images"),
            [&](const Value& image, const std::string& image_at) {
                const Value* id = member_of(image, "acquisition");
                if (id == nullptr ? ids.size() < 2 : ids.empty() || ids.contains(id->dump())) return;
                add(FindingKind::damage, *path_from(path, relative->as_string()), there->document, ConventionRule::tree,
                    id == nullptr
                        ? fmt::format("{}: expected \"acquisition\", found none", image_at)
                        : fmt::format("{}.acquisition: {} has none with id {}", image_at, group.document, id->dump()));
            });
    });
}

void OmeTree::check_well(const std::string& path, const OmeGroup& group) {
    const Value* well = group.find("well");
    if (well == nullptr) return;
    each_item(member_of(*well, "images"), group.at("well.images"), [&](const Value& image, const std::string& at) {
        if (const Value* relative = member_of(image, "path")) {
            (void)group_at(path, group, *relative, at + ".path", "multiscales");
        }
    });
}

void OmeTree::check_series(const std::string& path, const OmeGroup& group) {
    // The list stands in the group OME of the images' group.
    each_item(group.find("series"), group.at("series"), [&](const Value& image, const std::string& at) {
        (void)group_at(parent_of(path), group, image, at, "multiscales");
    });
}

void OmeTree::check_scene(const std::string& path, const OmeGroup& group) {
    const Value* scene = group.find("scene");
    if (scene == nullptr) return;
    each_item(member_of(*scene, "coordinateTransformations"), group.at("scene.coordinateTransformations"),
              [&](const Value& t, const std::string& at) {
                  for (const std::string_view end : {"input", "output"}) {
                      const Value* place = member_of(t, end);
                      const Value* relative = place != nullptr ? member_of(*place, "path") : nullptr;
                      if (relative == nullptr) continue;
                      (void)group_at(path, group, *relative, fmt::format("{}.{}.path", at, end), "multiscales");
                  }
              });
}

}  // namespace

void verify_ome(const Group& root, VerifyReport& report) {
    OmeTree(root, report).check();
}

}  // namespace tessera
