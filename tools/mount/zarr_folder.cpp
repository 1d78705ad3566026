#include "zarr_folder.h"

#include <tessera/error_text.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <charconv>

#include <span>
#include <utility>

#include <root.h>
#include <zarr_array.h>

namespace tessera::mount {

namespace {

/// Chunks whose names have no '/' between their numbers all lie in one folder. More are not listed; all can be opened.
constexpr std::int64_t most_listed = 1'000'000;

std::string joined(std::span<const std::string> parts) {
    std::string path;
    for (const std::string& part : parts) path += (path.empty() ? "" : "/") + part;
    return path;
}

const ZarrArray& zarr_of(const serve::ServedNode& node, const std::string& format) {
    return node.zarr->in(node, format == "v2" ? ZarrFormat::v2 : ZarrFormat::v3);
}

serve::HttpResponse answered(serve::Served& served, const std::string& format, std::vector<std::string> segments) {
    segments.insert(segments.begin(), format);
    for (const serve::Route& route : serve::zarr_routes()) {
        serve::HttpRequest request;
        request.segments = segments;
        if (route.path == format) return route.answer(served, request);
    }
    throw unsupported("no format '{}' of Zarr is shown", format);
}

/// The first numbers of a chunk's index that the parts of a folder say; nullopt if they lead to no chunk.
std::optional<std::vector<std::int64_t>> numbers_in(const ZarrArray& array, std::vector<std::string> parts) {
    for (const std::string& folder : serve::parts_of(array.keys().prefix)) {
        if (parts.empty()) return std::vector<std::int64_t>{};
        if (parts.front() != folder) return std::nullopt;
        parts.erase(parts.begin());
    }
    const Shape grid = array.grid().grid();
    if (std::ssize(parts) >= grid.rank() || (!parts.empty() && array.keys().separator != "/")) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (const std::string& part : parts) {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        const bool plain = error == std::errc() && end == part.data() + part.size() && std::to_string(number) == part;
        if (!plain || number < 0 || number >= grid[numbers.size()]) return std::nullopt;
        numbers.push_back(number);
    }
    return numbers;
}

}  // namespace

std::optional<ZarrFolder::At> ZarrFolder::find(const std::vector<std::string>& parts) const {
    At at{.node = top_, .rest = parts};
    while (!at.node->is_array() && !at.rest.empty()) {
        try {
            const std::string& path = at.node->path;
            at.node = served_.node(path.empty() ? at.rest.front() : path + "/" + at.rest.front());
        } catch (const Error& e) {
            if (e.code() != ErrorCode::not_found) throw;
            break;
        }
        at.rest.erase(at.rest.begin());
    }
    return at;
}

std::vector<std::string> ZarrFolder::documents(const serve::ServedNode& node) const {
    if (format_ == "v3") return {std::string(v3_document_name)};
    std::vector<std::string> names{std::string(v2_attributes_name)};
    if (node.is_array()) {
        names.emplace_back(v2_array_name);
    } else {
        names.emplace_back(v2_group_name);
        names.emplace_back(v2_consolidated_name);
    }
    return names;
}

std::optional<Entry> ZarrFolder::look(const std::vector<std::string>& parts) const {
    const std::optional<At> at = find(parts);
    if (!at) return std::nullopt;
    if (at->rest.empty()) return Entry{.folder = true};
    const std::vector<std::string> names = documents(*at->node);
    const bool document = at->rest.size() == 1 && std::ranges::find(names, at->rest.front()) != names.end();
    if (!document && !at->node->is_array()) return std::nullopt;
    if (!document) {
        const ZarrArray& array = zarr_of(*at->node, format_);
        const auto index = array.index(joined(at->rest));
        if (!index) return numbers_in(array, at->rest) ? std::optional(Entry{.folder = true}) : std::nullopt;
        if (!array.contains(*index)) return std::nullopt;
        if (const auto size = array.known_size(*index)) return Entry{.size = *size};
    }
    return Entry{.size = read(parts).size()};
}

std::vector<Listed> ZarrFolder::chunks_below(const At& at) const {
    const ZarrArray& array = zarr_of(*at.node, format_);
    if (array.grid().grid().empty()) {
        const bool there = at.rest.empty() && array.contains({});
        return there ? std::vector<Listed>{{array.keys().key({})}} : std::vector<Listed>{};
    }
    const auto numbers = numbers_in(array, at.rest);
    if (!numbers) return {};
    const std::vector<std::string> folders = serve::parts_of(array.keys().prefix);
    const bool divided = array.keys().separator == "/";
    const Shape grid = array.grid().grid();
    if (at.rest.size() < folders.size()) return {{folders[at.rest.size()], true}};
    std::vector<Listed> listed;
    Index index = Dims::filled(grid.rank(), 0);
    std::ranges::copy(*numbers, index.begin());
    const int level = static_cast<int>(numbers->size());
    const auto add = [&](bool folder) {
        if (!folder && !array.contains(index)) return;
        if (folder) return listed.push_back({std::to_string(index[level]), true});
        const std::string key = array.keys().key(index);
        listed.push_back({key.substr(key.rfind('/') + 1)});
    };
    if (divided) {
        for (; index[level] < grid[level]; ++index[level]) add(level + 1 < grid.rank());
        return listed;
    }
    const std::int64_t count = std::min(element_count(grid), most_listed);
    for (std::int64_t n = 0; n < count; ++n) {
        std::int64_t rest = n;
        for (int d = grid.rank(); d-- > 0; rest /= grid[d]) index[d] = rest % grid[d];
        add(false);
    }
    return listed;
}

std::vector<Listed> ZarrFolder::list(const std::vector<std::string>& parts) const {
    const std::optional<At> at = find(parts);
    if (!at) throw not_found("nothing is here");
    std::vector<Listed> listed;
    if (at->rest.empty()) {
        for (std::string& name : documents(*at->node)) listed.push_back({std::move(name)});
    }
    if (at->node->is_array()) {
        std::ranges::move(chunks_below(*at), std::back_inserter(listed));
    } else if (at->rest.empty()) {
        for (const serve::ServedChild& child : served_.children(*at->node)) {
            if (child.name.find('/') == std::string::npos) listed.push_back({child.name, true});
        }
    }
    return listed;
}

serve::HttpBody ZarrFolder::read(const std::vector<std::string>& parts) const {
    std::vector<std::string> segments = serve::parts_of(top_->path);
    segments.insert(segments.end(), parts.begin(), parts.end());
    serve::HttpResponse response = answered(served_, format_, std::move(segments));
    if (response.status != 200) throw not_found("nothing is here");
    return std::move(response.body);
}

}  // namespace tessera::mount
