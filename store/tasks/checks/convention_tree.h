// A hierarchy whose metadata are held against a convention. Private to store/tasks/checks.
#pragma once

#include <tessera/convention_problem.h>
#include <tessera/group.h>
#include <tessera/verify.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "check_chunk.h"

namespace tessera {

/// A member of an object; nullptr for any other value.
[[nodiscard]] inline const Value* member_of(const Value& value, std::string_view name) {
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
[[nodiscard]] std::optional<std::string> path_from(const std::string& group, std::string_view relative);
/// "a/b" for "a/b/c".
[[nodiscard]] std::string parent_of(const std::string& path);

/// What is wrong with the document `key` of a node.
[[nodiscard]] Finding finding_of(const std::string& node, const std::string& key, Convention convention,
                                 const ConventionProblem& problem);

class ConventionTree {
public:
    ConventionTree(Group root, Convention convention, VerifyReport& report)
        : root_(std::move(root)), convention_(convention), report_(report) {}

protected:
    void add(FindingKind kind, const std::string& node, const std::string& key, ConventionRule rule, std::string text) {
        report_.findings.push_back(
            {.kind = kind, .node = node, .key = key, .text = std::move(text), .rule = rule_name(convention_, rule)});
    }
    void add(const std::string& node, const std::string& key, const std::vector<ConventionProblem>& problems) {
        for (const ConventionProblem& problem : problems) {
            report_.findings.push_back(finding_of(node, key, convention_, problem));
        }
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
    /// Calls look(path, group, document) for each group with metadata. Knows all nodes afterwards.
    template <class Look>
    void each_group(const Look& look) {
        nodes_.emplace("", NodeKind::group);
        const auto visit = [&](const std::string& path, const Group& group) {
            if (group.dialect() == nullptr) return;
            const std::string document = join_key(path, group.dialect()->documents.back());
            guarded(path, document, [&] { look(path, group, document); });
        };
        visit("", root_);
        for (const Node& node : root_.nodes()) {
            nodes_.emplace(node.path, node.kind);
            if (node.kind != NodeKind::group || node.dialect == nullptr) continue;
            guarded(node.path, "", [&] { visit(node.path, root_.open_group(node.path)); });
        }
    }
    /// Where a path in a document of the group `from` leads; nullopt, with a finding, unless there is a node of this
    /// kind, or any for nullopt.
    std::optional<std::string> node_at(const std::string& from, const std::string& document, const Value& relative,
                                       const std::string& at, std::optional<NodeKind> kind);

    Group root_;
    Convention convention_;
    VerifyReport& report_;
    std::map<std::string, NodeKind> nodes_;
};

/// What verify() says with VerifyOptions::ome and geo: every node with such metadata at and below the path.
[[nodiscard]] VerifyReport verify_conventions(std::string_view path, const VerifyOptions& options);
/// The parts of that.
void verify_ome(const Group& root, VerifyReport& report);
void verify_geo(const Group& root, VerifyReport& report);
void verify_geo(const Array& array, VerifyReport& report);

}  // namespace tessera
