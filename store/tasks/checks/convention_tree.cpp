#include "convention_tree.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include <tessera/array.h>
#include <tessera/place.h>

namespace tessera {

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

Finding finding_of(const std::string& node, const std::string& key, Convention convention,
                   const ConventionProblem& problem) {
    const FindingKind kind = problem.rule == ConventionRule::advice    ? FindingKind::note
                             : problem.rule == ConventionRule::version ? FindingKind::unchecked
                                                                       : FindingKind::damage;
    return {.kind = kind,
            .node = node,
            .key = key,
            .text = problem.at.empty() ? problem.text : fmt::format("{}: {}", problem.at, problem.text),
            .rule = rule_name(convention, problem.rule)};
}

std::optional<std::string> ConventionTree::node_at(const std::string& from, const std::string& document,
                                                   const Value& relative, const std::string& at,
                                                   std::optional<NodeKind> kind) {
    if (!relative.is_string()) return std::nullopt;  // the document's problem
    const std::string named = fmt::format("which {} of {} names", at, document);
    const auto place = path_from(from, relative.as_string());
    if (!place) {
        add(FindingKind::unchecked, from, document, ConventionRule::tree,
            fmt::format("{}: {} leads out of what is verified", at, relative.dump()));
        return std::nullopt;
    }
    const auto node = nodes_.find(*place);
    const auto damaged = [&](std::string text) {
        add(FindingKind::damage, *place, "", ConventionRule::tree, std::move(text));
    };
    if (node == nodes_.end()) {
        const std::string_view wanted = !kind ? "array or group" : kind == NodeKind::array ? "array" : "group";
        damaged(fmt::format("no {} is here, {}", wanted, named));
    } else if (!kind || node->second == kind) {
        return place;
    } else if (kind == NodeKind::array) {
        damaged(fmt::format("expected an array, {}, found a group", named));
    } else {
        guarded(*place, "", [&] {
            (void)root_.open_array(*place);  // what cannot be parsed may have been the document of a group
            damaged(fmt::format("expected a group, {}, found an array", named));
        });
    }
    return std::nullopt;
}

VerifyReport verify_conventions(std::string_view path, const VerifyOptions& options) {
    VerifyReport report;
    at_place(std::string(path), {.read_only = true}, [&](const Place& place) {
        report = {};
        if (const auto node = probe_node(place); node && node->kind == NodeKind::array) {
            try {
                const Array array = Array::open(place);
                if (options.geo && !options.ome) return verify_geo(array, report);
            } catch (const Error& e) {
                if (e.code() != ErrorCode::corrupt) throw;
                // It may have been the document of a group.
                report.findings.push_back(
                    {.node = {}, .key = std::string(node->dialect->metadata_key), .text = e.what()});
                return;
            }
        }
        const Group root = Group::open(place);
        if (options.ome) verify_ome(root, report);
        if (!options.geo) return;
        VerifyReport geo;
        verify_geo(root, geo);
        std::ranges::move(geo.findings, std::back_inserter(report.findings));
        report.arrays = std::max(report.arrays, geo.arrays);
        report.groups = std::max(report.groups, geo.groups);
    });
    std::ranges::stable_sort(report.findings, {}, [](const Finding& f) {
        return std::tuple(f.kind, std::string_view(f.key.empty() ? f.node : f.key));
    });
    return report;
}

}  // namespace tessera
