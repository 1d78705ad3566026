// The metadata of OME-Zarr in a hierarchy: each group's own, and what they say of other nodes.
#include "verify_ome.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/nodes.h>
#include <tessera/ome_problems.h>
#include <tessera/place.h>

#include "check_chunk.h"

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

const Value* member_of(const Value& value, std::string_view name) {
    return value.is_object() ? value.find(name) : nullptr;
}

/// Calls f(item, place) for each item of a list; for nothing else.
template <class F>
void each_item(const Value* list, const std::string& at, const F& f) {
    if (list == nullptr || !list->is_array()) return;
    std::size_t n = 0;
    for (const Value& item : list->as_array()) f(item, fmt::format("{}[{}]", at, n++));
}

/// A path that metadata of a group name, below the root. nullopt if it leads out of that.
std::optional<std::string> path_from(const std::string& group, std::string_view relative) {
    std::vector<std::string> parts;
    const auto take = [&](std::string_view path) {
        while (!path.empty()) {
            const std::size_t slash = std::min(path.find('/'), path.size());
            const std::string_view part = path.substr(0, slash);
            path.remove_prefix(std::min(slash + 1, path.size()));
            if (part == "..") {
                if (parts.empty()) return false;
                parts.pop_back();
            } else if (!part.empty() && part != ".") {
                parts.emplace_back(part);
            }
        }
        return true;
    };
    if (!take(group) || !take(relative)) return std::nullopt;
    std::string path;
    for (const std::string& part : parts) path = join_key(path, part);
    return path;
}

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

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

class OmeTree {
public:
    OmeTree(Group root, VerifyReport& report) : root_(std::move(root)), report_(report) {}
    void check();

private:
    /// One of the documents that are checked; one of other nodes is named after the group.
    void add(FindingKind kind, const std::string& node, const std::string& key, OmeRule rule, std::string text) {
        report_.findings.push_back(
            {.kind = kind, .node = node, .key = key, .text = std::move(text), .rule = ome_rule_name(rule)});
    }
    /// Runs `body`; its error is a finding.
    template <class Body>
    void guarded(const std::string& node, const std::string& key, const Body& body) {
        try {
            body();
        } catch (...) {
            Fault fault = current_fault();
            report_.findings.push_back({.kind = fault.kind,
                                        .node = node,
                                        .key = key,
                                        .text = std::move(fault.text),
                                        .advice = std::move(fault.advice)});
        }
    }
    void read(const std::string& path, const Group& group);
    void check_document(const std::string& path, const OmeGroup& group);
    /// Where a path of the metadata leads; nullopt, with a finding, unless there is a node of this kind.
    std::optional<std::string> node_at(const std::string& path, const OmeGroup& from, const Value& relative,
                                       const std::string& at, NodeKind kind);
    /// The same for a group that has one of OME-Zarr's members.
    const OmeGroup* group_at(const std::string& path, const OmeGroup& from, const Value& relative,
                             const std::string& at, std::string_view member);
    void check_image(const std::string& path, const OmeGroup& group, const Value& image, const std::string& at);
    void check_names(const std::string& node, const Array& level, const std::vector<std::string>& axes,
                     const OmeGroup& group);
    void check_labels(const std::string& path, const OmeGroup& group);
    void check_plate(const std::string& path, const OmeGroup& group);
    void check_well(const std::string& path, const OmeGroup& group);
    void check_series(const std::string& path, const OmeGroup& group);
    void check_scene(const std::string& path, const OmeGroup& group);

    Group root_;
    VerifyReport& report_;
    std::map<std::string, NodeKind> nodes_;
    std::map<std::string, OmeGroup> groups_;
    std::set<std::string> label_images_;
};

void OmeTree::read(const std::string& path, const Group& group) {
    const Dialect* dialect = group.dialect();
    if (dialect == nullptr) return;
    const std::string key = join_key(path, dialect->documents.back());
    guarded(path, key, [&] {
        Value attributes = group.attributes().all();
        if (ome_members_of(attributes) != nullptr) groups_.try_emplace(path, dialect, key, std::move(attributes));
    });
}

