// Adding a version to an OCFL object.
//
// A version changes three places of an object: its new folder, the inventory at the root, and the digest of that. No
// order of single steps keeps the object valid in between. So the next state is built as a whole, with hard links to
// the content that stays, and takes the old one's place in one step.
#include <tessera/seal.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "copy_bytes.h"
#include "copy_source.h"
#include "directories.h"
#include "file_list.h"
#include "keys.h"
#include "ocfl_object.h"
#include "replace_directory.h"
#include "resize.h"
#include "sums.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    std::array<char, 32> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &date)};
}

void put_text(KeyValueStore& store, std::string_view key, std::string_view text) {
    store.put(key, std::as_bytes(std::span(text)));
}

/// The files of a new storage root that say what it is.
void put_root(KeyValueStore& root) {
    put_text(root, "0=ocfl_1.1", "ocfl_1.1\n");
    put_text(root, "ocfl_layout.json",
             "{\n  \"extension\": \"0003-hash-and-id-n-tuple-storage-layout\",\n  \"description\": \"Hashed Truncated "
             "N-tuple Trees with Object ID Encapsulating Directory for OCFL Storage Hierarchies\"\n}\n");
    put_text(root, "extensions/0003-hash-and-id-n-tuple-storage-layout/config.json",
             "{\n  \"extensionName\": \"0003-hash-and-id-n-tuple-storage-layout\",\n  \"digestAlgorithm\": "
             "\"sha256\",\n  \"tupleSize\": 3,\n  \"numberOfTuples\": 3\n}\n");
}

/// The next state of one object.
class NextVersion {
public:
    NextVersion(const PlaceRef& place, const FileList& files, const OcflOptions& options)
        : place_(place), files_(files), options_(options) {}

    /// Computes the digests. `spec`: that of the storage root. Returns false if nothing has changed.
    bool plan(std::optional<OcflInventory> before, const std::string& id, const std::string& spec,
              OcflVersionAdded& added) {
        if (before) inventory_ = std::move(*before);
        inventory_.id = id;
        constexpr std::uint64_t file_bytes = 512;  // of memory, for a path and its digest, twice
        memory_ = MemoryHold(files_.size() * file_bytes);
        OcflVersion version;
        for_each_file<std::string>(
            files_, options_.io, "comparing with the object",
            [&](const ListedFile& file, std::string& digest) {
                digest = digest_text(*opened(file.path), inventory_.hash());
            },
            [&](const ListedFile& file, const std::string& digest) { version.state.emplace(file.path, digest); });
        const auto last = inventory_.versions.find(inventory_.head);
        added.version = inventory_.head;
        if (last != inventory_.versions.end() && last->second.state == version.state) return false;
        version.created = now_text();
        version.message = options_.message.empty() ? "Sealed by Tessera" : options_.message;
        version.user = options_.user.empty() ? "unknown" : options_.user;
        version.address = options_.address;
        // Neither later than the root's, nor earlier than that of the versions before.
        inventory_.spec = last == inventory_.versions.end() ? spec : std::max(inventory_.spec, spec);
        inventory_.head = added.version = next_ocfl_version(inventory_.head);
        choose_new(version);
        inventory_.versions.emplace(inventory_.head, std::move(version));
        return true;
    }

    [[nodiscard]] const OcflInventory& inventory() const { return inventory_; }

