// The parity of one seal as it is on the disk: roots, indices, which parity blocks are good. Private to the store
// module.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "parity_index.h"
#include "sums.h"

namespace tessera {

/// A segment, and which of its parity is as it was written.
struct SegmentState {
    NamedSegment named;
    std::vector<char> good;        ///< of each parity block, row after row
    std::vector<char> whole_file;  ///< of each row: its index is whole, too
    [[nodiscard]] bool whole() const;
    [[nodiscard]] std::int64_t bad_blocks() const;
};

/// Whether a first sealing with parity was killed, or is at work, before it wrote a root.
[[nodiscard]] bool is_first_unfinished(const PlaceView& place);
/// The parity files that a root names, itself among them, below what is sealed.
[[nodiscard]] std::set<std::string> named_files(const ParityRoot& root);

/// Thread rule: const members may be called from several threads at once. The store outlives it.
class ParityArchive {
public:
    /// Nothing where there is no parity. Throws corrupt where there is some, and neither a root nor an index of it can
    /// be used.
    [[nodiscard]] static std::optional<ParityArchive> open(const PlaceView& place);

    [[nodiscard]] const ParityRoot& root() const { return root_; }
    /// Whether each copy of the root is there and whole, and the same as the others.
    [[nodiscard]] bool root_good(int copy) const { return roots_good_[static_cast<std::size_t>(copy)] != 0; }
    [[nodiscard]] bool roots_good() const;
    [[nodiscard]] std::size_t segments() const { return root_.segments.size(); }
    /// From any of its parity files; nothing where none has it whole.
    [[nodiscard]] std::optional<NamedSegment> segment(std::size_t number) const;
    /// The same, with every parity block compared with its CRC.
    [[nodiscard]] std::optional<SegmentState> state(std::size_t number, const IoOptions& io) const;

    /// The sealed files, by all readable indices; `complete` says whether these are all. With `others`, also what only
    /// these name.
    [[nodiscard]] FileList sums(bool& complete, const FileList* others = nullptr) const;
    /// Whether the manifest is the one that the root names.
    [[nodiscard]] bool manifest_good() const;
    /// Whether there are files of parity that the root does not name, or no more: a sealing was killed, or is at work.
    [[nodiscard]] bool is_unfinished() const;

    [[nodiscard]] const ReadableStore& store() const { return *store_; }
    [[nodiscard]] const std::string& prefix() const { return prefix_; }

private:
    explicit ParityArchive(const PlaceView& place) : store_(&place.store), prefix_(place.prefix) {}
    void find_segments(const Listing& listing);

    const ReadableStore* store_;
    std::string prefix_;
    ParityRoot root_;
    std::vector<char> roots_good_ = std::vector<char>(parity_roots);
};

/// The files of a seal: by the manifest, or by the indices if parity contradicts the manifest. Nothing without a seal.
[[nodiscard]] std::optional<FileList> sealed_sums(const PlaceView& place);

/// Directories that stand in the places of files of a seal, with parity or without, below what is sealed. Neither a
/// file nor a link can take such a place.
[[nodiscard]] std::vector<std::string> directories_in_places(const PlaceView& place);

}  // namespace tessera
