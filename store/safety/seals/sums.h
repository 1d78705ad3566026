// SHA-256 sums of files below a prefix, in sha256sum's format, for seals and for snapshots that record sums. Private to
// the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "file_list.h"
#include "seal_mark.h"
#include "sha256.h"

namespace tessera {

/// Loads the list at `key`, with the sums, sorted by path; nullopt if there is none. Throws corrupt for an invalid
/// list.
[[nodiscard]] std::optional<FileList> load_sums(const ReadableStore& store, const std::string& key);
/// Throws corrupt, naming the first such line, if a list is none. Reads no more than that.
void require_sums(const ByteSource& list);
/// Reads as many bytes as `out` has from twice as many hexadecimal digits; false if they are none.
[[nodiscard]] bool parse_hex(std::string_view digits, std::span<unsigned char> out);
/// The sum in the first 64 characters, of which there are as many; nullopt if they are none.
[[nodiscard]] std::optional<Sha256> parse_sum(std::string_view text);
/// The present sum of one file; nullopt if there is none.
[[nodiscard]] std::optional<Sha256> sum_of(const ReadableStore& store, const std::string& key);
/// Whether anything has the name, even if it cannot be opened.
[[nodiscard]] bool is_there(const ReadableStore& store, const std::string& key);
enum class Covered : std::uint8_t {
    by_seal,  ///< without Tessera's own files and empty lock files
    all,
};
/// Everything that a seal covers, or all files, with the sizes, sorted by path.
[[nodiscard]] FileList files_below(const PlaceView& place, Covered covered = Covered::by_seal);
/// Removes chunks outside their arrays from `files`: no array shows them, and `repair` sets them aside. Returns their
/// number.
std::int64_t leave_out_stale(const PlaceView& place, FileList& files);

/// The files that still exist, with their sums.
[[nodiscard]] FileList sums_of(const PlaceView& place, const FileList& files, const IoOptions& io);

/// Gives the next file and its sum; false at the end.
using NextSum = std::function<bool(ListedFile& file)>;
[[nodiscard]] NextSum each_of(const FileList& sums);
/// Calls out(bytes) for the text of a manifest, piece by piece.
void write_manifest(const NextSum& next, const std::function<void(ByteSpan)>& out);
/// Puts the manifest at `key`.
void put_manifest(KeyValueStore& store, const std::string& key, const NextSum& next);
[[nodiscard]] Sha256 manifest_sum(const NextSum& next);

}  // namespace tessera
