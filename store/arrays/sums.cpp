#include "sums.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "metadata_json.h"
#include "replace_directory.h"
#include "resize.h"

namespace tessera {

// ---- what is covered

std::vector<SummedFile> files_below(const KeyValueStore& store, std::string_view prefix) {
    std::vector<SummedFile> files;
    std::vector<std::string> chunk_links;  // only chunks behind them count
    FolderWalk walk(store, prefix, [&](const std::string& link) {
        const std::string_view name = std::string_view(link).substr(link.rfind('/') + 1);
        if (probe_node(store, link)) return true;
        if (!looks_like_chunk(name) && name != "c" && name != "__zdata__") return false;
        chunk_links.push_back(link + '/');
        return true;
    });
    while (walk.next()) {
        const std::string folder = walk.path();
        const std::string place = walk.prefix();
        const bool chunks_only =
            std::ranges::any_of(chunk_links, [&](const std::string& link) { return (place + '/').starts_with(link); });
        store.for_each(place, [&](std::string_view name, const KeyValueStore::ValueSize& size_of) {
            if (chunks_only && !looks_like_chunk(name)) return;
            const std::uint64_t size = size_of();
            const bool lock_file = size == 0 && name.ends_with(".lock");
            if (!is_own_name(name) && !lock_file) files.push_back({join_key(folder, name), size});
        });
        for (const std::string& name : walk.listing().prefixes) {
            if (!is_own_name(name) && (!chunks_only || looks_like_chunk(name))) walk.enter(name);
        }
    }
    for (const PassedFolder& passed : walk.passed()) {
        if (passed.why != PassedFolder::Why::too_deep) continue;
        throw unsupported(fmt::format("{}: folders are nested deeper than {}",
                                      join_key(join_key(store.name(), prefix), passed.path), deepest_folder));
    }
    std::ranges::sort(files, {}, &SummedFile::path);
    return files;
}

void leave_out_stale(const KeyValueStore& store, std::string_view prefix, std::vector<SummedFile>& files) {
    std::vector<char> stale(files.size());
    for (const Node& node : all_nodes(store, prefix)) {
        if (node.kind != NodeKind::array) continue;
        ArrayMetadata metadata;
        std::optional<ChunkGrid> grid;
        try {
            metadata = load_metadata(*node.dialect, store, node.path);
            grid.emplace(metadata.shape, metadata.chunks);
        } catch (const Error&) {
            continue;  // the grid, and so the stale chunks, are unknown
        }
        std::string folder =
            prefix.empty() ? node.path : node.path.substr(std::min(node.path.size(), prefix.size() + 1));
        if (!folder.empty()) folder += '/';
        const int rank = metadata.shape.rank();
        for (auto file = std::ranges::lower_bound(files, folder, {}, &SummedFile::path);
             file != files.end() && file->path.starts_with(folder); ++file) {
            const auto chunk = metadata.keys.parse(std::string_view(file->path).substr(folder.size()), rank);
            if (chunk && !in_grid(*grid, *chunk)) stale[static_cast<std::size_t>(file - files.begin())] = 1;
        }
    }
    std::vector<SummedFile> kept;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (stale[i] == 0) kept.push_back(std::move(files[i]));
    }
    files = std::move(kept);
}

std::uint64_t bytes_of(const std::vector<SummedFile>& files) {
    std::uint64_t bytes = 0;
    for (const SummedFile& file : files) bytes += file.size;
    return bytes;
}

Sums sums_of(const KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
             const IoOptions& io) {
    std::vector<std::optional<Sha256>> found(files.size());
    for_each_file(files, io, "sealing", [&](const SummedFile& file, std::size_t i) {
        found[i] = sum_of(store, join_key(prefix, file.path));
    });
    Sums sums;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (found[i]) sums.emplace_back(files[i].path, *found[i]);
    }
    return sums;
}

// ---- the manifest

namespace {

/// sha256sum's escapes in names: characters that end a line, and the backslash.
constexpr std::array<std::pair<char, char>, 3> escapes{{{'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'}}};

/// One line in sha256sum's format: a line with an escaped name begins with a backslash.
std::string manifest_line(const Sha256& sum, std::string_view path) {
    std::string name;
    for (const char c : path) {
        const auto* const escape = std::ranges::find(escapes, c, &std::pair<char, char>::first);
        if (escape == escapes.end()) {
            name += c;
        } else {
            name += {'\\', escape->second};
        }
    }
    return fmt::format("{}{}  {}\n", name.size() == path.size() ? "" : "\\", hex(sum), name);
}

std::optional<unsigned> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return std::nullopt;
}

std::optional<Sha256> parse_sum(std::string_view text) {
    Sha256 sum{};
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const auto high = hex_digit(text[2 * i]);
        const auto low = hex_digit(text[2 * i + 1]);
        if (!high || !low) return std::nullopt;
        sum[i] = static_cast<unsigned char>(*high << 4U | *low);
    }
    return sum;
}

/// The name without escapes; nullopt if it is invalid.
std::optional<std::string> parse_name(std::string_view text, bool escaped) {
    if (!escaped) return std::string(text);
    std::string name;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            name += text[i];
            continue;
        }
        if (++i == text.size()) return std::nullopt;
        const auto* const escape = std::ranges::find(escapes, text[i], &std::pair<char, char>::second);
        if (escape == escapes.end()) return std::nullopt;
        name += escape->first;
    }
    return name;
}

FileSums read_manifest(const ByteSource& text) {
    constexpr std::size_t digits = 64;
    FileSums manifest;
    const auto add = [&](std::string_view line, std::size_t number) {
        const bool escaped = line.starts_with('\\');
        if (escaped) line.remove_prefix(1);
        const bool long_enough = line.size() > digits + 2 && line.substr(digits, 2) == "  ";
        const auto sum = long_enough ? parse_sum(line) : std::nullopt;
        const auto name = long_enough ? parse_name(line.substr(digits + 2), escaped) : std::nullopt;
        if (!sum || !name || !manifest.emplace(*name, *sum).second) return false;
        reading(fmt::format("line {}", number), [&] { require_key(*name); });
        return true;
    };
    for_each_line(text, "\"SHA-256, two spaces, a name that was not there before\"", add);
    return manifest;
}

}  // namespace

std::string manifest_of(const Sums& sums) {
    std::string text;
    for (const auto& [path, sum] : sums) text += manifest_line(sum, path);
    return text;
}

std::optional<FileSums> load_sums(const KeyValueStore& store, const std::string& key) {
    const auto text = store.open(key);
    if (text == nullptr) return std::nullopt;
    return in_context([&] { return join_key(store.name(), key); }, [&] { return read_manifest(*text); });
}

std::optional<Sha256> sum_of(const KeyValueStore& store, const std::string& key) {
    const auto source = store.open(key);
    if (source == nullptr) return std::nullopt;
    Hasher hasher;
    for_each_piece(*source, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
    return hasher.finish();
}

void save_sums(KeyValueStore& store, std::string_view prefix, const std::string& key, const IoOptions& io) {
    const std::string manifest = manifest_of(sums_of(store, prefix, files_below(store, prefix), io));
    store.put(key, std::as_bytes(std::span(manifest)));
}

}  // namespace tessera
