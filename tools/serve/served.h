// What a server serves: roots, and the nodes below them by path.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <tessera/place.h>
#include <tessera/stored_values.h>

#include "http.h"

namespace tessera::serve {

enum class ServedKind : std::uint8_t {
    array,  ///< of chunks, in a store
    group,  ///< with metadata, or a plain folder
    file,   ///< an array file of one array
    files,  ///< an array file of several arrays, or a group in it: a group of its members
    member  ///< an array in such a file
};
/// "array", "group", "array file", "group", "member"
[[nodiscard]] std::string_view kind_name(ServedKind kind);

/// An open node. Once its data has changed, another one replaces it. Thread rule: any thread.
struct ServedNode {
    std::string path;  ///< as in URLs: below all roots, parts joined by '/'
    std::string name;  ///< for messages: the file's path
    ServedKind kind = ServedKind::group;
    std::string format;                            ///< "v3", "npy"; "" for a plain folder
    std::optional<Place> place = {};               ///< of arrays of chunks and groups in a store
    std::optional<Array> array = {};               ///< of kind array
    std::optional<StoredValues> values = {};       ///< of kind array
    std::shared_ptr<const ArraySource> file = {};  ///< of kinds file and member
    std::optional<ArrayPath> file_path = {};       ///< of kinds file, files and member
    const ArrayFileFormat* file_format = nullptr;  ///< likewise
    std::string inner = {};                        ///< of kind files: the group in the file; "" is the file itself
    /// Changes with the array's metadata and attributes, or with the file. Chunks of an array change without it.
    std::string version = {};
    std::shared_ptr<class ZarrArrays> zarr = {};  ///< of arrays: what they look like in Zarr (zarr_array.h)

    [[nodiscard]] bool is_array() const { return array || file; }
    /// The elements. Throws invalid_argument if this is no array.
    [[nodiscard]] const ArraySource& source() const;
    /// The stamp of the value that stores a chunk (in the grid of `source().info().chunks`), or that of the file;
    /// nullopt if the chunk is not stored. Elements that were read between two equal stamps are of one version.
    [[nodiscard]] std::optional<ValueStamp> stamp_of(const Index& chunk) const;
    /// Whether stamp_of() tells when chunks change: not if those of the array differ in length.
    [[nodiscard]] bool stamps_chunks() const;
    /// Of a group: its attributes, and which of its dimensions grow, without a name; nothing of plain folders and
    /// arrays.
    [[nodiscard]] ArrayFileGroup group() const;
};
using NodePointer = std::shared_ptr<const ServedNode>;

/// A child of a group, as listings have it.
struct ServedChild {
    std::string name;
    ServedKind kind = ServedKind::group;
    std::string format = {};
};

struct ServedOptions {
    IoOptions io = {};  ///< threads of one request
    std::uint64_t max_memory = 256ULL << 20U;
    bool follow_links = false;  ///< whether links may lead out of a root
};

/// "size-time-id-change" for entity tags. The time of the change tells a file that was rewritten in place with its old
/// time.
[[nodiscard]] std::string stamp_text(const ValueStamp& stamp);

/// Thread rule: any thread calls any member.
class Served {
public:
    /// Each root appears below its own name, made unique, if there are several. Throws not_found and the like for a
    /// path that cannot be served.
    Served(const std::vector<std::string>& paths, const ServedOptions& options);
    ~Served();
    Served(const Served&) = delete;
    Served& operator=(const Served&) = delete;

    /// The node at a path, as in URLs ("survey.zarr/depth", "data.npz/elevation"; "" is the root). Opens it, or takes
    /// one that is open if it has not changed. Throws not_found, corrupt, unsupported.
    [[nodiscard]] NodePointer node(std::string_view path);
    /// The children of a group, sorted by name; none of an array.
    [[nodiscard]] std::vector<ServedChild> children(const ServedNode& node);

    /// A message without the folders that the roots are in, which are nobody's business: it names what lies below them.
    [[nodiscard]] std::string shown_text(std::string_view message) const;

    /// For the work of one request: with its stop.
    [[nodiscard]] IoOptions io(const HttpRequest& request) const;
    [[nodiscard]] const ServedOptions& options() const { return options_; }
    /// Of all requests together. Each runs within it; a cache takes part of it (SpareMemory).
    [[nodiscard]] const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }
    /// What the routes of tiles keep between requests; made at its first use (tiles.cpp).
    [[nodiscard]] class TileShelf& shelf();

private:
    [[nodiscard]] NodePointer cached(const std::string& path);
    void keep(const NodePointer& node);

    ServedOptions options_;
    std::shared_ptr<MemoryAccount> memory_;
    MemoryHold small_objects_;
    std::unique_ptr<struct ServedState> state_;
    std::once_flag shelf_made_;
    std::shared_ptr<class TileShelf> shelf_;
};

}  // namespace tessera::serve
