#include <tessera/data_set.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>

#include "fill_attribute.h"
#include "hierarchy_plan.h"

namespace tessera {

namespace {

/// What stands before the last '/' of a name, with it.
std::string group_of(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    return std::string(name.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
}

/// The words of a text, which may end in a colon: "x: lat lon".
void take_words(const std::string& text, std::vector<std::string>& words) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find_first_not_of(" \t\n", at);
        if (begin == std::string::npos) return;
        const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
        std::string word = text.substr(begin, end - begin);
        if (word.ends_with(':')) word.pop_back();
        words.push_back(std::move(word));
        at = end;
    }
}

constexpr std::string_view of_coordinates[] = {"coordinates", "bounds", "climatology", "grid_mapping", "cell_measures"};
constexpr std::string_view of_data[] = {"ancillary_variables"};

std::vector<std::string> words_of(const Value& attributes, std::span<const std::string_view> names) {
    std::vector<std::string> words;
    for (const std::string_view name : names) {
        const Value* const text = attributes.find(name);
        if (text != nullptr && text->is_string()) take_words(text->as_string(), words);
    }
    return words;
}

}  // namespace

std::string last_of(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
}

std::vector<std::string> belongings_in(const Value& attributes) {
    return words_of(attributes, of_coordinates);
}

bool is_number_text(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> words_in(const std::string& text) {
    std::vector<std::string> words;
    take_words(text, words);
    return words;
}

Value comparable_attributes(const ArraySource& array) {
    Value attributes = meaning_of(array).attributes;
    fill_attribute_as_number(array.info().dtype, attributes);
    erase_nan_mark(attributes);
    if (array.info().shape.empty()) attributes.erase(dimensions_attribute);  // an empty list, or none
    return attributes;
}

std::optional<DataSet> DataSet::at(const std::string& path) {
    return of(locate(path));
}

std::optional<DataSet> DataSet::of(const Located& at) {
    DataSet set;
    set.group_ = group_at(at);
    if (set.group_) {
        for (const Node& node : set.group_->nodes()) {
            if (node.kind == NodeKind::array) set.names_.push_back(node.path);
        }
    } else {
        set.names_ = several_members(at);
        if (set.names_.empty()) return std::nullopt;
    }
    set.path_ = at.path;
    set.at_ = at;
    return set;
}

std::optional<int> DataSet::Member::axis(std::string_view dimension) const {
    const auto found = std::ranges::find(dimensions, std::optional(std::string(dimension)));
    return found == dimensions.end() ? std::nullopt : std::optional(static_cast<int>(found - dimensions.begin()));
}

bool DataSet::has(const std::string& name) const {
    return std::ranges::count(names_, name) > 0;
}

const DataSet::Member& DataSet::member(const std::string& name) const {
    const auto found = members_.find(name);
    if (found != members_.end()) return found->second;
    const auto array = open(name);
    const ArrayInfo info = array->info();
    Member member{dimension_names_of(*array), info.dtype, info.shape, array->attribute_values()};
    return members_.emplace(name, std::move(member)).first->second;
}

std::unique_ptr<ArraySource> DataSet::open(const std::string& name) const {
    if (group_) return std::make_unique<Array>(group_->open_array(name));
    ArrayPath part = at_.file;
    part.member = name;
    return open_array_file(part);
}

std::string DataSet::path_of(const std::string& name) const {
    return group_ ? join_key(path_, name) : fmt::format("{}::{}", path_, name);
}

std::vector<ArrayFileGroup> DataSet::groups() const {
    if (!group_) return file_groups(at_);
    std::vector<ArrayFileGroup> groups{{"", group_->attributes().all()}};
    for (const Node& node : group_->nodes()) {
        if (node.kind != NodeKind::array)
            groups.push_back({node.path, group_->open_group(node.path).attributes().all()});
    }
    return groups;
}

const Dialect* DataSet::dialect() const {
    return group_ ? group_->dialect() : nullptr;
}

bool DataSet::is_consolidated() const {
    // A file of a data set becomes a group as xarray writes it.
    return group_ ? group_->consolidated_state().present : at_.format->groups != nullptr;
}

bool DataSet::is_coordinate(const std::string& name) const {
    return member(name).dimensions == DimensionNames{std::optional(last_of(name))};
}

std::optional<std::string> DataSet::beside(const std::string& of, std::string_view name) const {
    for (std::string group = group_of(of);; group = group_of(group.substr(0, group.size() - 1))) {
        std::string path = group + std::string(name);
        if (has(path)) return path;
        if (group.empty()) return std::nullopt;
    }
}

bool DataSet::is_data(const std::string& name) const {
    if (!belongings_) {
        belongings_.emplace();
        const auto add = [&](const std::string& of, const Value& attributes) {
            for (const std::string& word : belongings_in(attributes)) {
                if (const auto path = beside(of, word)) belongings_->insert(*path);
            }
        };
        for (const std::string& one : names_) add(one, member(one).attributes);
        for (const ArrayFileGroup& group : groups()) {
            add(group.name.empty() ? "" : group.name + "/", group.attributes);  // xarray's "coordinates" of all
        }
    }
    return !is_coordinate(name) && !belongings_->contains(name);
}

std::set<std::string> DataSet::with_belongings(const std::vector<std::string>& names) const {
    std::set<std::string> kept;
    std::vector<std::string> left = names;
    while (!left.empty()) {
        const std::string name = std::move(left.back());
        left.pop_back();
        if (!kept.insert(name).second) continue;
        const Member& array = member(name);
        std::vector<std::string> words = belongings_in(array.attributes);
        std::ranges::copy(words_of(array.attributes, of_data), std::back_inserter(words));
        for (const auto& dimension : array.dimensions) {
            if (dimension) words.push_back(*dimension);
        }
        for (const std::string& word : words) {
            if (auto path = beside(name, word)) left.push_back(*std::move(path));
        }
    }
    return kept;
}

std::set<std::string> DataSet::dimensions() const {
    std::set<std::string> all;
    for (const std::string& name : names_) {
        for (const auto& dimension : member(name).dimensions) {
            if (dimension) all.insert(*dimension);
        }
    }
    return all;
}

}  // namespace tessera
