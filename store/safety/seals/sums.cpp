#include "sums.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "metadata_json.h"
#include "replace_directory.h"
#include "resize.h"

namespace tessera {

// ---- what is covered

namespace {

/// The links to folders of chunks that a walk follows. Only chunks behind them count.
class ChunkLinks {
public:
    /// Whether the walk follows a link: to a node, or to chunks.
    bool follow(const PlaceView& at, const std::string& link) {
        const std::string_view name = std::string_view(link).substr(link.rfind('/') + 1);
        if (probe_node({at.store, link})) return true;
        if (!looks_like_chunk(name) && name != "c" && name != "__zdata__") return false;
        links_.push_back(link + '/');
        return true;
    }
    [[nodiscard]] bool lead_to(const std::string& folder) const {
        return std::ranges::any_of(links_, [&](const std::string& link) { return (folder + '/').starts_with(link); });
    }

private:
    std::vector<std::string> links_;
};

}  // namespace

FileList files_below(const PlaceView& at, Covered covered) {
    const bool all = covered == Covered::all;
    FileSorter files(spool_folder(at.store));
    ChunkLinks chunk_links;
    FolderWalk walk(at, [&](const std::string& link) { return chunk_links.follow(at, link); });
    ListedFile file;
    while (walk.next()) {
        const std::string place = walk.prefix();
        const bool chunks_only = chunk_links.lead_to(place);
        std::vector<std::pair<std::string, bool>> folders;  // and whether each is a link
        at.store.for_each(
            place,
            [&](std::string_view name, const KeyValueStore::ValueSize& size_of) {
                if (chunks_only && !looks_like_chunk(name)) return;
                file.size = size_of();
                if (!all && (is_own_name(name) || (file.size == 0 && name.ends_with(".lock")))) return;
                file.path = join_key(walk.path(), name);
                files.add(file);
            },
            [&](std::string_view name, bool link) {
                if ((all || !is_own_name(name)) && (!chunks_only || looks_like_chunk(name)))
                    folders.emplace_back(name, link);
            });
        std::ranges::sort(folders);
        for (const auto& [name, link] : folders) walk.enter(name, link);
    }
    for (const PassedFolder& passed : walk.passed()) {
        if (passed.why != PassedFolder::Why::too_deep) continue;
        throw unsupported("{}: folders are nested deeper than {}", at.name_of(passed.path), deepest_folder);
    }
    return files.sort();
}

namespace {

/// Marks the chunks outside of one array.
void mark_stale(const PlaceView& place, const Node& node, const FileList& files, std::vector<bool>& stale) {
    ArrayMetadata metadata;
    std::optional<ChunkGrid> grid;
    try {
        metadata = load_metadata(*node.dialect, {place.store, node.path});
        grid = chunk_grid(metadata);
    } catch (const Error&) {
        return;  // the grid, and so the stale chunks, are unknown
    }
    std::string folder =
        place.prefix.empty() ? node.path : node.path.substr(std::min(node.path.size(), place.prefix.size() + 1));
    if (!folder.empty()) folder += '/';
    const int rank = metadata.shape.rank();
    FileList::Reader reader(files, files.lower_bound(folder));
    while (const ListedFile* const file = reader.next()) {
        if (!file->path.starts_with(folder)) break;
        const auto chunk = metadata.keys.parse(std::string_view(file->path).substr(folder.size()), rank);
        if (!chunk || in_grid(*grid, *chunk)) continue;
        stale[reader.number()] = true;
    }
}

}  // namespace

std::int64_t leave_out_stale(const PlaceView& place, FileList& files) {
    std::vector<bool> stale(files.size());
    for (const Node& node : all_nodes(place)) {
        if (node.kind == NodeKind::array) mark_stale(place, node, files, stale);
    }
    const std::int64_t outside = std::count(stale.begin(), stale.end(), true);
    if (outside == 0) return 0;
    FileList kept(spool_folder(place.store));
    FileList::Reader reader(files);
    while (const ListedFile* const file = reader.next()) {
        if (!stale[reader.number()]) kept.append(*file);
    }
    files = std::move(kept);
    return outside;
}

FileList sums_of(const PlaceView& place, const FileList& files, const IoOptions& io) {
    FileList sums(spool_folder(place.store));
    for_each_file<std::optional<Sha256>>(
        files, io, "sealing",
        [&](const ListedFile& file, auto& sum) { sum = sum_of(place.store, place.key(file.path)); },
        [&](const ListedFile& file, const auto& sum) {
            if (sum) sums.append({.path = file.path, .sum = *sum});
        });
    return sums;
}

// ---- the manifest

namespace {

/// sha256sum's escapes in names, for line ends and the backslash.
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

}  // namespace

bool parse_hex(std::string_view digits, std::span<unsigned char> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto high = hex_digit(digits[2 * i]);
        const auto low = hex_digit(digits[2 * i + 1]);
        if (!high || !low) return false;
        out[i] = static_cast<unsigned char>(*high << 4U | *low);
    }
    return true;
}

