// Files that are replaced whole.
//
// How a value is replaced
// -----------------------
// put() writes the whole value under a temporary name, `.tessera-tmp-PID-N-HOST`, in the directory where the key lies,
// checks what write, fdatasync and close report, and renames it over the key. rename is atomic, so that a reader who
// opens the key gets the old file or the new one. A reader who has it open keeps the whole old file; this is what pins
// the ByteSource from open(). Nothing is ever written into a file that has its final name. A crash of the program
// leaves the old or the new value under the key. It also leaves one temporary file for each value that was being
// written or held; listings skip it and repair() removes it.
//
// What a power failure leaves
// ---------------------------
// Unless asked, the system writes files and names to the disk at any time and in any order. There are three levels:
//   none    It is not asked. A name may reach the disk before the bytes of its file, and then the value is cut short
//           or empty, neither the old one nor the new one.
//   commit  fdatasync before the rename: a name on the disk leads to complete bytes, so that each key has its old value
//           or its new one. sync() makes the names durable: it calls fsync for each folder in which one was set or
//           removed. Every operation on an array ends with sync(), and steps whose order on the disk matters have one
//           between them.
//           An operation that replaces many values (hold()) first writes all of them under temporary names. One syncfs
//           puts them on the disk, and only then they get their keys. Names in more than a few folders are also synced
//           by one syncfs.
//   each    As commit, but every put and erase is durable by itself: it also calls fsync for the folder.
// If nobody opens the data before it is complete (a new array), sync_later() omits the fdatasync for each file, and
// sync() syncs the whole file system (syncfs): one wait instead of one for each chunk.
// A failed fsync is an error, and its data counts as not written. It is not retried, because the system may have
// dropped the bytes.
#include "file_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <tessera/error.h>
#include <tessera/permissions.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "beneath.h"
#include "kept_changes.h"
#include "keys.h"
#include "versions.h"