    /// Writes the new version, and what is at the object's root, to `object` below `store`.
    void write(KeyValueStore& store, const std::string& object, OcflVersionAdded& added) {
        for_each_file<std::uint64_t>(
            new_, options_.io, "copying",
            [&](const ListedFile& file, std::uint64_t& bytes) { bytes = copy(store, object, file.path); },
            [&](const ListedFile& /*file*/, std::uint64_t bytes) {
                ++added.stored;
                added.bytes += bytes;
            });
        const std::string declaration = "ocfl_object_" + inventory_.spec;
        put_text(store, join_key(object, "0=" + declaration), declaration + "\n");
        const std::string text = ocfl_inventory_text(inventory_);
        const std::string digest = digest_text(text, inventory_.hash());
        for (const std::string& folder : {object, join_key(object, inventory_.head)}) {
            const std::string key = join_key(folder, ocfl_inventory_name);
            put_text(store, key, text);
            put_text(store, fmt::format("{}.{}", key, inventory_.algorithm),
                     fmt::format("{} {}\n", digest, ocfl_inventory_name));
        }
    }

private:
    [[nodiscard]] std::unique_ptr<ByteSource> opened(const std::string& path) const {
        auto source = place_.store.open(place_.key(path));
        if (source == nullptr) throw not_found("{}: gone while it was copied", place_.name_of(path));
        return source;
    }

    [[nodiscard]] std::string content_path(const std::string& path) const {
        return fmt::format("{}/{}/{}", inventory_.head, inventory_.content, path);
    }

    /// Notes the files whose content the object does not have yet.
    void choose_new(const OcflVersion& version) {
        std::set<std::string> known;
        for (const auto& [path, digest] : inventory_.files) known.insert(digest);
        FileList::Reader reader(files_);
        while (const ListedFile* const file = reader.next()) {
            const std::string& digest = version.state.at(file->path);
            if (!known.insert(digest).second) continue;
            new_.append(*file);
            inventory_.files.emplace(content_path(file->path), digest);
        }
    }

    std::uint64_t copy(KeyValueStore& store, const std::string& object, const std::string& path) const {
        const auto source = opened(path);
        const std::string content = content_path(path);
        const std::string key = join_key(object, content);
        copy_bytes(*source, store, key);
        // Writers that take no locks may have changed it since.
        const auto copied = store.open(key);
        if (copied == nullptr || digest_text(*copied, inventory_.hash()) != inventory_.files.at(content)) {
            throw io_error("changed while it was copied:", place_.name_of(path), 0);
        }
        return copied->size();
    }

    const PlaceRef& place_;
    const FileList& files_;
    const OcflOptions& options_;
    MemoryHold memory_;
    OcflInventory inventory_;
    FileList new_{spool_folder(place_.store)};
};

/// Nothing built beside a mount point can be moved into it.
void require_movable(const fs::path& root) {
    struct stat inside {};
    struct stat beside {};
    if (::stat(root.c_str(), &inside) != 0 || ::stat(root.parent_path().c_str(), &beside) != 0) return;
    if (inside.st_dev == beside.st_dev) return;
    throw unsupported(
        "{}: is a mount point: versions are built beside a storage root, in the same file system; choose a folder "
        "below it",
        root.string());
}

/// Makes hard links in `to` to everything in the object `from` that the next state keeps. Throws corrupt for what an
/// object does not have, also for versions other than `versions`, of which `head` is to be written.
void link_object(const fs::path& from, const fs::path& to, const std::map<std::string, OcflVersion>& versions,
                 const std::string& head) {
    for (fs::recursive_directory_iterator at(from), end; at != end; ++at) {
        const fs::path below = at->path().lexically_relative(from);
        const std::string& name = below.native();
        if (at->is_symlink()) throw corrupt("{}: a link, which an OCFL object has not", at->path().string());
        if (at.depth() == 0 && ocfl_version_number(name) > 0 && (name == head || !versions.contains(name))) {
            throw corrupt("{}: a version that the inventory does not have; move it away, and try again",
                          at->path().string());
        }
        if (at->is_directory()) {
            fs::create_directory(to / below);
        } else if (!name.starts_with(ocfl_object_mark) && !name.starts_with(ocfl_inventory_name)) {
            std::error_code error;
            fs::create_hard_link(at->path(), to / below, error);
            if (error) fs::copy_file(at->path(), to / below);
        }
        require_not_stopped();
    }
}

/// Builds in `directory` what is to be at `place`, and moves it there.
class Building {
public:
    Building(const fs::path& root, const OcflOptions& options)
        : root_(root),
          options_(options),
          directory_(root.parent_path() / hidden_name(root, "new"), options.store.durability) {}

