#include <tessera/part_names.h>

#include <glob.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/place.h>

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The digits at the beginning of a text, and those without zeros in front.
std::string_view number_at(std::string_view text) {
    return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
}
std::string_view significant(std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Whether `a` comes before `b` where digits count as numbers: frame-2 before frame-10.
bool naturally_before(std::string_view a, std::string_view b) {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a[0]) && is_digit(b[0])) {
            const std::string_view digits_a = number_at(a);
            const std::string_view digits_b = number_at(b);
            const std::string_view x = significant(digits_a);
            const std::string_view y = significant(digits_b);
            if (x.size() != y.size()) return x.size() < y.size();
            if (x != y) return x < y;
            a.remove_prefix(digits_a.size());
            b.remove_prefix(digits_b.size());
        } else {
            if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    return a.empty() == b.empty() ? whole_a < whole_b : a.empty();
}

/// Only the letters and digits, in lower case: many locales sort names by these.
std::string collated(const std::string& text) {
    std::string key;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0) key += static_cast<char>(std::tolower(u));
    }
    return key;
}

/// Whether names are in an order in which shells expand a pattern, so that the user probably did not choose it.
bool in_shell_order(const std::vector<std::string>& names) {
    return std::ranges::is_sorted(names) || std::ranges::is_sorted(names, {}, collated);
}

/// The files that match a pattern.
std::vector<std::string> matches_of(const std::string& pattern, bool natural) {
    glob_t found{};
    const int failed = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> names(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
    ::globfree(&found);
    if (names.empty()) throw not_found("{}: no file has such a name", pattern);
    if (natural) std::ranges::stable_sort(names, naturally_before);
    return names;
}

/// Files that hold the same variables are not meant as a row of all of these.
void require_one_variable(const std::vector<std::string>& arrays) {
    std::map<std::string, fs::path> file_of;
    std::map<fs::path, int> members;
    for (const std::string& array : arrays) ++members[split_array_path(array).path];
    for (const std::string& array : arrays) {
        const ArrayPath at = split_array_path(array);
        if (!at.member || members[at.path] == 1) continue;
        const auto [found, is_new] = file_of.emplace(*at.member, at.path);
        if (is_new || found->second == at.path) continue;
        throw invalid_argument("{} and {} both hold {} arrays, {} among them; name the one to join: {}::{}",
                               found->second.string(), at.path.string(), members[at.path], *at.member,
                               found->second.string(), *at.member);
    }
}

}  // namespace

bool is_pattern(const std::string& word) {
    std::error_code ignored;
    return word.find_first_of("*?[") != std::string::npos && is_local(word) &&
           !fs::exists(split_array_path(word).path, ignored);
}

bool are_data_sets(const std::vector<std::string>& paths) {
    std::set<std::string> common;
    for (const std::string& path : paths) {
        const Located at = locate(path);
        if (at.kind == PathKind::group || at.kind == PathKind::folder) continue;
        const std::vector<std::string> members = several_members(at);
        if (members.size() < 2) return false;
        std::set<std::string> own(members.begin(), members.end());
        if (!common.empty()) std::erase_if(own, [&](const std::string& name) { return !common.contains(name); });
        if (own.empty()) return false;
        common = std::move(own);
    }
    return paths.size() > 1;
}

std::vector<std::string> paths_named(const std::vector<std::string>& words, bool natural) {
    std::vector<std::string> paths;
    for (const std::string& word : words) {
        for (std::string& path : is_pattern(word) ? matches_of(word, natural) : std::vector{word})
            paths.push_back(std::move(path));
    }
    return paths;
}

namespace {

std::vector<std::string> members_of(const std::vector<std::string>& paths) {
    std::vector<std::string> arrays;
    for (const std::string& path : paths) {
        const std::vector<std::string> members = several_members(locate(path));
        if (members.empty()) arrays.push_back(path);
        for (const std::string& member : members) arrays.push_back(fmt::format("{}::{}", path, member));
    }
    return arrays;
}

}  // namespace

std::vector<std::string> arrays_named(const std::string& word, bool natural) {
    return members_of(paths_named({word}, natural));
}

std::vector<std::string> arrays_named(std::vector<std::string> words, bool as_given) {
    if (!as_given && in_shell_order(words)) std::ranges::stable_sort(words, naturally_before);
    std::vector<std::string> paths = paths_named(words, !as_given);
    if (are_data_sets(paths)) return paths;
    std::vector<std::string> whole;
    for (const std::string& path : paths) {
        if (!split_array_path(path).member) whole.push_back(path);
    }
    require_one_variable(members_of(whole));
    return members_of(paths);
}

}  // namespace tessera
