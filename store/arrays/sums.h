// SHA-256 sums of files below a prefix, in sha256sum's format, for seals and for snapshots that record sums. Private to
// the store module.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "seal_mark.h"
#include "sha256.h"

namespace tessera {

/// Sums by path below the prefix.
using FileSums = std::map<std::string, Sha256, std::less<>>;

/// Loads the list at `key`; nullopt if there is none. Throws corrupt for an invalid list.
[[nodiscard]] std::optional<FileSums> load_sums(const KeyValueStore& store, const std::string& key);
/// The present sum of one file; nullopt if there is none.
[[nodiscard]] std::optional<Sha256> sum_of(const KeyValueStore& store, const std::string& key);
/// A file below the sealed root.
struct SummedFile {
    std::string path;
    std::uint64_t size = 0;
};
/// Everything that a seal covers, sorted by path.
[[nodiscard]] std::vector<SummedFile> files_below(const KeyValueStore& store, std::string_view prefix);
/// Removes chunks outside their arrays from `files`: no array shows them, and `repair` sets them aside.
void leave_out_stale(const KeyValueStore& store, std::string_view prefix, std::vector<SummedFile>& files);
[[nodiscard]] std::uint64_t bytes_of(const std::vector<SummedFile>& files);

/// Calls each(file, its index) in parallel, with progress.
template <class Each>
void for_each_file(const std::vector<SummedFile>& files, const IoOptions& io, std::string_view what, const Each& each) {
    if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(bytes_of(files)), what);
    parallel_for(std::ssize(files), io, [&](std::int64_t n) {
        const auto i = static_cast<std::size_t>(n);
        each(files[i], i);
        if (io.progress != nullptr) io.progress->advance(static_cast<std::int64_t>(files[i].size));
    });
}

/// Sums of the files that still exist, sorted by path.
using Sums = std::vector<std::pair<std::string, Sha256>>;
[[nodiscard]] Sums sums_of(const KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
                           const IoOptions& io);
[[nodiscard]] std::string manifest_of(const Sums& sums);

/// Writes the sums of all files that a seal of `prefix` covers to `key`.
void save_sums(KeyValueStore& store, std::string_view prefix, const std::string& key, const IoOptions& io);

}  // namespace tessera
