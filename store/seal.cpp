#include <tessera/seal.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/destination_lock.h>
#include <tessera/error.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <optional>
#include <span>

#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "metadata_json.h"
#include "replace_directory.h"
#include "resize.h"
#include "sha256.h"
#include "sums.h"

namespace tessera {

namespace {

/// A file below what is sealed.
struct File {
    std::string path;
    std::uint64_t size = 0;
};

/// Everything that a seal covers, sorted by path.
std::vector<File> files_below(const KeyValueStore& store, std::string_view prefix) {
    std::vector<File> files;
    std::vector<std::string> chunk_links;  // behind them only chunks count
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
    std::ranges::sort(files, {}, &File::path);
    return files;
}

/// Takes out the chunks that lie outside of their arrays: no array shows them, and `repair` sets them aside.
void leave_out_stale(const KeyValueStore& store, std::string_view prefix, std::vector<File>& files) {
    std::vector<char> stale(files.size());
    for (const Node& node : all_nodes(store, prefix)) {
        if (node.kind != NodeKind::array) continue;
        ArrayMetadata metadata;
        std::optional<ChunkGrid> grid;
        try {
            metadata = load_metadata(*node.dialect, store, node.path);
            grid.emplace(metadata.shape, metadata.chunks);
        } catch (const Error&) {
            continue;  // which chunks lie outside is not known
        }
        std::string folder =
            prefix.empty() ? node.path : node.path.substr(std::min(node.path.size(), prefix.size() + 1));
        if (!folder.empty()) folder += '/';
        const int rank = metadata.shape.rank();
        for (auto file = std::ranges::lower_bound(files, folder, {}, &File::path);
             file != files.end() && file->path.starts_with(folder); ++file) {
            const auto chunk = metadata.keys.parse(std::string_view(file->path).substr(folder.size()), rank);
            if (chunk && !in_grid(*grid, *chunk)) stale[static_cast<std::size_t>(file - files.begin())] = 1;
        }
    }
    std::vector<File> kept;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (stale[i] == 0) kept.push_back(std::move(files[i]));
    }
    files = std::move(kept);
}

std::uint64_t bytes_of(const std::vector<File>& files) {
    std::uint64_t bytes = 0;
    for (const File& file : files) bytes += file.size;
    return bytes;
}

/// Calls each(file, its place among them) in parallel, with progress.
template <class Each>
void for_each_file(const std::vector<File>& files, const IoOptions& io, std::string_view what, const Each& each) {
    if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(bytes_of(files)), what);
    parallel_for(std::ssize(files), io, [&](std::int64_t n) {
        const auto i = static_cast<std::size_t>(n);
        each(files[i], i);
        if (io.progress != nullptr) io.progress->advance(static_cast<std::int64_t>(files[i].size));
    });
}

/// Of the files that are still there, sorted by path.
using Sums = std::vector<std::pair<std::string, Sha256>>;

Sums sums_of(const KeyValueStore& store, std::string_view prefix, const std::vector<File>& files, const IoOptions& io) {
    std::vector<std::optional<Sha256>> found(files.size());
    for_each_file(files, io, "sealing",
                  [&](const File& file, std::size_t i) { found[i] = sum_of(store, join_key(prefix, file.path)); });
    Sums sums;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (found[i]) sums.emplace_back(files[i].path, *found[i]);
    }
    return sums;
}

// ---- the manifest

/// What sha256sum writes in names instead of characters that would end a line, and the backslash itself.
constexpr std::array<std::pair<char, char>, 3> escapes{{{'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'}}};

/// One line, as sha256sum has it: a line with an escaped name begins with a backslash.
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

