// Listings of sorted keys in memory, for the memory store and the zip store. The map goes from key to anything, with
// std::less<>.
#pragma once

#include <fmt/format.h>
#include <tessera/key_value_store.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// Two iterators as a range. (Clang 14 does not compile libstdc++'s std::ranges::subrange.)
template <class Iterator>
struct Entries {
    Iterator first;
    Iterator last;
    [[nodiscard]] Iterator begin() const { return first; }
    [[nodiscard]] Iterator end() const { return last; }
    [[nodiscard]] bool empty() const { return first == last; }
};

/// The entries whose keys begin with "prefix/"; '0' is the character after '/'.
template <class Map>
[[nodiscard]] auto entries_below(Map& map, std::string_view prefix) {
    using Found = Entries<decltype(map.begin())>;
    if (prefix.empty()) return Found{map.begin(), map.end()};
    return Found{map.lower_bound(fmt::format("{}/", prefix)), map.lower_bound(fmt::format("{}0", prefix))};
}

/// The part of a key below a prefix.
[[nodiscard]] inline std::string_view name_below(std::string_view prefix, std::string_view key) {
    return prefix.empty() ? key : key.substr(prefix.size() + 1);
}

/// Calls each(name, entry) for every key directly below a prefix, in order.
template <class Map, class Each>
void for_each_directly_below(Map& map, std::string_view prefix, Each&& each) {
    for (auto& [key, entry] : entries_below(map, prefix)) {
        const std::string_view name = name_below(prefix, key);
        if (name.find('/') == std::string_view::npos) each(name, entry);
    }
}

/// KeyValueStore::list.
template <class Map>
[[nodiscard]] Listing list_below(const Map& map, std::string_view prefix) {
    Listing listing;
    for (const auto& [key, entry] : entries_below(map, prefix)) {
        const std::string_view name = name_below(prefix, key);
        const std::size_t slash = name.find('/');
        if (slash == std::string_view::npos) {
            listing.keys.emplace_back(name);
        } else if (listing.prefixes.empty() || listing.prefixes.back() != name.substr(0, slash)) {
            listing.prefixes.emplace_back(name.substr(0, slash));
        }
    }
    // "a.b" sorts before "a/c", so prefixes such as "a" and "a.b" may come out of order and twice.
    std::ranges::sort(listing.prefixes);
    listing.prefixes.erase(std::unique(listing.prefixes.begin(), listing.prefixes.end()), listing.prefixes.end());
    return listing;
}

/// KeyValueStore::for_each. size_of(entry) is the size of a value, asked for when `each` asks.
template <class Map, class SizeOf>
void for_each_value_below(const Map& map, std::string_view prefix, const KeyValueStore::EachValue& each,
                          const KeyValueStore::EachFolder& folder, SizeOf&& size_of) {
    for_each_directly_below(map, prefix, [&](std::string_view name, const auto& entry) {
        each(name, [&]() -> std::uint64_t { return size_of(entry); });
    });
    if (!folder) return;
    for (const std::string& name : list_below(map, prefix).prefixes) folder(name, false);
}

/// The same where a lock guards the map: `each` and `folder` may use the store, so they run without it.
template <class Lock, class Map, class SizeOf>
void for_each_value_below(std::string_view prefix, const KeyValueStore::EachValue& each,
                          const KeyValueStore::EachFolder& folder, Lock lock, const Map& map, SizeOf&& size_of) {
    std::vector<std::pair<std::string, std::uint64_t>> found;
    for_each_directly_below(
        map, prefix, [&](std::string_view name, const auto& entry) { found.emplace_back(name, size_of(entry)); });
    const std::vector<std::string> folders = folder ? list_below(map, prefix).prefixes : std::vector<std::string>();
    lock.unlock();
    for (const auto& [name, size] : found) each(name, [&size = size] { return size; });
    for (const std::string& name : folders) folder(name, false);
}

}  // namespace tessera
