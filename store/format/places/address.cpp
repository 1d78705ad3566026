#include <tessera/address.h>

#include <tessera/error_text.h>
#include <tessera/percent.h>
#include <tessera/store_kind.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view file_scheme = "file://";

/// A part after the first, "zip:sub/".
struct Adapter {
    std::string_view scheme;
    std::string_view path;
};

std::optional<Adapter> adapter_in(std::string_view part) {
    const std::size_t colon = part.find(':');
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    };
    if (colon == 0 || colon == part.npos || !std::ranges::all_of(part.substr(0, colon), fits)) return std::nullopt;
    return Adapter{part.substr(0, colon), part.substr(colon + 1)};
}

/// The parts after the first '|'; nullopt unless all are adapters.
std::optional<std::vector<Adapter>> adapters_in(std::string_view rest) {
    std::vector<Adapter> adapters;
    for (std::size_t bar = rest.find('|'); bar != rest.npos; bar = rest.find('|')) {
        rest.remove_prefix(bar + 1);
        const auto adapter = adapter_in(rest.substr(0, rest.find('|')));
        if (!adapter) return std::nullopt;
        adapters.push_back(*adapter);
    }
    return adapters;
}

std::string root_path(std::string_view root) {
    if (!root.starts_with(file_scheme)) return std::string(root);
    root.remove_prefix(file_scheme.size());
    constexpr std::string_view here = "localhost";
    if (root.starts_with(here)) root.remove_prefix(here.size());
    if (!root.starts_with('/')) throw invalid_argument("file://{}: expected file:/// and an absolute path", root);
    return percent_decoded(root);
}

std::string without_slash(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

/// A path of another kind of store with the name of the kind in front.
std::string of_n5(const std::string& path) {
    return is_local(path) ? path : "n5:" + path;
}

}  // namespace

std::string own_path(std::string_view address) {
    const std::size_t bar = std::min(address.find('|'), address.size());
    const bool file = address.starts_with(file_scheme);
    if (bar == address.size() && !file) return std::string(address);
    const auto adapters = adapters_in(address.substr(bar));
    std::error_code ignored;
    if (!adapters || (!file && fs::exists(address, ignored))) return std::string(address);
    std::string path = root_path(address.substr(0, bar));
    bool zipped = false;
    bool n5 = false;
    for (const auto& [scheme, below] : *adapters) {
        constexpr std::array known{"zarr", "zarr2", "zarr3", "n5", "zip"};
        const bool zip = scheme == "zip";
        if (std::ranges::count(known, scheme) == 0 || (zip && (zipped || !is_local(path)))) {
            throw unsupported(
                "{}: there is no scheme {}: in Tessera's addresses{}; there are zip: (once, of a file of this "
                "machine), "
                "zarr2:, zarr3:, zarr: and n5:",
                address, scheme, zip ? " at this place" : "");
        }
        zipped = zipped || zip;
        n5 = n5 || scheme == "n5";
        path = without_slash(std::move(path));
        const std::string name = without_slash(percent_decoded(below));
        if (!name.empty() && name != "/") path = path_below(path, name.substr(name.find_first_not_of('/')));
    }
    return n5 ? of_n5(path) : path;
}

std::optional<std::string> address_of(const fs::path& path, const Place& place, const Dialect& dialect, bool folder) {
    const bool n5 = place.store->name().starts_with("n5:");
    const std::string_view format = n5 ? "n5" : dialect.url_scheme;
    if (format.empty()) return std::nullopt;
    std::string text = path.string();
    if (text.starts_with("n5:")) text.erase(0, 3);
    const StoreKind& kind = store_kind_of(text);
    const auto ending = [&](std::string root) {
        return without_slash(std::move(root)) + "/|" + std::string(format) + ":";
    };
    if (kind.scheme.empty()) {
        const auto url = [](const fs::path& file) {
            return std::string(file_scheme) + percent_encoded(fs::absolute(file).lexically_normal().string(), true);
        };
        if (folder) return ending(url(text));
        const fs::path file = place.store->name();
        if (n5 || file.extension() == ".json") return std::nullopt;
        const std::string below = percent_encoded(place.prefix, true) + (place.prefix.empty() ? "" : "/");
        return url(file) + "|zip:" + below + "|" + std::string(format) + ":";
    }
    constexpr std::array shared{"http", "https", "s3", "gs"};
    if (std::ranges::count(shared, kind.scheme) == 0 || text.find('?') != std::string::npos) return std::nullopt;
    return ending(std::move(text));
}

}  // namespace tessera