std::string manifest_of(const Sums& sums) {
    std::string text;
    for (const auto& [path, sum] : sums) text += manifest_line(sum, path);
    return text;
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

/// The name without escapes; nothing for one that cannot be.
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

using Manifest = FileSums;

Manifest read_manifest(const ByteSource& text) {
    constexpr std::size_t digits = 64;
    Manifest manifest;
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

std::optional<Manifest> load_manifest(const KeyValueStore& store, const std::string& key) {
    const auto text = store.open(key);
    if (text == nullptr) return std::nullopt;
    return in_context([&] { return join_key(store.name(), key); }, [&] { return read_manifest(*text); });
}

/// "a, b, c and 12 more"
std::string names_text(const SealState& state) {
    std::vector<std::string> names;
    for (const auto* list : {&state.changed, &state.missing, &state.added}) {
        names.insert(names.end(), list->begin(), list->end());
    }
    constexpr std::size_t shown = 3;
    const auto some = std::span(names).first(std::min(shown, names.size()));
    const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
    return fmt::format("{}{}", fmt::join(some, ", "), more);
}

}  // namespace

std::optional<FileSums> load_sums(const KeyValueStore& store, const std::string& key) {
    return load_manifest(store, key);
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

SealState seal_state(const KeyValueStore& store, std::string_view prefix, const IoOptions& io) {
    const std::optional<Manifest> manifest = load_manifest(store, join_key(prefix, seal_key));
    if (!manifest) return {};
    SealState state;
    state.present = true;
    const std::vector<File> files = files_below(store, prefix);
    std::vector<File> added = files;
    std::erase_if(added, [&](const File& file) { return manifest->contains(file.path); });
    if (!added.empty()) leave_out_stale(store, prefix, added);
    for (File& file : added) state.added.push_back(std::move(file.path));
    std::vector<File> sealed;
    for (const auto& [path, sum] : *manifest) {
        const auto there = std::ranges::lower_bound(files, path, {}, &File::path);
        if (there != files.end() && there->path == path) {
            sealed.push_back(*there);
        } else {
            state.missing.push_back(path);
        }
    }
    std::vector<char> same(sealed.size());  // not vector<bool>: threads write into it
    for_each_file(sealed, io, "checking the seal", [&](const File& file, std::size_t i) {
        try {
            same[i] = sum_of(store, join_key(prefix, file.path)) == manifest->find(file.path)->second;
        } catch (const Error&) {
            same[i] = 0;  // what cannot be read is not what it was
        }
    });
    for (std::size_t i = 0; i < sealed.size(); ++i) {
        if (same[i] == 0) state.changed.push_back(sealed[i].path);
    }
    state.unchanged = std::ssize(sealed) - std::ssize(state.changed);
    return state;
}

Sealed seal(KeyValueStore& store, std::string_view prefix, bool overwrite, const IoOptions& io) {
    const LockedNodes locked = lock_settled_nodes(store, prefix);
    std::vector<File> files = files_below(store, prefix);
    leave_out_stale(store, prefix, files);
    if (files.empty()) throw not_found(fmt::format("{}: nothing to seal", join_key(store.name(), prefix)));
    Sealed result{.files = std::ssize(files), .bytes = bytes_of(files)};
    if (!overwrite) {
        const SealState state = seal_state(store, prefix, io);
        if (state.intact()) return result;
        if (state.present) {
            throw already_exists(
                fmt::format("{}: sealed before, and since then changed, lost or added: {}; if that is as it should be, "
                            "--overwrite seals it anew",
                            join_key(store.name(), prefix), names_text(state)));
        }
    }
    const std::string manifest = manifest_of(sums_of(store, prefix, files, io));
    store.put(join_key(prefix, seal_key), std::as_bytes(std::span(manifest)));
    store.sync();
    result.written = true;
    return result;
}

// ---- BagIt

namespace {

/// A path in a bag's manifest: RFC 8493 writes what ends a line, and '%', as in URLs.
std::string bag_path(std::string_view path) {
    std::string text;
    for (const char c : path) {
        if (c == '\n' || c == '\r' || c == '%') {
            fmt::format_to(std::back_inserter(text), "%{:02X}", static_cast<unsigned char>(c));
        } else {
            text += c;
        }
    }
    return text;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::localtime_r(&now, &date);
    return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/// Copies the files to data/NAME/ of a bag. Returns their sums by their paths in it.
Sums copy_payload(const KeyValueStore& from, std::string_view prefix, std::string_view name,
                  const std::vector<File>& files, KeyValueStore& bag, const IoOptions& io) {
    Sums sums(files.size());
    const std::string folder = fmt::format("data/{}", name);
    for_each_file(files, io, "copying", [&](const File& file, std::size_t i) {
        const std::string key = join_key(prefix, file.path);
        const auto source = from.open(key);
        if (source == nullptr) throw not_found(fmt::format("{}: gone while it was copied", join_key(from.name(), key)));
        Hasher hasher;
        sums[i].first = join_key(folder, file.path);
        copy_bytes(*source, bag, sums[i].first, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
        sums[i].second = hasher.finish();
    });
    return sums;
}

std::string bag_manifest(const Sums& sums) {
    std::string text;
    for (const auto& [path, sum] : sums) text += fmt::format("{}  {}\n", hex(sum), bag_path(path));
    return text;
}

void write_tags(KeyValueStore& bag, const Sums& payload, const Sealed& size) {
    const std::vector<std::pair<std::string, std::string>> tags{
        {"bag-info.txt", fmt::format("Bag-Software-Agent: Tessera\nBagging-Date: {}\nPayload-Oxum: {}.{}\n", today(),
                                     size.bytes, size.files)},
        {"bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"},
        {"manifest-sha256.txt", bag_manifest(payload)},
    };
    Sums sums;
    for (const auto& [name, text] : tags) {
        bag.put(name, std::as_bytes(std::span(text)));
        Hasher hasher;
        hasher.add(text.data(), text.size());
        sums.emplace_back(name, hasher.finish());
    }
    const std::string manifest = bag_manifest(sums);
    bag.put("tagmanifest-sha256.txt", std::as_bytes(std::span(manifest)));
}

}  // namespace

Sealed make_bag(KeyValueStore& store, std::string_view prefix, std::string_view name, const std::filesystem::path& bag,
                const IoOptions& io, const StoreOptions& options) {
    const std::filesystem::path target = std::filesystem::absolute(bag).lexically_normal();
    const std::filesystem::path place = target.has_filename() ? target : target.parent_path();
    const DestinationLock building(place, options);
    if (std::filesystem::exists(status_of(place)))
        throw already_exists(fmt::format("{}: something is there already", bag.string()));
    LockedNodes locked;  // after the lock of the bag, for which another run may wait
    if (!store.read_only()) locked = lock_settled_nodes(store, prefix);
    std::vector<File> files = files_below(store, prefix);
    leave_out_stale(store, prefix, files);
    if (files.empty()) throw not_found(fmt::format("{}: nothing to put in a bag", join_key(store.name(), prefix)));
    const std::string unfinished = hidden_name(place, "new");
    const auto parent = directory_store(place.parent_path(), options);
    BuiltDirectory directory(place.parent_path() / unfinished, options.durability);
    const auto built = directory_store(directory.path(), options);
    built->sync_later();
    const Sums sums = copy_payload(store, prefix, name, files, *built, io);
    // What was copied, should a file have changed since it was listed.
    Sealed size{.files = std::ssize(files), .written = true};
    for (const auto& [path, sum] : sums) {
        const auto copied = built->open(path);
        if (copied == nullptr) throw not_found(fmt::format("{}: gone as soon as it was copied", path));
        size.bytes += copied->size();
    }
    write_tags(*built, sums, size);
    built->sync();
    building.require_held();
    parent->move(unfinished, place.filename().string());
    directory.release();
    parent->sync();
    return size;
}

}  // namespace tessera
