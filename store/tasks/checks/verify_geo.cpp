// The metadata of GeoZarr in a hierarchy: each node's own, and what they say of arrays.
#include <algorithm>
#include <array>

#include <tessera/array.h>
#include <tessera/dimensions.h>
#include <tessera/geo_problems.h>
#include <tessera/geo_reference.h>
#include <tessera/multiscales.h>
#include <tessera/reduce.h>

#include "convention_tree.h"

namespace tessera {

namespace {

class GeoTree : public ConventionTree {
public:
    GeoTree(const Group& root, VerifyReport& report) : ConventionTree(root, Convention::geo, report) {}
    void check();

private:
    void check_levels(const std::string& path, const std::string& document, const Value& attributes);
    void check_level(const std::string& node, const Value& level, const std::string& at, const std::string& document,
                     const Value& of_group);
};

/// Where metadata name dimensions that the array lacks, or another shape.
void add_dimension_problems(const Array& array, const Value& attributes, std::vector<ConventionProblem>& problems) {
    const DimensionNames names = dimension_names_of(array);
    bool named = true;
    each_item(&attributes.at("spatial:dimensions"), "spatial:dimensions",
              [&](const Value& name, const std::string& at) {
                  if (!name.is_string() || std::ranges::find(names, name.as_string()) != names.end()) return;
                  named = false;
                  problems.push_back({ConventionRule::tree, at,
                                      fmt::format("the array has no dimension {}, but {}", name.dump(),
                                                  dimension_names_json(names).dump())});
              });
    const auto reference = geo_reference_in(attributes);
    if (!reference || !reference->shape || !named || names.size() < 2) return;
    const Shape shape = array.shape();
    const auto [y, x] = geo_dimensions(*reference, names, shape.rank());
    if (*reference->shape == std::array{shape[y], shape[x]}) return;
    problems.push_back({ConventionRule::tree, "spatial:shape",
                        fmt::format("expected {} × {}, as the array is, found {}", shape[y], shape[x],
                                    attributes.at("spatial:shape").dump())});
}

/// What is wrong with an array's own metadata. `inherited` are those of its group.
std::vector<ConventionProblem> array_problems(const Array& array, const Value& inherited, bool is_level) {
    const Value attributes = array.attributes().all();
    std::vector<ConventionProblem> problems = geo_problems(attributes, true);
    if (attributes.find("spatial:dimensions") == nullptr) return problems;
    add_dimension_problems(array, attributes, problems);
    const Value* type = attributes.find("spatial:transform_type");
    const bool affine = type == nullptr || *type == Value("affine");
    if (affine && !is_level && attributes.find("spatial:transform") == nullptr &&
        inherited.find("spatial:transform") == nullptr) {
        problems.push_back(
            {ConventionRule::text, "", "expected \"spatial:transform\" here or in the group, found none"});
    }
    return problems;
}

using Groups = std::map<std::string, Value>;  // their attributes by path

bool is_in_pyramid(const std::string& array, const Groups& groups) {
    return std::ranges::any_of(groups, [&](const auto& of) {
        return (of.first.empty() || array.starts_with(of.first + "/")) && of.second.find("multiscales") != nullptr;
    });
}

void GeoTree::check() {
    Groups groups;
    const std::size_t before = report_.findings.size();
    each_group([&](const std::string& path, const Group& group, const std::string& document) {
        Value attributes = group.attributes().all();
        if (!has_geo_metadata(attributes)) return;
        ++report_.groups;
        add(path, document, geo_problems(attributes, false));
        groups.emplace(path, std::move(attributes));
    });
    const Value none = Value::object();
    bool any = !groups.empty();
    for (const Node& node : root_.nodes()) {
        if (node.kind != NodeKind::array) continue;
        guarded(node.path, "", [&] {
            const Array array = root_.open_array(node.path);
            if (!has_geo_metadata(array.attributes().all())) return;
            any = true;
            ++report_.arrays;
            const auto group = groups.find(parent_of(node.path));
            add(node.path, join_key(node.path, array.dialect().documents.back()),
                array_problems(array, group == groups.end() ? none : group->second, is_in_pyramid(node.path, groups)));
        });
    }
    for (const auto& [path, attributes] : groups) {
        const Dialect* dialect = (path.empty() ? root_ : root_.open_group(path)).dialect();
        check_levels(path, join_key(path, dialect->documents.back()), attributes);
    }
    if (any || report_.findings.size() > before) return;
    add(FindingKind::damage, "", "", ConventionRule::schema, "no array and no group here has metadata of GeoZarr");
}

void GeoTree::check_levels(const std::string& path, const std::string& document, const Value& attributes) {
    const Value* pyramid = attributes.find("multiscales");
    if (pyramid == nullptr) return;
    each_item(member_of(*pyramid, "layout"), "multiscales.layout", [&](const Value& level, const std::string& at) {
        for (const std::string_view name : {"asset", "derived_from"}) {
            const Value* relative = member_of(level, name);
            if (relative == nullptr) continue;
            const auto node = node_at(path, document, *relative, fmt::format("{}.{}", at, name), std::nullopt);
            if (node && name == "asset" && nodes_.at(*node) == NodeKind::array) {
                guarded(*node, "", [&] { check_level(*node, level, at, document, attributes); });
            }
        }
    });
}

void GeoTree::check_level(const std::string& node, const Value& level, const std::string& at,
                          const std::string& document, const Value& of_group) {
    const Array array = root_.open_array(node);
    const Value own = array.attributes().all();
    const auto damaged = [&](std::string text) {
        add(FindingKind::damage, node, "", ConventionRule::tree, std::move(text));
    };
    Value said = level;  // with the names of the dimensions, which stand elsewhere
    const Value* names = own.find("spatial:dimensions");
    if (names == nullptr) names = of_group.find("spatial:dimensions");
    if (names != nullptr) said.set("spatial:dimensions", *names);
    const auto reference = geo_reference_in(said);
    if (!reference || !reference->shape) return;
    const Shape shape = array.shape();
    const auto [y, x] = geo_dimensions(*reference, dimension_names_of(array), shape.rank());
    if (y < 0 || *reference->shape != std::array{shape[y], shape[x]}) {
        damaged(fmt::format("is {}, and {}.spatial:shape of {} is {}", shape.to_string(), at, document,
                            level.at("spatial:shape").dump()));
    }
    const auto its_own = geo_reference_in(own);
    if (its_own && its_own->transform && reference->transform && *its_own->transform != *reference->transform) {
        damaged(fmt::format("its spatial:transform is {}, and that of {} in {} is {}",
                            own.at("spatial:transform").dump(), at, document, level.at("spatial:transform").dump()));
    }
}

}  // namespace

void verify_geo(const Group& root, VerifyReport& report) {
    GeoTree(root, report).check();
}

void verify_geo(const Array& array, VerifyReport& report) {
    ++report.arrays;
    const std::string key(array.dialect().documents.back());
    std::vector<ConventionProblem> problems = array_problems(array, Value::object(), false);
    if (problems.empty() && !has_geo_metadata(array.attributes().all())) {
        problems.push_back({ConventionRule::schema, "", "the array has no metadata of GeoZarr"});
    }
    for (const ConventionProblem& problem : problems)
        report.findings.push_back(finding_of("", key, Convention::geo, problem));
}

}  // namespace tessera
