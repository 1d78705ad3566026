#include "lost_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/dialect.h>
#include <tessera/place.h>
#include <tessera/shape.h>

#include <algorithm>
#include <vector>

#include "keys.h"

namespace tessera {

namespace {

/// Whether a name is that of a chunk, or of a folder of chunks, in any format but zmeta: "3", "3.0", "c.3.0". Stricter
/// than looks_like_chunk(), because such a name makes a plain folder a lost array.
bool is_chunk_name(std::string_view name) {
    if (name.starts_with("c.")) name.remove_prefix(2);
    bool digit = false;
    for (const char c : name) {
        if (c == '.' ? !digit : c < '0' || c > '9') return false;
        digit = c != '.';
    }
    return digit;
}

/// The folder of a dialect's chunks; empty if they lie in the array's own.
std::string chunk_folder(const Dialect& dialect) {
    std::string folder = dialect.default_keys().prefix;
    if (folder.ends_with('/')) folder.pop_back();
    return folder;
}

/// Whether a folder of this name, with chunks in it, may belong to a lost array: "c".
bool is_chunk_folder(std::string_view name) {
    return std::ranges::any_of(dialect_table(),
                               [&](const Dialect* d) { return !d->own_folder && chunk_folder(*d) == name; });
}

/// Whether only folders of chunks have this name.
bool is_own_folder(std::string_view name) {
    return std::ranges::any_of(dialect_table(),
                               [&](const Dialect* d) { return d->own_folder && chunk_folder(*d) == name; });
}

/// The metadata documents of the formats that have no such folder.
std::vector<std::string_view> lost_metadata() {
    std::vector<std::string_view> keys;
    for (const Dialect* dialect : dialect_table()) {
        if (!dialect->own_folder) keys.push_back(dialect->metadata_key);
    }
    return keys;
}

}  // namespace

bool LostArrays::is_part_name(std::string_view name) {
    return is_chunk_name(name) || is_chunk_folder(name);
}

bool LostArrays::check(const std::string& path, const Listing& listing) {
    check_documents(path, listing);
    if (is_own_folder(path.substr(path.rfind('/') + 1))) return false;  // reported for the folder that contains it
    const std::string chunk = chunk_named(path);
    if (chunk.empty()) return false;
    run_.add(
        {.node = path,
         .key = join_key(path, chunk),
         .text = fmt::format("is named like a chunk, but the array's metadata ({}) are missing: no array opens here",
                             fmt::join(lost_metadata(), ", "))});
    return true;
}

void LostArrays::check_documents(const std::string& path, const Listing& listing) {
    for (const Dialect* dialect : dialect_table()) {
        if (dialect->common_key) continue;
        for (const std::string_view document : dialect->documents) {
            if (document == dialect->metadata_key || !holds(listing.keys, document)) continue;
            run_.add({.node = path,
                      .key = join_key(path, document),
                      .text = fmt::format("{} is there, but {} is missing: neither an array nor a group opens here",
                                          document, dialect->metadata_key)});
        }
        if (dialect->own_folder && holds(listing.prefixes, chunk_folder(*dialect))) {
            run_.add({.node = path,
                      .key = join_key(path, dialect->metadata_key),
                      .text = fmt::format("{}/ with chunks is there, but {} is missing: no array opens here",
                                          chunk_folder(*dialect), dialect->metadata_key)});
        }
    }
}

std::string LostArrays::chunk_named(const std::string& path) {
    std::string folder;
    for (int depth = 0; depth <= max_rank; ++depth) {
        const std::string prefix = run_.place(join_key(path, folder));
        if (depth > 0 && (deeper_looks_ == 0 || probe_node({*run_.store, prefix}))) return "";
        if (depth > 0) --deeper_looks_;
        const Listing listing = run_.store->list(prefix);
        const auto key = std::ranges::find_if(listing.keys, [](const auto& name) { return is_chunk_name(name); });
        if (key != listing.keys.end()) return join_key(folder, *key);
        const auto next = std::ranges::find_if(listing.prefixes, [&](const std::string& name) {
            return is_chunk_name(name) || (depth == 0 && is_chunk_folder(name));
        });
        if (next == listing.prefixes.end()) return "";
        folder = join_key(folder, *next);
    }
    return "";
}

}  // namespace tessera