void OmeTree::check() {
    nodes_.emplace("", NodeKind::group);
    read("", root_);
    for (const Node& node : root_.nodes()) {
        nodes_.emplace(node.path, node.kind);
        if (node.kind == NodeKind::group && node.dialect != nullptr) {
            guarded(node.path, "", [&] { read(node.path, root_.open_group(node.path)); });
        }
    }
    report_.groups = static_cast<std::int64_t>(groups_.size());
    if (groups_.empty() && report_.findings.empty()) {
        add(FindingKind::damage, "", "", OmeRule::schema, "no group here has metadata of OME-Zarr");
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
    for (OmeProblem& problem : ome_problems(group.attributes)) {
        const FindingKind kind = problem.rule == OmeRule::advice    ? FindingKind::note
                                 : problem.rule == OmeRule::version ? FindingKind::unchecked
                                                                    : FindingKind::damage;
        add(kind, path, group.document, problem.rule,
            problem.at.empty() ? std::move(problem.text) : fmt::format("{}: {}", problem.at, problem.text));
    }
    if (!group.version) return;
    const std::string_view version = ome_version_text(*group.version);
    const std::string_view format = *group.version == OmeVersion::v0_4 ? "v2" : "v3";
    if (group.dialect->name != format) {
        add(FindingKind::damage, path, group.document, OmeRule::text,
            fmt::format("metadata of {} stand in groups of {}, and this one is of {}", version, format,
                        group.dialect->name));
    }
    const auto& [first_path, first] = *groups_.begin();
    if (first.version && *first.version != *group.version) {
        add(FindingKind::damage, path, group.document, OmeRule::tree,
            fmt::format("these metadata are of {}, and those in {} of {}", version, first.document,
                        ome_version_text(*first.version)));
    }
}

std::optional<std::string> OmeTree::node_at(const std::string& path, const OmeGroup& from, const Value& relative,
                                            const std::string& at, NodeKind kind) {
    if (!relative.is_string()) return std::nullopt;  // the document's problem
    const std::string named = fmt::format("which {} of {} names", at, from.document);
    const auto place = path_from(path, relative.as_string());
    if (!place) {
        add(FindingKind::unchecked, path, from.document, OmeRule::tree,
            fmt::format("{}: {} leads out of what is verified", at, relative.dump()));
        return std::nullopt;
    }
    const auto node = nodes_.find(*place);
    const std::string_view wanted = kind == NodeKind::array ? "array" : "group";
    if (node == nodes_.end()) {
        add(FindingKind::damage, *place, "", OmeRule::tree, fmt::format("no {} is here, {}", wanted, named));
    } else if (kind == NodeKind::array && node->second != kind) {
        add(FindingKind::damage, *place, "", OmeRule::tree, fmt::format("expected an array, {}, found a group", named));
    } else if (node->second != kind) {
        guarded(*place, "", [&] {
            (void)root_.open_array(*place);  // what cannot be parsed may have been the document of a group
            add(FindingKind::damage, *place, "", OmeRule::tree,
                fmt::format("expected a group, {}, found an array", named));
        });
    } else {
        return place;
    }
    return std::nullopt;
}

const OmeGroup* OmeTree::group_at(const std::string& path, const OmeGroup& from, const Value& relative,
                                  const std::string& at, std::string_view member) {
    const auto place = node_at(path, from, relative, at, NodeKind::group);
    if (!place) return nullptr;
    const auto group = groups_.find(*place);
    if (group != groups_.end() && group->second.find(member) != nullptr) return &group->second;
    add(FindingKind::damage, *place, "", OmeRule::tree,
        fmt::format("expected \"{}\" in the metadata of this group, which {} of {} names", member, at, from.document));
    return nullptr;
}

void OmeTree::check_image(const std::string& path, const OmeGroup& group, const Value& image, const std::string& at) {
    const auto axes = axes_of_levels(image);
    std::optional<Array> first, before;
    each_item(member_of(image, "datasets"), at + ".datasets", [&](const Value& level, const std::string& level_at) {
        const Value* relative = member_of(level, "path");
        if (relative == nullptr) return;
        const auto node = node_at(path, group, *relative, level_at + ".path", NodeKind::array);
        if (!node) return;
        guarded(*node, "", [&] {
            const Array array = root_.open_array(*node);
            ++report_.arrays;
            const Shape shape = array.shape();
            const auto damaged = [&](std::string text) {
                add(FindingKind::damage, *node, "", OmeRule::tree, std::move(text));
            };
            const std::string dimensions = fmt::format("has {} dimensions", shape.rank());
            if (axes && axes->size() != static_cast<std::size_t>(shape.rank())) {
                damaged(fmt::format("{}, and {} in {} has {} axes", dimensions, at, group.document, axes->size()));
            } else if (axes) {
                check_names(*node, array, *axes, group);
            }
            if (first && first->shape().rank() != shape.rank()) {
                damaged(fmt::format("{}, and the first level {}", dimensions, first->shape().rank()));
            }
            if (first && first->dtype() != array.dtype()) {
                damaged(fmt::format("is of {}, and the first level of {}", array.dtype().str(), first->dtype().str()));
            }
            for (int d = 0; before && d < shape.rank() && d < before->shape().rank(); ++d) {
                if (shape[d] <= before->shape()[d]) continue;
                damaged(fmt::format("is longer than the level before, {} and {}: the largest comes first",
                                    shape.to_string(), before->shape().to_string()));
                break;
            }
            const Kind kind = array.dtype().kind();
            if (label_images_.contains(path) && kind != Kind::integer && kind != Kind::unsigned_integer) {
                damaged(fmt::format("is of {}, and labels are integers", array.dtype().str()));
            }
            if (!first) first = array;
            before = array;
        });
    });
}

void OmeTree::check_names(const std::string& node, const Array& level, const std::vector<std::string>& axes,
                          const OmeGroup& group) {
    if (group.version != OmeVersion::v0_5) return;
    const std::vector<std::optional<std::string>> names = level.metadata().dimension_names;
    if (names.empty()) {
        add(FindingKind::note, node, "", OmeRule::text, "has no dimension_names, which 0.5 requires to name the axes");
        return;
    }
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (names[d] == axes[d]) continue;
        add(FindingKind::damage, node, "", OmeRule::text,
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
        add(FindingKind::damage, *place, there->document, OmeRule::tree,
            fmt::format("{}: expected {} levels, as the image has, found {}", there->at("multiscales[0].datasets"),
                        expected, found));
    });
    for (const auto& [other, of] : groups_) {
        if (parent_of(other) != path || other == path || of.find("multiscales") == nullptr || listed.contains(other)) {
            continue;
        }
        add(FindingKind::note, other, "", OmeRule::tree,
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
        each_item(member_of(*there->find("well"), "images"), there->at("well.images"),
                  [&](const Value& image, const std::string& image_at) {
                      const Value* id = member_of(image, "acquisition");
                      if (id == nullptr ? ids.size() < 2 : ids.empty() || ids.contains(id->dump())) return;
                      add(FindingKind::damage, *path_from(path, relative->as_string()), there->document, OmeRule::tree,
                          id == nullptr ? fmt::format("{}: expected \"acquisition\", found none", image_at)
                                        : fmt::format("{}.acquisition: {} has none with id {}", image_at,
                                                      group.document, id->dump()));
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

VerifyReport verify_ome(std::string_view path) {
    VerifyReport report;
    at_place(std::string(path), {.read_only = true}, [&](const Place& place) {
        report = {};
        const std::optional<Node> node = probe_node(*place.store, place.prefix);
        if (node && node->kind == NodeKind::array) {
            try {
                (void)Array::open(place.store, place.prefix);
            } catch (const Error& e) {
                if (e.code() != ErrorCode::corrupt) throw;
                // It may have been the document of a group.
                report.findings.push_back(
                    {.node = {}, .key = std::string(node->dialect->metadata_key), .text = e.what()});
                return;
            }
        }
        OmeTree(Group::open(place.store, place.prefix), report).check();
    });
    std::ranges::stable_sort(report.findings, {}, [](const Finding& f) {
        return std::tuple(f.kind, std::string_view(f.key.empty() ? f.node : f.key));
    });
    return report;
}

}  // namespace tessera
