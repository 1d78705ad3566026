#include "settings.h"

#include <fmt/ranges.h>

#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/error_text.h>
#include <tessera/quantities.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace tessera {

namespace {

constexpr std::array<std::string_view, 11> names{"format", "codec",      "durability", "max_memory", "threads", "color",
                                                 "cache",  "cache_size", "cache_age",  "offline",    "absent"};
constexpr std::uint64_t longest_file = 64 << 10;

using Values = std::map<std::string, std::string, std::less<>>;

std::string variable_of(std::string_view name) {
    std::string variable = "TESSERA_";
    for (const char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return variable;
}

std::optional<std::string> environment(const char* variable) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

std::string file_of_settings() {
    if (const auto chosen = environment("TESSERA_CONFIG")) return *chosen;
    const auto folder = environment("XDG_CONFIG_HOME");
    if (folder && !folder->empty()) return *folder + "/tessera.toml";
    const auto home = environment("HOME");
    return home && !home->empty() ? *home + "/.config/tessera.toml" : "";
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

/// A text in quotes or a whole number, and nothing but a comment behind it; nullopt for anything else.
std::optional<std::string> value_in(std::string_view text) {
    std::string value;
    std::string_view rest;
    if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
        const std::size_t end = text.find(text.front(), 1);
        if (end == std::string_view::npos) return {};
        value = text.substr(1, end - 1);
        if (text.front() == '"' && value.find('\\') != std::string::npos) return {};  // TOML's escapes
        rest = text.substr(end + 1);
    } else {
        const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
        if (end == 0) return {};
        value = text.substr(0, end);
        rest = text.substr(end);
    }
    rest = trimmed(rest);
    return rest.empty() || rest.front() == '#' ? std::optional(value) : std::nullopt;
}

Values parse_settings(std::string_view text, const std::string& path) {
    Values values;
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty() || line.front() == '#') continue;
        const std::size_t equals = line.find('=');
        const std::string name(trimmed(line.substr(0, equals)));
        const auto value = equals == std::string_view::npos ? std::nullopt : value_in(trimmed(line.substr(equals + 1)));
        if (!value) throw corrupt("{}: line {} is not NAME = \"TEXT\" or NAME = NUMBER", path, number);
        if (std::ranges::count(names, name) == 0) {
            throw corrupt("{}: line {}: '{}' is no setting; there are {}", path, number, name, fmt::join(names, ", "));
        }
        if (!values.emplace(name, *value).second) throw corrupt("{}: line {}: {} is there twice", path, number, name);
    }
    return values;
}

Values read_settings(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    const auto file = open_file(path);
    if (file->size() > longest_file) throw corrupt("{}: a file of settings has at most {} bytes", path, longest_file);
    const Buffer bytes = read_all(*file);
    return parse_settings({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

/// The settings in a file, which is read once.
const Values& settings_in(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, Values> files;
    const std::lock_guard guard(mutex);
    const auto known = files.find(path);
    return known != files.end() ? known->second : files.emplace(path, read_settings(path)).first->second;
}

}  // namespace

std::span<const std::string_view> setting_names() {
    return names;
}

std::optional<Setting> setting(std::string_view name) {
    const std::string variable = variable_of(name);
    if (const auto value = environment(variable.c_str())) {
        return value->empty() ? std::nullopt : std::optional<Setting>({*value, variable});
    }
    const std::string path = file_of_settings();
    if (path.empty()) return {};
    const Values& values = settings_in(path);
    const auto found = values.find(name);
    if (found == values.end()) return {};
    return Setting{found->second, path + ": " + std::string(name)};
}

RemoteOptions remote_settings() {
    RemoteOptions remote;
    const auto take = [](std::string_view name, const auto& use) {
        if (const auto found = setting(name)) use(found->from, found->value);
    };
    take("cache", [&](const std::string&, const std::string& value) { remote.cache = value; });
    take("cache_size",
         [&](const std::string& from, const std::string& value) { remote.cache_bytes = parse_bytes(from, value); });
    take("cache_age",
         [&](const std::string& from, const std::string& value) { remote.cache_age = parse_duration(from, value); });
    take("offline", [&](const std::string& from, const std::string& value) {
        if (value != "0" && value != "1") throw invalid_argument("{}: expected 0 or 1, found '{}'", from, value);
        remote.offline = value == "1";
    });
    take("absent", [&](const std::string& from, const std::string& value) {
        remote.absent_status = parse_absent_status(from, value);
    });
    return remote;
}

std::string setting_or(std::string_view name, std::string_view otherwise) {
    auto found = setting(name);
    return found ? std::move(found->value) : std::string(otherwise);
}

}  // namespace tessera
