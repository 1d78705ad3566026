// A store in a directory: a key is a path below the root, a value is a file.
//
// See file_writer.cpp for how a value is replaced and what a power failure leaves, and directory_tree.cpp for the root
// and links.
//
// Locks
// -----
// See array_locks.cpp. They are taken by writers only, so a directory that does not exist yet is made.
#include <dirent.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/file_source.h>
#include <tessera/key_value_store.h>
#include <tessera/store_kind.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "array_locks.h"
#include "beneath.h"
#include "copy_bytes.h"
#include "copy_folder.h"
#include "destination_lock_file.h"
#include "directories.h"
#include "directory_store.h"
#include "directory_tree.h"
#include "file_writer.h"
#include "kept_changes.h"
#include "keys.h"
#include "seal_mark.h"
#include "versions.h"

namespace tessera {

namespace {

class DirectoryStore;
/// The store as a directory_store(); nullptr if it is another.
const DirectoryStore* directory_in(const ReadableStore& store);
DirectoryStore* directory_in(KeyValueStore& store);

class DirectoryStore final : public KeyValueStore, public LocalFiles, private DirectoryTree {
public:
    DirectoryStore(const std::filesystem::path& root, const StoreOptions& options)
        : DirectoryTree(root.empty() ? "." : root.string(), options) {}

    [[nodiscard]] bool exists() const { return find_root() >= 0; }

    [[nodiscard]] bool has_lost_its_name() const {
        const int root = root_.load(std::memory_order_acquire);
        struct stat status {};
        return root >= 0 && ::fstat(root, &status) == 0 && tessera::folder_id(name_) != id_of(status);
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        Descriptor fd = open_value(key);
        struct stat status {};
        if (!fd || !is_value(fd.get(), key, status)) return nullptr;
        return std::make_unique<FileSource>(std::move(fd), static_cast<std::uint64_t>(status.st_size), path_of(key));
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        const Descriptor fd = open_value(key);
        if (!fd) return false;
        struct stat status {};
        // Reads into existing memory first; queries the file's size only if that is full. After a short read, lseek
        // tells where the file ends: it is the fastest such call.
        std::size_t have = 0;
        std::optional<std::uint64_t> size;
        out.reset(out.capacity());
        while (have != size) {
            if (have == out.size()) {
                if (!is_value(fd.get(), key, status)) return false;
                size = static_cast<std::uint64_t>(status.st_size);
                if (*size <= have) break;
                require_size(path_of(key), *size, limit);
                out.resize(static_cast<std::size_t>(*size));
            }
            const ssize_t n = ::pread(fd.get(), out.data() + have, out.size() - have, static_cast<off_t>(have));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EISDIR || errno == ESPIPE) && !is_value(fd.get(), key, status)) return false;
            if (n < 0) throw io_error("reading", path_of(key), errno);
            have += static_cast<std::size_t>(n);
            if (n == 0) break;
            if (!size) size = static_cast<std::uint64_t>(::lseek(fd.get(), 0, SEEK_END));
        }
        if (have > limit) require_size(path_of(key), have, limit);  // it fitted into existing memory
        out.resize(have);
        return true;
    }

    void put(std::string_view key, ByteSpan value) override {
        FileWriter file = writer(key);
        file.append(value);
        file.finish();
    }

