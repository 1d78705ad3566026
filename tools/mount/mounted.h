// What a mounted folder shows: files and folders by their paths, without anything of the system that shows them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <served.h>
#include <tessera/byte_io.h>
#include <tessera/laid_out_file.h>
#include <tessera/shape.h>

#include "block_cache.h"
#include "entry.h"
#include "for_a_moment.h"
#include "zarr_folder.h"

namespace tessera::mount {

struct MountOptions {
    IoOptions io = {};  ///< threads of one read
    std::uint64_t max_memory = 256ULL << 20U;
    bool follow_links = false;  ///< whether links may lead out of the path
    bool write = false;         ///< whether the elements of .npy files can be changed
    Order order = Order::C;     ///< of the elements in .npy files
    std::string zarr = "v3";    ///< the format below .zarr: "v2" or "v3"
};

/// An open file. Thread rule: any thread.
class OpenFile {
public:
    virtual ~OpenFile() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    [[nodiscard]] virtual bool writable() const { return false; }
    /// Reads as many bytes as there are from `offset` on, at most out.size(). Returns how many.
    virtual std::size_t read(std::uint64_t offset, MutableByteSpan out) = 0;
    /// Throws invalid_argument where nothing can be written.
    virtual void write(std::uint64_t offset, ByteSpan bytes) = 0;
    /// Stores what was written, durably.
    virtual void flush() = 0;
};

struct WrittenArray;

/// Thread rule: any thread calls any member. Paths are those below the folder, without '/' in front: "" is itself.
class Mounted {
public:
    /// Throws not_found and the like for a path that cannot be shown.
    Mounted(const std::string& path, const MountOptions& options);
    ~Mounted();
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;

    /// nullopt if nothing is there. Reads no element.
    [[nodiscard]] std::optional<Entry> look(const std::string& path);
    /// Of a folder. Reads no element.
    [[nodiscard]] std::vector<Listed> list(const std::string& path);
    /// Throws not_found, and what opening the array throws; `to_write`: also if it cannot be written.
    [[nodiscard]] std::unique_ptr<OpenFile> open(const std::string& path, bool to_write = false);

    /// Remembers an error, which `.tessera-errors` then tells.
    void note_error(const std::string& path, std::string_view message);
    [[nodiscard]] const std::shared_ptr<MemoryAccount>& memory() const { return served_.memory(); }

private:
    enum class Kind : std::uint8_t { none, folder, npy, netcdf, zarr, readme, errors };
    /// A path, resolved.
    struct Target {
        Kind kind = Kind::none;
        std::string node;                ///< the path of the array or group
        std::vector<std::string> parts;  ///< of what lies below .zarr
    };
    struct Child {
        std::string name;  ///< as it is shown, without an extension
        std::string node;
        bool array = false;
    };
    using File = std::shared_ptr<const LaidOutFile>;

    [[nodiscard]] Target resolve(const std::string& path);
    /// The group at a path, or the one of a moment ago, because everything below it asks; nullopt if there is none.
    [[nodiscard]] std::optional<serve::NodePointer> folder_at(const std::string& path);
    /// The array or group of a folder that is shown as a name with this extension.
    [[nodiscard]] std::optional<std::string> node_shown_as(const std::string& name, std::string_view extension,
                                                           const std::string& folder);
    [[nodiscard]] Target named(const std::string& name, const std::string& folder, std::vector<std::string> below);
    [[nodiscard]] std::vector<Child> children(const std::string& node);
    [[nodiscard]] std::vector<Listed> shown_in(const std::string& node);
    [[nodiscard]] std::vector<Child> arrays_of(const std::string& node);
    [[nodiscard]] ZarrFolder zarr_at(const Target& target);
    [[nodiscard]] File made_of(const Target& target);
    /// The same, or the one of a moment ago.
    [[nodiscard]] File file_of(const Target& target);
    [[nodiscard]] File npy_of(const std::string& node);
    [[nodiscard]] File netcdf_of(const std::string& node);
    [[nodiscard]] bool can_write(const std::string& node);
    [[nodiscard]] std::shared_ptr<WrittenArray> written(const std::string& node);
    [[nodiscard]] std::string readme();
    void leave_out(const std::string& what, std::string_view why);

    MountOptions options_;
    serve::Served served_;
    BlockCache blocks_;
    bool is_array_ = false;  ///< whether the path leads to one array
    std::string base_;       ///< the name of what the path leads to
    std::mutex mutex_;
    ForAMoment<serve::NodePointer> folders_;
    ForAMoment<Target> named_;
    ForAMoment<File> made_;
    std::map<std::string, std::weak_ptr<WrittenArray>> written_;
    std::map<std::string, std::string> left_out_;
    std::string errors_;
};

}  // namespace tessera::mount
