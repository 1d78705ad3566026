#include <tessera/tree_difference.h>

#include <tessera/byte_io.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/dimensions.h>
#include <tessera/group.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/report_values.h>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Files = std::map<std::string, fs::path>;

/// The files of an array by name, except Tessera's own; nullopt if it is not in a directory.
std::optional<Files> files_of(const fs::path& array) {
    std::error_code error;
    // The changes of a recorded batch may not be in the files yet.
    if (!is_local(array) || !fs::is_directory(array, error) || fs::exists(array / ".tessera/batch", error))
        return std::nullopt;
    Files files;
    for (fs::recursive_directory_iterator entry(array, error), end; !error && entry != end; entry.increment(error)) {
        if (entry->path().filename() == own_folder) {
            entry.disable_recursion_pending();
        } else if (!entry->is_directory(error)) {
            if (!fs::is_regular_file(entry->symlink_status())) return std::nullopt;
            files.emplace(entry->path().lexically_relative(array).string(), entry->path());
        }
    }
    return error ? std::nullopt : std::optional(std::move(files));
}

/// Whether two files are the same (hard links, as in snapshots) or have the same bytes.
bool same_bytes(const fs::path& a, const fs::path& b) {
    std::error_code error;
    if (fs::equivalent(a, b, error)) return true;
    const auto x = open_file(a);
    const auto y = open_file(b);
    if (x->size() != y->size()) return false;
    constexpr std::uint64_t piece = std::uint64_t{1} << 20U;
    for (std::uint64_t at = 0; at < x->size(); at += piece) {
        const std::uint64_t n = std::min(piece, x->size() - at);
        if (!std::ranges::equal(read_range(*x, at, n).span(), read_range(*y, at, n).span())) return false;
    }
    return true;
}

/// Whether two arrays are the same file by file; also false if that is unknown.
bool same_files(const fs::path& a, const fs::path& b) {
    const std::optional<Files> of_a = files_of(a);
    const std::optional<Files> of_b = of_a ? files_of(b) : std::nullopt;
    if (!of_b) return false;
    return std::ranges::equal(*of_a, *of_b, [](const auto& x, const auto& y) {
        return x.first == y.first && same_bytes(x.second, y.second);
    });
}

std::map<std::string, NodeKind> nodes_of(const Group& group) {
    std::map<std::string, NodeKind> nodes;
    for (const Node& node : group.nodes()) nodes.emplace(node.path, node.kind);
    return nodes;
}

/// Of an array without the names of dimensions, which formats keep in different places.
Value attributes_of(const Group& group, const std::string& path, NodeKind kind) {
    if (kind == NodeKind::array) {
        Value attributes = group.open_array(path).attributes().all();
        attributes.erase(dimensions_attribute);
        return attributes;
    }
    return path.empty() ? group.attributes().all() : group.open_group(path).attributes().all();
}

/// Compares two nodes of the same path.
void compare_nodes(const Group& a, const fs::path& place_a, const Group& b, const fs::path& place_b,
                   const std::string& path, NodeKind kind, const Comparing& how, const IoOptions& io,
                   TreeDifference& result) {
    bool same = true;
    const bool named_alike =
        kind != NodeKind::array || dimension_names_of(a.open_array(path)) == dimension_names_of(b.open_array(path));
    if (!named_alike || !(attributes_of(a, path, kind) == attributes_of(b, path, kind))) {
        result.attributes.push_back(path);
        same = false;
    }
    if (kind == NodeKind::array && !same_files(place_a / path, place_b / path)) {
        const Array array_a = a.open_array(path);
        const Array array_b = b.open_array(path);
        const auto compare = how.raw ? difference : difference_by_meaning;
        Difference found = compare(array_a, array_b, how.tolerance, how.places, io);
        if (!found.codes.empty()) result.codes.emplace_back(path, found.codes);
        if (!found.none()) {
            result.different.emplace_back(path, std::move(found));
            same = false;
        }
    }
    if (same) ++result.same;
}