namespace tessera {

namespace {

std::string folder_of(std::string_view key) {
    return std::string(key.substr(0, key.rfind('/') == std::string_view::npos ? 0 : key.rfind('/')));
}

}  // namespace

bool FolderSync::syncs_together(int root) const {
    return durability_ == Durability::commit && (root < 0 || os::syncs_as_a_whole(root));
}

void FolderSync::later(int root) {
    whole_ = root < 0 || os::syncs_as_a_whole(root);
    later_ = durability_ != Durability::none && whole_;
}

void FolderSync::changed(int root, std::string_view key) {
    if (durability_ == Durability::none || later_) return;
    std::string folder = folder_of(key);
    if (durability_ == Durability::each) {
        sync_folder(root, folder);
        return;
    }
    const std::lock_guard guard(mutex_);
    if (folder != last_) last_ = *folders_.insert(std::move(folder)).first;
}

void FolderSync::placed(int root, std::string_view key, int folder, const char* name) {
    if (fuse_ < 0) fuse_ = os::is_fuse(folder) ? 1 : 0;
    if (fuse_ > 0) {
        // After link() and rename() some programs behind FUSE report a wrong size (gocryptfs: that of the encrypted
        // file), which the kernel keeps for a while. Unless it is asked for a fresh one.
        os::refresh(folder, name);
    }
    changed(root, key);
}

void FolderSync::changed_for_move(int root, std::string_view key) const {
    if (durability_ != Durability::none && !later_) sync_folder(root, folder_of(key));
}

void FolderSync::sync(int root) {
    // Serialised: a caller that finds nothing left to do must wait for a sync in progress.
    const std::lock_guard one(syncing_);
    if (later_) {
        // Too many folders to list: sync the whole file system.
        if (root >= 0 && !os::sync_file_system(root)) throw io_error("writing to the disk", store_, errno);
        later_ = false;
    }
    std::set<std::string> folders;
    {
        const std::lock_guard guard(mutex_);
        folders.swap(folders_);
        last_ = std::string(none);
    }
    try {
        sync_folders(root, folders);
    } catch (...) {
        const std::lock_guard guard(mutex_);
        folders_.merge(folders);
        throw;
    }
}

void FolderSync::sync(int root, std::set<std::uint64_t>& done) {
    if (!whole_) return sync(root);
    struct stat status {};
    if (durability_ == Durability::none || root < 0) return;
    const std::lock_guard one(syncing_);
    {
        const std::lock_guard guard(mutex_);
        folders_.clear();
        last_ = std::string(none);
    }
    if (::fstat(root, &status) != 0) throw io_error("reading", store_, errno);
    if (done.insert(status.st_dev).second && !os::sync_file_system(root))
        throw io_error("writing to the disk", store_, errno);
    later_ = false;
}

void FolderSync::sync_folders(int root, const std::set<std::string>& folders) const {
    constexpr std::size_t few = 2;
    if (folders.size() <= few || !os::syncs_file_systems) {
        for (const std::string& folder : folders) sync_folder(root, folder);
        return;
    }
    std::set<std::uint64_t> done;  // file systems
    for (const std::string& folder : folders) {
        const std::string path = folder.empty() ? "." : folder;
        const auto kept = open_.find(folder);
        const Descriptor opened(kept ? -1 : open_at(root, path.c_str(), O_RDONLY | O_DIRECTORY));
        const int fd = kept ? kept->get() : opened.get();
        if (fd < 0 && is_absent(errno)) continue;  // removed since
        struct stat status {};
        if (fd < 0 || ::fstat(fd, &status) != 0) throw io_error("opening", join_key(store_, folder), errno);
        if (!done.insert(status.st_dev).second) continue;
        if (!os::sync_file_system(fd)) throw io_error("writing to the disk", join_key(store_, folder), errno);
    }
}

void FolderSync::sync_folder(int root, const std::string& folder) const {
    if (const auto open = root == AT_FDCWD ? nullptr : open_.find(folder)) {
        if (::fsync(open->get()) == 0 || errno == EINVAL) return;
        throw io_error("writing to the disk", join_key(store_, folder), errno);
    }
    if (sync_directory(root, folder.empty() ? "." : folder.c_str())) return;
    if (is_absent(errno)) return;  // removed since, and the folder above it is on the list
    throw io_error("writing to the disk", join_key(store_, folder), errno);
}

FileWriter::FileWriter(int root, FolderCache::Folder folder, TemporaryFile file, std::string key, std::string name,
                       FolderSync& sync, ChangeKeeper* keeper)
    : root_(root),
      folder_(std::move(folder)),
      file_(std::move(file)),
      key_(std::move(key)),
      name_(std::move(name)),
      sync_(sync),
      keeper_(keeper) {}

void FileWriter::append(ByteSpan bytes) {
    write_at(end_, bytes);
    end_ += bytes.size();
}

void FileWriter::write_at(std::uint64_t offset, ByteSpan bytes) {
    if (!pwrite_all(file_.file(), bytes, offset)) throw io_error("writing", name_, errno);
}

bool FileWriter::clone(int from) {
    return os::clone(file_.file(), from);
}

void FileWriter::share_like(int from) {
    struct stat wanted {};
    struct stat status {};
    if (::fstat(from, &wanted) != 0 || ::fstat(file_.file(), &status) != 0) return;
    Permissions now = permissions_from(status);
    Permissions like = permissions_from(wanted);
    like.mode &= 0777U;
    bool supported = true;
    like.list = access_list(from, &supported);
    if (supported) now.list = access_list(file_.file());
    (void)give_permissions(file_.file(), now, like);
}

void FileWriter::close() {
    // Set to the nanosecond: the system's own times advance only every few milliseconds. Within that a file may be
    // replaced twice and get its old inode back, so that its ValueStamp would show no change. For file systems without
    // nanoseconds, see versions.cpp.
    timespec now[2] = {};
    ::clock_gettime(CLOCK_REALTIME, &now[0]);
    if (is_coarse(now[0])) ++now[0].tv_nsec;
    now[1] = now[0];
    (void)::futimens(file_.file(), now);
    if (held_ == nullptr && sync_.syncs_values() && !file_.sync()) throw io_error("writing to the disk", name_, errno);
    if (!file_.close()) throw io_error("writing", name_, errno);
}

void FileWriter::finish() {
    close();
    if (held_ != nullptr) {
        held_->finished(key_, file_.release());
        return;
    }
    if (keeper_ != nullptr) keeper_->before(file_.folder(), own_name(), file_.name().c_str(), key_);
    const bool placed = ::renameat(file_.folder(), file_.name().c_str(), folder(), own_name()) == 0;
    if (!placed) throw io_error("writing", name_, errno);
    (void)file_.release();
    sync_.placed(root_, key_, folder(), own_name());
}

bool FileWriter::finish_new() {
    close();
    const bool placed = file_.rename_new(own_name());
    if (!placed && errno != EEXIST) throw io_error("writing", name_, errno);
    if (placed) sync_.placed(root_, key_, file_.folder(), own_name());
    return placed;
}

void FileWriter::hold(HeldFiles& held) {
    held_ = &held;
    held.begin(key_, file_.folder());
}

// ---- values held until all are on the disk

std::unique_ptr<ByteSink> HeldFiles::create(std::string_view key) {
    auto file = std::make_unique<FileWriter>(writer_(key));
    file->hold(*this);
    return file;
}

void HeldFiles::begin(const std::string& key, int folder) {
    std::string path = folder_of(key);
    const std::lock_guard guard(mutex_);
    if (path == last_) return;
    struct stat status {};
    if (::fstat(folder, &status) != 0) throw io_error("reading", join_key(store_, path), errno);
    last_ = std::move(path);
    file_systems_.emplace(status.st_dev, key);  // a folder may be a mount point, or a link that was allowed
}

void HeldFiles::finished(const std::string& key, std::string temporary) {
    const std::lock_guard guard(mutex_);
    temporaries_.insert_or_assign(key, std::move(temporary));
}

void HeldFiles::sync() {
    for (const auto& [device, key] : file_systems_) {
        const Spot spot = spot_(key);
        if (spot.fd >= 0 && os::sync_file_system(spot.fd)) continue;
        throw io_error("writing to the disk", join_key(store_, key), spot.fd < 0 ? ENOENT : errno);
    }
}

bool HeldFiles::place(std::string_view key) {
    std::string temporary;
    {
        const std::lock_guard guard(mutex_);
        const auto found = temporaries_.find(key);
        if (found == temporaries_.end()) return false;
        temporary = found->second;
    }
    const Spot spot = spot_(key);
    const std::string name(key.substr(key.rfind('/') + 1));  // 0 without a '/'
    if (spot.fd < 0) throw io_error("writing", join_key(store_, key), ENOENT);
    if (keeper_ != nullptr) keeper_->before(spot.fd, name.c_str(), temporary.c_str(), key);
    if (::renameat(spot.fd, temporary.c_str(), spot.fd, name.c_str()) != 0) {
        throw io_error("writing", join_key(store_, key), errno);
    }
    sync_.placed(root_, key, spot.fd, name.c_str());
    const std::lock_guard guard(mutex_);
    temporaries_.erase(temporaries_.find(key));
    return true;
}

HeldFiles::~HeldFiles() {
    for (const auto& [key, temporary] : temporaries_) {
        try {
            if (const Spot spot = spot_(key); spot.fd >= 0) ::unlinkat(spot.fd, temporary.c_str(), 0);
        } catch (const Error&) {
            // The folder is no longer reachable: repair() removes the leftovers there.
        }
    }
}

}  // namespace tessera