std::optional<Sha256> parse_sum(std::string_view text) {
    Sha256 sum{};
    return parse_hex(text, sum) ? std::optional(sum) : std::nullopt;
}

namespace {

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

constexpr std::string_view manifest_form = "\"SHA-256, two spaces, a name that was not there before\"";

/// Calls each(file) for every line.
template <class Each>
void for_each_sum(const ByteSource& text, const Each& each) {
    constexpr std::size_t digits = 64;
    ListedFile file;
    for_each_line(text, manifest_form, [&](std::string_view line, std::size_t number) {
        const bool escaped = line.starts_with('\\');
        if (escaped) line.remove_prefix(1);
        const bool long_enough = line.size() > digits + 2 && line.substr(digits, 2) == "  ";
        const auto sum = long_enough ? parse_sum(line) : std::nullopt;
        auto name = long_enough ? parse_name(line.substr(digits + 2), escaped) : std::nullopt;
        if (!sum || !name) return false;
        reading(fmt::format("line {}", number), [&] { require_key(*name); });
        file.path = std::move(*name);
        file.sum = *sum;
        file.origin = number;
        each(file);
        return true;
    });
}

FileList read_manifest(const ByteSource& text, const std::string& folder) {
    FileSorter sorter(folder);
    for_each_sum(text, [&](const ListedFile& file) { sorter.add(file); });
    return sorter.sort_unique([&](const ListedFile& /*kept*/, const ListedFile& again) {
        throw corrupt("line {} is not {}", again.origin, manifest_form);
    });
}

}  // namespace

NextSum each_of(const FileList& sums) {
    return [reader = std::make_shared<FileList::Reader>(sums)](ListedFile& file) {
        const ListedFile* const next = reader->next();
        if (next != nullptr) file = *next;
        return next != nullptr;
    };
}

void write_manifest(const NextSum& next, const std::function<void(ByteSpan)>& out) {
    constexpr std::size_t most = std::size_t{64} << 10;
    std::string text;
    const auto flush = [&] {
        out(std::as_bytes(std::span(text)));
        text.clear();
    };
    ListedFile file;
    while (next(file)) {
        text += manifest_line(file.sum, file.path);
        if (text.size() >= most) flush();
    }
    if (!text.empty()) flush();
}

void put_manifest(KeyValueStore& store, const std::string& key, const NextSum& next) {
    const auto sink = store.create(key);
    write_manifest(next, [&](ByteSpan bytes) { sink->append(bytes); });
    sink->finish();
}

Sha256 manifest_sum(const NextSum& next) {
    Hasher hasher;
    write_manifest(next, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
    return hasher.finish();
}

std::optional<FileList> load_sums(const ReadableStore& store, const std::string& key) {
    const auto text = store.open(key);
    if (text == nullptr) return std::nullopt;
    return in_context([&] { return store.name_of(key); }, [&] { return read_manifest(*text, spool_folder(store)); });
}

void require_sums(const ByteSource& list) {
    in_context([&] { return list.name(); }, [&] { for_each_sum(list, [](const ListedFile&) {}); });
}

std::optional<Sha256> sum_of(const ReadableStore& store, const std::string& key) {
    const auto source = store.open(key);
    if (source == nullptr) return std::nullopt;
    Hasher hasher;
    for_each_piece(*source, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
    return hasher.finish();
}

bool is_there(const ReadableStore& store, const std::string& key) {
    try {
        return store.contains(key);
    } catch (const Error&) {
        return true;
    }
}

}  // namespace tessera