TreeDifference group_difference(const Group& a, const std::string& path_a, const Group& b, const std::string& path_b,
                                const Comparing& how, const IoOptions& io) {
    const auto in_a = nodes_of(a);
    const auto in_b = nodes_of(b);
    TreeDifference result;
    compare_nodes(a, path_a, b, path_b, "", NodeKind::group, how, io, result);
    for (const auto& [path, kind] : in_a) {
        const auto there = in_b.find(path);
        if (there == in_b.end()) {
            result.only_in_a.push_back(path);
        } else if (there->second != kind) {
            Difference found;
            found.structure.emplace_back("an array in one, a group in the other");
            result.different.emplace_back(path, std::move(found));
        } else {
            compare_nodes(a, path_a, b, path_b, path, kind, how, io, result);
        }
    }
    for (const auto& [path, kind] : in_b) {
        if (!in_a.contains(path)) result.only_in_b.push_back(path);
    }
    return result;
}

/// Of groups, by their paths.
std::map<std::string, Value> group_attributes(const DataSet& set) {
    std::map<std::string, Value> all;
    for (const ArrayFileGroup& group : set.groups()) all.emplace(group.name, group.attributes);
    return all;
}

/// Names that only one side has, and those that both have.
template <class Each>
void match_names(const std::vector<std::string>& a, const std::vector<std::string>& b, TreeDifference& result,
                 const Each& each) {
    const std::set<std::string> in_a(a.begin(), a.end());
    const std::set<std::string> in_b(b.begin(), b.end());
    for (const std::string& name : in_a) in_b.contains(name) ? each(name) : result.only_in_a.push_back(name);
    std::ranges::set_difference(in_b, in_a, std::back_inserter(result.only_in_b));
}

void compare_arrays(const ArraySource& a, const ArraySource& b, const std::string& name, const Comparing& how,
                    const IoOptions& io, TreeDifference& result) {
    const bool alike = comparable_attributes(a) == comparable_attributes(b);
    if (!alike) result.attributes.push_back(name);
    const auto compare = how.raw ? difference : difference_by_meaning;
    Difference found = compare(a, b, how.tolerance, how.places, io);
    if (!found.codes.empty()) result.codes.emplace_back(name, found.codes);
    if (found.none() && alike) ++result.same;
    if (!found.none()) result.different.emplace_back(name, std::move(found));
}

TreeDifference set_difference(const DataSet& a, const DataSet& b, const Comparing& how, const IoOptions& io) {
    TreeDifference result;
    const auto groups_a = group_attributes(a);
    const auto groups_b = group_attributes(b);
    const auto names = [](const auto& groups) {
        std::vector<std::string> all;
        for (const auto& [name, attributes] : groups) all.push_back(name);
        return all;
    };
    match_names(names(groups_a), names(groups_b), result, [&](const std::string& name) {
        groups_a.at(name) == groups_b.at(name) ? static_cast<void>(++result.same) : result.attributes.push_back(name);
    });
    match_names(a.names(), b.names(), result,
                [&](const std::string& name) { compare_arrays(*a.open(name), *b.open(name), name, how, io, result); });
    return result;
}

Value names_value(const std::vector<std::string>& paths) {
    Value list = Value::array();
    for (const std::string& path : paths) list.push_back(path);
    return list;
}

}  // namespace

CompareTrees tree_comparison(const Located& a, const Located& b) {
    if (const auto group_a = group_at(a)) {
        if (const auto group_b = group_at(b)) {
            return [group_a, group_b, path_a = a.path, path_b = b.path](const Comparing& how, const IoOptions& io) {
                return group_difference(*group_a, path_a, *group_b, path_b, how, io);
            };
        }
    }
    const auto set_a = DataSet::of(a);
    const auto set_b = set_a ? DataSet::of(b) : std::nullopt;
    if (!set_b) return nullptr;
    return
        [set_a, set_b](const Comparing& how, const IoOptions& io) { return set_difference(*set_a, *set_b, how, io); };
}

Value tree_difference_value(const TreeDifference& found) {
    Value value = Value::object();
    value.set("equal", found.none());
    value.set("same", found.same);
    value.set("only_in_a", names_value(found.only_in_a));
    value.set("only_in_b", names_value(found.only_in_b));
    value.set("attributes", names_value(found.attributes));
    Value codes = Value::array();
    for (const auto& [path, text] : found.codes) codes.push_back(Value{{"path", path}, {"codes", text}});
    value.set("only_codes", std::move(codes));
    Value list = Value::array();
    for (const auto& [path, one_difference] : found.different) {
        Value one = difference_value(one_difference);
        one.set("path", path);
        list.push_back(std::move(one));
    }
    value.set("different", std::move(list));
    return value;
}

}  // namespace tessera
