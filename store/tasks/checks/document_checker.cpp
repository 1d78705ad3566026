#include "document_checker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace tessera {

namespace {

/// Whether two items are equal.
bool has_twins(const Value::Array& list) {
    std::vector<std::string> texts;
    texts.reserve(list.size());
    for (const Value& item : list) texts.push_back(item.dump({.sort_keys = true}));
    std::ranges::sort(texts);
    return std::ranges::adjacent_find(texts) != texts.end();
}

}  // namespace

std::string_view rule_name(Convention convention, ConventionRule rule) {
    constexpr std::array<std::array<std::string_view, 5>, 2> names{
        {{"ome/schema", "ome/version", "ome/text", "ome/advice", "ome/tree"},
         {"geo/schema", "geo/version", "geo/text", "geo/advice", "geo/tree"}}};
    return names[static_cast<std::size_t>(convention)][static_cast<std::size_t>(rule)];
}

bool is_whole(const Value& v) {
    if (!v.is_double()) return v.is_integer();
    return std::isfinite(v.as_double()) && std::trunc(v.as_double()) == v.as_double();
}

std::string shown(const Value& v) {
    if (v.is_array() || v.is_object()) return std::string(v.kind_name());
    std::string text = v.dump({.ascii = true});
    return text.size() <= 60 ? text : std::string(v.kind_name());
}

std::optional<DocumentSpot> DocumentChecker::get(const DocumentSpot& in, std::string_view name,
                                                 const ExpectedValue& what, Need need) {
    const Value* value = in.value->find(name);
    if (value == nullptr) {
        if (need != Need::optional) {
            const bool must = need == Need::required;
            add(must ? ConventionRule::schema : ConventionRule::advice, in.at, "{} \"{}\", found none",
                must ? "expected" : "should have", name);
        }
        return std::nullopt;
    }
    DocumentSpot spot{value, in.at.empty() ? std::string(name) : fmt::format("{}.{}", in.at, name)};
    if (what.holds(*value)) return spot;
    add(ConventionRule::schema, spot.at, "expected {}, found {}", what.words, shown(*value));
    return std::nullopt;
}

std::vector<DocumentSpot> DocumentChecker::items(const DocumentSpot& list, const ExpectedValue& item,
                                                 const ListLength& length) {
    std::vector<DocumentSpot> spots;
    const Value::Array& all = list.value->as_array();
    if (all.size() < length.least || all.size() > length.most) {
        const std::string range = length.most == SIZE_MAX       ? fmt::format("at least {}", length.least)
                                  : length.least == length.most ? fmt::format("{}", length.least)
                                                                : fmt::format("{} to {}", length.least, length.most);
        add(ConventionRule::schema, list.at, "expected {} items, found {}", range, all.size());
    }
    if (length.unique && has_twins(all)) add(ConventionRule::schema, list.at, "two of its items are equal");
    for (std::size_t n = 0; n < all.size(); ++n) {
        DocumentSpot spot{&all[n], fmt::format("{}[{}]", list.at, n)};
        if (item.holds(all[n])) {
            spots.push_back(std::move(spot));
        } else {
            add(ConventionRule::schema, spot.at, "expected {}, found {}", item.words, shown(all[n]));
        }
    }
    return spots;
}

std::vector<DocumentSpot> DocumentChecker::list(const DocumentSpot& in, std::string_view name,
                                                const ExpectedValue& item, const ListLength& length, Need need) {
    const auto all = get(in, name, a_list, need);
    return all ? items(*all, item, length) : std::vector<DocumentSpot>{};
}

void DocumentChecker::require_distinct(ConventionRule rule, const std::vector<DocumentSpot>& objects,
                                       std::string_view name) {
    std::map<std::string, std::string> seen;
    for (const DocumentSpot& spot : objects) {
        const Value* value = spot.value->find(name);
        if (value == nullptr) continue;
        const auto [first, added] = seen.emplace(value->dump(), spot.at);
        if (!added)
            add(rule, fmt::format("{}.{}", spot.at, name), "{} is that of {}, too", shown(*value), first->second);
    }
}

}  // namespace tessera