    bool put_new(std::string_view key, ByteSpan value) override {
        if (contains(key)) return false;
        FileWriter file = writer(key);
        file.append(value);
        return file.finish_new();
    }

    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        return std::make_unique<FileWriter>(writer(key));
    }

    [[nodiscard]] std::unique_ptr<HeldValues> hold() override {
        if (!sync_.syncs_together(find_root())) return nullptr;
        return std::make_unique<HeldFiles>(
            root_, name_, sync_, [this](std::string_view key) { return writer(key); },
            [this](std::string_view key) {
                Spot place = spot(key, Make::no);
                return HeldFiles::Spot{std::move(place.folder), place.fd};
            },
            keeper_.load());
    }

    bool link(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
        require_key(key);
        require_key(other_key);
        require_writable("linking", key);
        const DirectoryStore* const from = directory_in(other);
        if (from == nullptr || !from->is_direct(other_key)) return false;
        const Spot source = from->spot(other_key, Make::no);
        struct stat status {};
        // A link's target is somebody else's file: read it, but make no hard link to it.
        if (!source.is_there() || ::fstatat(source.fd, source.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            return false;
        }
        const Spot target = spot(key, Make::yes);
        if (::linkat(source.fd, source.name.c_str(), target.fd, target.name.c_str(), 0) != 0) return false;
        sync_.placed(root_, key, target.fd, target.name.c_str());
        return true;
    }

    bool clone(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
        require_key(key);
        require_writable("copying", key);
        const DirectoryStore* const from = directory_in(other);
        if (from == nullptr) return false;
        const Descriptor source = from->open_value(other_key);
        if (!source) return false;
        FileWriter file = writer(key);
        if (!file.clone(source.get())) return false;
        file.share_like(source.get());  // as a hard link would
        file.finish();
        return true;
    }

    bool copy_new(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
        require_key(key);
        require_writable("copying", key);
        const DirectoryStore* const from = directory_in(other);
        if (from == nullptr) return false;
        const Descriptor source = from->open_value(other_key);
        struct stat status {};
        if (!source || !from->is_value(source.get(), other_key, status) || status.st_size == 0) return false;
        constexpr off_t block = 512;                                  // of st_blocks
        if (status.st_blocks < status.st_size / block) return false;  // holes, which a copy in the kernel may fill
        const auto made = new_file(key);
        if (!made) return false;
        try {
            if (!copy_in_kernel(source.get(), made->fd.get(), static_cast<std::uint64_t>(status.st_size), clones_)) {
                ::unlinkat(made->place.fd, made->place.name.c_str(), 0);
                return false;
            }
            if (sync_.syncs_values() && ::fsync(made->fd.get()) != 0)
                throw io_error("writing to the disk", "a file", errno);
        } catch (const Error& e) {
            ::unlinkat(made->place.fd, made->place.name.c_str(), 0);
            throw e.within(path_of(key));
        }
        sync_.placed(root_, key, made->place.fd, made->place.name.c_str());
        return true;
    }

    bool erase(std::string_view key) override {
        require_key(key);
        require_writable("removing", key);
        const Spot place = spot(key, Make::no);
        if (!place.is_there()) return false;
        if (drafts_) return erase_by_draft(place, key);
        if (ChangeKeeper* const keeper = keeper_) keeper->before(place.fd, place.name.c_str(), nullptr, key);
        if (::unlinkat(place.fd, place.name.c_str(), 0) == 0) {
            sync_.changed(root_, key);
            return true;
        }
        const int error = errno;
        struct stat status {};
        // For a directory POSIX says EPERM and Linux EISDIR.
        if (is_absent(error) ||
            (::fstatat(place.fd, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))) {
            return false;
        }
        throw io_error("removing", path_of(key), error);
    }

    std::unique_ptr<OwnValue> open_own(std::string_view key) {
        const Spot place = spot(key, Make::no);
        if (!place.is_there()) return nullptr;
        Descriptor file(
            open_at(place.fd, place.name.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!file && is_absent(errno)) return nullptr;
        return std::make_unique<OwnValue>(*this, key, std::move(file), options_.durability != Durability::none);
    }

    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable("removing", prefix);
        const int root = find_root();
        if (root < 0) return;
        folders_.clear();  // some may be removed now
        close_idle_locks();
        // Removals inside need no sync of their own: they vanish with the folder, or were intended anyway.
        if (prefix.empty()) {
            Descriptor all(open_at(root, ".", folder_flags));
            if (!all) throw io_error("listing", name_, errno);
            empty_beneath(std::move(all), name_);
            return;
        }
        const Spot place = spot(prefix, Make::no);
        struct stat status {};
        if (!place.is_there()) return;
        if (::fstatat(place.fd, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (is_absent(errno)) return;
            throw io_error("removing", path_of(prefix), errno);
        }
        // A link's target may belong to somebody else: remove only the link, as rm does.
        const bool link = S_ISLNK(status.st_mode) && (own_part(prefix) != prefix.npos || leads_to_folder(place));
        if (!link && !S_ISDIR(status.st_mode)) return;
        // Among Tessera's own may be the lock that is held just now.
        remove_beneath(place.fd, place.name.c_str(), path_of(prefix), own_part(prefix) == prefix.npos);
        sync_.changed(root, prefix);
    }

    void move(std::string_view from, std::string_view to) override {
        require_movable(name_, from, to);
        require_writable("moving", from);
        const Spot source = spot(from, Make::no);
        if (!source.is_there() || !leads_to_folder(source)) {
            throw not_found("moving {}: no such directory", path_of(from));
        }
        const Spot target = spot(to, Make::for_move);
        const bool moved = rename_new(source.fd, source.name.c_str(), target.fd, target.name.c_str()) ||
                           (errno == EXDEV &&
                            move_across(source.fd, source.name.c_str(), target.fd, target.name.c_str(), path_of(from)));
        if (moved) {
            sync_.changed(root_, from);
            sync_.changed(root_, to);
            folders_.clear();
            const std::lock_guard guard(locks_mutex_);
            locks_.clear();  // they belong to directories, which now have other prefixes
            return;
        }
        if (errno == EEXIST) {
            throw already_exists("moving {}: {} is there already", path_of(from), path_of(to));
        }
        throw io_error("moving", path_of(from), errno);
    }

    [[nodiscard]] bool is_link(std::string_view prefix) const override {
        require_prefix(prefix);
        const int root = find_root();
        struct stat status {};
        return root >= 0 && !prefix.empty() &&
               ::fstatat(root, std::string(prefix).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISLNK(status.st_mode);
    }

    [[nodiscard]] std::optional<FileId> folder_id(std::string_view prefix) const override {
        require_prefix(prefix);
        const int root = find_root();
        const std::string path(prefix.empty() ? "." : prefix);
        struct stat status {};
        if (root < 0 || ::fstatat(root, path.c_str(), &status, 0) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
        return id_of(status);
    }

    [[nodiscard]] std::string link_target(std::string_view prefix) const override {
        require_prefix(prefix);
        return target_of(prefix);
    }

    void require_direct(std::string_view key) const override {
        require_key(key);
        (void)spot(key, Make::no);
    }

    [[nodiscard]] bool leads_back(std::string_view prefix) const override {
        const int root = find_root();
        struct stat here {};
        if (root < 0 || prefix.empty() || ::fstatat(root, std::string(prefix).c_str(), &here, 0) != 0) return false;
        for (std::string above(prefix); !above.empty();) {
            const std::size_t slash = above.rfind('/');
            above.resize(slash == std::string::npos ? 0 : slash);
            struct stat there {};
            if (::fstatat(root, above.empty() ? "." : above.c_str(), &there, 0) == 0 && id_of(there) == id_of(here)) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        Listing listing;
        each_entry(prefix, [&](int directory, const dirent& entry) {
            const mode_t type = type_of(directory, entry, prefix);
            if (type == S_IFDIR) {
                listing.prefixes.emplace_back(entry.d_name);
                if (entry.d_type != DT_DIR && leads_on(directory, entry)) listing.links.emplace_back(entry.d_name);
            } else if (type != 0) {
                listing.keys.emplace_back(entry.d_name);
                if (type == S_IFLNK) listing.links.emplace_back(entry.d_name);
            }
        });
        for (auto* names : {&listing.keys, &listing.prefixes, &listing.links}) std::ranges::sort(*names);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder_of) const override {
        int folder = -1;
        const dirent* value = nullptr;
        const ValueSize size = [&]() -> std::uint64_t {
            struct stat status {};
            return stat_entry(folder, *value, prefix, status) ? static_cast<std::uint64_t>(status.st_size) : 0;
        };
        each_entry(prefix, [&](int directory, const dirent& entry) {
            const mode_t type = type_of(directory, entry, prefix);
            if (type == S_IFDIR && folder_of) {
                folder_of(entry.d_name, entry.d_type != DT_DIR && leads_on(directory, entry));
            }
            if (type == S_IFDIR || type == 0) return;
            folder = directory;
            value = &entry;
            each(entry.d_name, size);
        });
    }

    bool replace(std::string_view from, std::string_view to) override {
        require_key(from);
        require_key(to);
        require_writable("replacing", to);
        const Spot source = spot(from, Make::no);
        if (!source.is_there()) return false;
        Spot target = spot(to, Make::no);
        if (target.is_there()) permissions_.keep(source.fd, source.name.c_str(), target.fd, target.name.c_str());
        const auto rename = [&] {
            return ::renameat(source.fd, source.name.c_str(), target.fd, target.name.c_str()) == 0;
        };
        if (!target.is_there() || !rename()) {
            if (target.is_there() && errno == EXDEV) return replace_across(from, to);
            if (target.is_there() && errno != ENOENT) throw io_error("replacing", path_of(to), errno);
            if (::faccessat(source.fd, source.name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return false;
            folders_.clear();  // some may have been removed
            target = spot(to, Make::for_move);
            if (!rename()) {
                if (errno == EXDEV) return replace_across(from, to);
                throw io_error("replacing", path_of(to), errno);
            }
        }
        sync_.changed(root_, from);
        sync_.placed(root_, to, target.fd, target.name.c_str());
        return true;
    }

    Target prepare_replace(std::string_view key) override {
        require_key(key);
        require_writable("replacing", key);
        const Spot place = spot(key, Make::yes);
        const std::string folder = path_of(key.substr(0, key.rfind('/') + 1));
        if (::faccessat(place.fd, ".", W_OK | X_OK, AT_EACCESS) != 0) throw io_error("writing in", folder, errno);
        os::Facts there;
        const bool exists = facts_of(place.fd, place.name, there);
        const bool link = exists && S_ISLNK(there.mode);
        if (exists && !link && !S_ISREG(there.mode)) {
            throw io_error("replacing", path_of(key), S_ISDIR(there.mode) ? EISDIR : EEXIST);
        }
        os::Facts around;
        if (!exists || link) (void)facts_of(place.fd, ".", around);
        const os::Facts& seen = exists && !link ? there : around;
        if (seen.immutable) {
            throw Error(ErrorCode::io, fmt::format("replacing {}: it is immutable (lsattr shows it, chattr changes it)",
                                                   exists ? path_of(key) : folder));
        }
        return {.exists = exists && (!link || contains(key)), .crosses = mount_of(seen) != root_mount()};
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        struct stat status {};
        if (!stat_value(key, status)) return std::nullopt;
        const auto nanoseconds = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
        ValueStamp stamp{.size = static_cast<std::uint64_t>(status.st_size),
                         .modified = nanoseconds(status.st_mtim),
                         .id = status.st_ino,
                         .changed = nanoseconds(status.st_ctim)};
        if (!is_coarse(status.st_mtim) || keeps_nanoseconds(find_root(), status, !options_.read_only)) return stamp;
        if (const auto known = contents_.find(key, status)) return known;
        Descriptor fd = open_value(key);
        if (!fd || !is_value(fd.get(), key, status)) return std::nullopt;
        const FileSource value(std::move(fd), static_cast<std::uint64_t>(status.st_size), path_of(key));
        ValueStamp content = content_stamp(value);
        content.modified = stamp.modified;
        content.changed = stamp.changed;
        contents_.remember(key, status, content);
        return content;
    }

    [[nodiscard]] bool contains(std::string_view key) const override {
        struct stat status {};
        return stat_value(key, status);
    }

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        try {
            StoreLock lock = locks_of(prefix)->lock(slot, mode);
            // Folders that were opened before may have been replaced since.
            if (slot == 0) folders_.clear();
            return lock;
        } catch (const Error& e) {
            // The old directory of this name is gone; a new one may have taken its place.
            if (e.code() != ErrorCode::not_found || !is_directory(find_root(), std::string(prefix).c_str())) throw;
        }
        {
            const std::lock_guard guard(locks_mutex_);
            if (const auto dead = locks_.find(prefix); dead != locks_.end()) locks_.erase(dead);
        }
        folders_.clear();
        return locks_of(prefix)->lock(slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        auto lock = locks_of(prefix)->try_lock();
        folders_.clear();
        return lock;
    }

    [[nodiscard]] StoreLock lock_destination(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable("locking", prefix);
        if (!prefix.empty()) (void)spot(prefix, Make::no);  // its lock file lies in that folder
        auto lock = std::make_shared<DestinationLock>(path_of(prefix), options_);
        return StoreLock([lock = std::move(lock)] { lock->unlock(); });
    }

    void require_unsealed(std::string_view prefix) override {
        tessera::require_unsealed(find_root(), prefix, options_);
    }

    void sync() override {
        sync_.sync(find_root());
        forget();
    }
    void sync_later() override { sync_.later(find_root()); }
    /// For sync_together(): `done` are file systems that were synced already.
    void sync(std::set<std::uint64_t>& done) {
        sync_.sync(find_root(), done);
        forget();
    }

    /// For rest_together(). No other thread uses the store.
    void rest() {
        forget();
        permissions_.forget_model();
        locks_.clear();
        if (const int root = root_.exchange(-1); root >= 0) ::close(root);
    }

    [[nodiscard]] std::shared_ptr<const ChangeKeeper> keep_changes(std::string_view prefix, std::string what,
                                                                   bool keep) {
        require_prefix(prefix);
        const auto open = [this, folder = join_key(prefix, undo_folder)](bool make) {
            return own_folder(folder, make);
        };
        const auto give = [this, p = std::string(prefix)](int file) { permissions_.give_own(find_root(), p, file); };
        keeper_ = new ChangeKeeper(prefix, std::move(what), keep, open, give);
        return {keeper_.load(), [this](const ChangeKeeper* keeper) {
                    keeper_ = nullptr;
                    delete keeper;
                }};
    }

    void follow_mask() { permissions_.follow_mask(); }

    void draft_in(const std::string& drafts) {
        drafts_ = std::make_shared<const Descriptor>(own_folder(drafts, false));
        if (!*drafts_) throw io_error("opening the directory", path_of(drafts), errno);
    }

    void close_idle_locks() {
        const std::lock_guard guard(locks_mutex_);
        for (const auto& [array, locks] : locks_) locks->close_idle();
    }

    void share_like(const DirectoryStore& model) {
        if (const int root = model.find_root(); root >= 0)
            permissions_.share_like(model.permissions_, root, make_root());
    }

    /// For open_above().
    [[nodiscard]] std::unique_ptr<ByteSource> open_far_above(std::string_view prefix, std::uint32_t levels,
                                                             std::string_view key) const {
        require_prefix(prefix);
        const int root = find_root();
        std::string above(prefix.empty() ? "." : prefix);
        for (std::uint32_t n = 0; n < levels; ++n) above += "/..";
        const Descriptor folder(root < 0 ? -1 : open_at(root, above.c_str(), os::lookup | O_DIRECTORY));
        struct stat status {};
        const std::string own(key.substr(0, key.find('/')));
        if (!folder || ::fstatat(folder.get(), own.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            throw not_found("{}: no such folder", path_of(join_key(above, own)));
        }
        Descriptor fd(open_below(folder.get(), std::string(key), O_RDONLY | O_NONBLOCK | O_NOCTTY, true));
        if (!fd && !is_absent(errno)) throw io_error("opening", path_of(join_key(above, key)), errno);
        if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
        return std::make_unique<FileSource>(std::move(fd), static_cast<std::uint64_t>(status.st_size),
                                            path_of(join_key(above, key)));
    }

    [[nodiscard]] LocalFiles& local_files() override { return *this; }
    [[nodiscard]] const LocalFiles& local_files() const override { return *this; }
    [[nodiscard]] std::vector<std::string> temporaries(std::string_view prefix) const override {
        std::vector<std::string> names;
        each_name(prefix, true, [&](int, const dirent& entry) { names.emplace_back(entry.d_name); });
        std::ranges::sort(names);
        return names;
    }

    bool remove_temporary(std::string_view prefix, std::string_view name) override {
        const std::string key = join_key(prefix, name);
        require_key(key);
        require_writable("removing", key);
        const Spot place = spot(key, Make::no);
        if (is_destination_lock(name)) return place.is_there() && remove_destination_lock(place.fd, place.name);
        struct stat status {};
        if (!name.starts_with(temporary_prefix) || !place.is_there() ||
            ::fstatat(place.fd, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return false;
        }
        constexpr std::time_t long_ago = 3600;
        const bool old = status.st_mtime + long_ago < std::time(nullptr);
        if (!old && !temporary_writer_has_ended(name)) return false;
        return erase(key);
    }

    [[nodiscard]] bool read_only() const override { return options_.read_only; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    bool erase_by_draft(const Spot& place, std::string_view key) {
        struct stat status {};
        const bool there = ::fstatat(place.fd, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!there || S_ISDIR(status.st_mode)) return false;
        const std::string draft = temporary_name();
        if (::renameat(place.fd, place.name.c_str(), drafts_->get(), draft.c_str()) != 0) {
            throw io_error("removing", path_of(key), errno);
        }
        ::unlinkat(drafts_->get(), draft.c_str(), 0);
        sync_.changed(root_, key);
        return true;
    }

    void forget() {
        folders_.clear();
        links_.forget();
        permissions_.forget();
    }

    /// Replaces across file systems, where rename is impossible: copies the value, puts the copy in place, removes the
    /// original.
    bool replace_across(std::string_view from, std::string_view to) {
        const auto value = open(from);
        if (value == nullptr) throw io_error("replacing", path_of(from), ENOENT);
        copy_bytes(*value, *this, to);
        sync_.changed_for_move(root_, to);
        return erase(from);
    }

    /// The device and the mount: files can be renamed only if both agree.
    using Mount = std::pair<std::uint64_t, std::uint64_t>;
    static Mount mount_of(const os::Facts& facts) { return {facts.device, facts.mount}; }
    [[nodiscard]] Mount root_mount() const {
        const std::lock_guard guard(locks_mutex_);
        if (!root_mount_) {
            os::Facts facts;
            (void)facts_of(find_root(), ".", facts);
            root_mount_ = mount_of(facts);
        }
        return *root_mount_;
    }

    [[nodiscard]] std::shared_ptr<ArrayLocks> locks_of(std::string_view prefix) {
        require_prefix(prefix);
        require_writable("locking", prefix);
        const std::lock_guard guard(locks_mutex_);
        if (locks_owner_ != process_number()) {
            locks_.clear();  // those of the process that this one was forked from
            locks_owner_ = process_number();
        }
        auto found = locks_.find(prefix);
        if (found == locks_.end()) {
            const int root = make_root();
            require_no_package(root, prefix);
            folders_.clear();  // another directory may have the name by now
            const Folder folder = prefix.empty() ? nullptr : folder_at(root, prefix, Make::yes);
            const int directory = folder ? folder->get() : root;
            found = locks_.emplace(prefix, array_locks(directory, path_of(prefix), options_.process_locks)).first;
        }
        return found->second;
    }

    std::atomic<bool> clones_ = true;  ///< until a reflink has failed
    mutable ContentStamps contents_;
    mutable std::mutex locks_mutex_;
    std::map<std::string, std::shared_ptr<ArrayLocks>, std::less<>> locks_;
    pid_t locks_owner_ = process_number();
    mutable std::optional<Mount> root_mount_;  ///< under locks_mutex_
};

const DirectoryStore* directory_in(const ReadableStore& store) {
    return dynamic_cast<const DirectoryStore*>(&store);
}
DirectoryStore* directory_in(KeyValueStore& store) {
    return dynamic_cast<DirectoryStore*>(&store);
}

}  // namespace

std::shared_ptr<KeyValueStore> directory_store(const std::filesystem::path& root, const StoreOptions& options) {
    require_local(root, "a directory store");
    return std::make_shared<DirectoryStore>(root, options);
}

void sync_together(std::span<KeyValueStore* const> stores) {
    std::set<std::uint64_t> done;
    for (KeyValueStore* const store : stores) {
        if (DirectoryStore* const directory = directory_in(*store)) {
            directory->sync(done);
        } else {
            store->sync();
        }
    }
}

void rest_together(std::span<KeyValueStore* const> stores) {
    sync_together(stores);
    for (KeyValueStore* const store : stores) {
        if (DirectoryStore* const directory = directory_in(*store)) directory->rest();
    }
}

std::shared_ptr<const ChangeKeeper> keep_changes(const PlaceRef& place, std::string what, bool keep) {
    DirectoryStore* const directory = directory_in(place.store);
    return directory == nullptr ? nullptr : directory->keep_changes(place.prefix, std::move(what), keep);
}

void share_like(KeyValueStore& store, const ReadableStore& model) {
    DirectoryStore* const directory = directory_in(store);
    const DirectoryStore* const like = directory_in(model);
    if (directory != nullptr && like != nullptr) directory->share_like(*like);
}

void follow_mask(KeyValueStore& store) {
    if (DirectoryStore* const directory = directory_in(store)) directory->follow_mask();
}

void draft_in(KeyValueStore& store, const std::string& drafts) {
    if (DirectoryStore* const directory = directory_in(store)) directory->draft_in(drafts);
}

void close_idle_locks(KeyValueStore& store) {
    if (DirectoryStore* const directory = directory_in(store)) directory->close_idle_locks();
}

std::unique_ptr<ByteSource> open_above(const PlaceView& place, std::uint32_t levels, std::string_view key) {
    if (const DirectoryStore* const directory = directory_in(place.store)) {
        return directory->open_far_above(place.prefix, levels, key);
    }
    std::string_view above = place.prefix;
    for (; levels > 0 && !above.empty(); --levels) {
        const std::size_t slash = above.rfind('/');
        above = above.substr(0, slash == above.npos ? 0 : slash);
    }
    if (levels > 0) throw not_found("{}: the store has no folder that far above", place.store.name());
    return place.store.open(join_key(above, key));
}

bool is_directory_store(const ReadableStore& store) {
    return directory_in(store) != nullptr;
}

std::unique_ptr<OwnValue> open_own(KeyValueStore& store, std::string_view key) {
    DirectoryStore* const directory = directory_in(store);
    return directory == nullptr ? nullptr : directory->open_own(key);
}

std::uint64_t OwnValue::append(std::string_view text) {
    struct stat status {};
    const bool own = file_ && ::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
    const ssize_t n = own ? ::write(file_.get(), text.data(), text.size()) : -1;
    if (std::cmp_equal(n, text.size()) && (!waits_ || ::fdatasync(file_.get()) == 0)) {
        return static_cast<std::uint64_t>(status.st_size) + text.size();
    }
    store_.erase(key_);
    return 0;
}

bool has_lost_its_name(const ReadableStore& store) {
    const DirectoryStore* const directory = directory_in(store);
    return directory != nullptr && directory->has_lost_its_name();
}

std::shared_ptr<KeyValueStore> probe_directory_store(const std::filesystem::path& root, const StoreOptions& options) {
    if (root.empty()) return nullptr;
    auto store = std::make_shared<DirectoryStore>(root, options);
    return store->exists() ? store : nullptr;
}

extern constinit const StoreKind folder_kind{
    .scheme = "",
    .about = "folders of this machine",
    .place = [](const std::filesystem::path& path, const StoreOptions& options) {
        return Place(directory_store(path, options));
    }};

}  // namespace tessera