    /// A new object, with the folders above it that are missing, and its storage root.
    void add(NextVersion& next, const fs::path& folder, bool with_root, OcflVersionAdded& added) {
        fs::path there = with_root ? root_.parent_path() : root_;
        fs::path below = with_root ? root_.filename() / folder : folder;
        // A root that is an empty folder gives way to the new one.
        while (!with_root && below.has_parent_path() && fs::is_directory(status_of(there / *below.begin()))) {
            there /= *below.begin();
            below = below.lexically_relative(*below.begin());
        }
        const auto built = store();
        if (with_root) put_root(*directory_store(directory_.path() / root_.filename(), options_.store));
        next.write(*built, below.string(), added);
        built->sync();
        move(directory_.path() / *below.begin(), there / *below.begin());
    }

    void replace(NextVersion& next, const fs::path& object, OcflVersionAdded& added) {
        const fs::path built = directory_.path() / "object";
        fs::create_directory(built);
        try {
            link_object(object, built, next.inventory().versions, next.inventory().head);
        } catch (const fs::filesystem_error& e) {
            throw io_error("cannot link or copy what is in", object.string(), e.code().value());
        }
        const auto files = store();
        next.write(*files, "object", added);
        files->sync();
        if (options_.store.durability != Durability::none) sync_all();
        exchange_directories(built, object);
        directory_store(object.parent_path(), options_.store)->sync();
    }

private:
    [[nodiscard]] std::shared_ptr<KeyValueStore> store() const {
        return directory_store(directory_.path(), options_.store);
    }
    /// The links, too, are on the disk before the object that has the same files is given up.
    void sync_all() const {
        const Descriptor folder(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder || !os::sync_file_system(folder.get()))
            throw io_error("cannot sync", directory_.path().string(), errno);
    }
    void move(const fs::path& from, const fs::path& to) const {
        std::error_code error;
        fs::rename(from, to, error);
        if (error) throw io_error("cannot make", to.string(), error.value());
        directory_store(to.parent_path(), options_.store)->sync();
    }

    const fs::path& root_;
    const OcflOptions& options_;
    BuiltDirectory directory_;
};

/// Plans and builds the version, and puts it in place unless nothing has changed.
void add_version(const PlaceRef& at, const fs::path& place, const std::string& id, const FileList& files,
                 const OcflOptions& options, const DestinationLock& building, OcflVersionAdded& added) {
    const bool is_new = !fs::exists(status_of(place)) || fs::is_empty(place);
    const auto folder = is_new ? std::nullopt : find_ocfl_object(place, id);
    std::optional<OcflInventory> before;
    if (folder) before = read_ocfl_inventory(*directory_store(place / *folder, {.read_only = true}));
    NextVersion next(at, files, options);
    added.folder = place / (folder ? *folder : ocfl_folder(place, id));
    if (!next.plan(std::move(before), id, is_new ? "1.1" : ocfl_root_spec(place), added)) return;
    added.written = true;
    Building built(place, options);
    building.require_held();
    if (folder) {
        built.replace(next, added.folder, added);
    } else {
        built.add(next, added.folder.lexically_relative(place), is_new, added);
    }
}

}  // namespace

OcflVersionAdded add_ocfl_version(const PlaceRef& at, const fs::path& root, const std::string& id,
                                  const OcflOptions& options) {
    require_local(root, "an OCFL storage root");
    if (id.empty()) throw invalid_argument("an OCFL object needs an identifier, such as urn:example:grid");
    const fs::path place = place_for_copy(root, at);
    require_movable(place);
    const DestinationLock building(place, options.store);
    const LockedNodes locked = lock_to_copy(at);
    FileList files = files_below(at);
    OcflVersionAdded added;
    added.outside = leave_out_stale(at, files);
    if (files.empty()) throw not_found("{}: nothing to seal", at.name());
    added.files = static_cast<std::int64_t>(files.size());
    add_version(at, place, id, files, options, building, added);
    return added;
}

}  // namespace tessera
