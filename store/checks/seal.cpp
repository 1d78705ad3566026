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
#include "parity_archive.h"
#include "parity_seal.h"
#include "replace_directory.h"
#include "resize.h"
#include "sha256.h"
#include "sums.h"

namespace tessera {

static_assert(seal_key == seal_sums_key);

namespace {

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

SealState seal_state(const KeyValueStore& store, std::string_view prefix, const IoOptions& io) {
    const std::optional<FileSums> manifest = sealed_sums(store, prefix);
    if (!manifest) return {};
    SealState state;
    state.present = true;
    const std::vector<SummedFile> files = files_below(store, prefix);
    std::vector<SummedFile> added = files;
    std::erase_if(added, [&](const SummedFile& file) { return manifest->contains(file.path); });
    if (!added.empty()) leave_out_stale(store, prefix, added);
    for (SummedFile& file : added) state.added.push_back(std::move(file.path));
    std::vector<SummedFile> sealed;
    for (const auto& [path, sum] : *manifest) {
        const auto there = std::ranges::lower_bound(files, path, {}, &SummedFile::path);
        if (there != files.end() && there->path == path) {
            sealed.push_back(*there);
        } else {
            state.missing.push_back(path);
        }
    }
    std::vector<char> same(sealed.size());  // not vector<bool>: threads write into it
    for_each_file(sealed, io, "checking the seal", [&](const SummedFile& file, std::size_t i) {
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

namespace {

/// Throws already_exists where the files are not as they were sealed. Whether they are.
bool is_sealed(const KeyValueStore& store, std::string_view prefix, const IoOptions& io) {
    const SealState state = seal_state(store, prefix, io);
    if (state.intact()) return true;
    if (!state.present) return false;
    throw already_exists(
        fmt::format("{}: sealed before, and since then changed, lost or added: {}; if that is as it should be, "
                    "--overwrite seals it anew",
                    join_key(store.name(), prefix), names_text(state)));
}

/// Whether all parity is there and whole.
bool is_whole(const ParityArchive& archive, const IoOptions& io) {
    if (!archive.roots_good() || !archive.manifest_good()) return false;
    for (std::size_t i = 0; i < archive.segments(); ++i) {
        const auto state = archive.state(i, io);
        if (!state || !state->whole()) return false;
    }
    return true;
}

/// What is there already; nothing also where it cannot be used.
std::optional<ParityArchive> parity_there(const KeyValueStore& store, std::string_view prefix) {
    try {
        return ParityArchive::open(store, prefix);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return std::nullopt;
    }
}

}  // namespace

Sealed seal(KeyValueStore& store, std::string_view prefix, bool overwrite, const IoOptions& io) {
    return seal(store, prefix, {.overwrite = overwrite, .io = io});
}

Sealed seal(KeyValueStore& store, std::string_view prefix, const SealOptions& options) {
    const LockedNodes locked = lock_settled_nodes(store, prefix);
    std::vector<SummedFile> files = files_below(store, prefix);
    leave_out_stale(store, prefix, files);
    if (files.empty()) throw not_found(fmt::format("{}: nothing to seal", join_key(store.name(), prefix)));
    Sealed result{.files = std::ssize(files), .bytes = bytes_of(files)};
    const std::optional<ParityArchive> archive = parity_there(store, prefix);
    std::optional<Redundancy> parity = options.parity;
    if (!parity && archive && !options.drop_parity) parity = archive->root().redundancy;
    if (!options.overwrite && is_sealed(store, prefix, options.io)) {
        const bool same = !parity || (archive && archive->root().redundancy == *parity);
        if (same && !options.drop_parity && (!archive || is_whole(*archive, options.io))) return result;
    }
    if (parity) {
        result.parity_bytes = seal_with_parity(store, prefix, files, *parity, options.io);
    } else {
        const std::string manifest = manifest_of(sums_of(store, prefix, files, options.io));
        store.put(join_key(prefix, seal_key), std::as_bytes(std::span(manifest)));
        store.sync();
        drop_parity(store, prefix);
    }
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
                  const std::vector<SummedFile>& files, KeyValueStore& bag, const IoOptions& io) {
    Sums sums(files.size());
    const std::string folder = fmt::format("data/{}", name);
    for_each_file(files, io, "copying", [&](const SummedFile& file, std::size_t i) {
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
    std::vector<SummedFile> files = files_below(store, prefix);
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
