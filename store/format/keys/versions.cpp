// Versions of a file
// ------------------
// FileWriter::finish sets the time of every file to the nanosecond, so that size, time and inode identify one version.
// Not every file system keeps nanoseconds: ext2 to ext4 with inodes of 128 bytes, HFS+ and some network mounts keep
// whole seconds, FAT two seconds, exFAT hundredths. There a file may be replaced several times within one tick. A freed
// inode is the first to be reused, so stat does not show the replacement. Nor does it show that another program wrote
// into the file.
//
// The time itself decides the cost. A time with nanoseconds tells versions apart, and nothing more is needed. A round
// time is either from such a file system or was set by a program (tar and rsync restore whole seconds). To find out
// which, futimens is tried once for each file system, on a file that has no name yet. If the folder is not writable, or
// such files cannot be made (FAT, NFS), the status change time decides: no program can set it, so it is round only if
// all times are.
//
// On a coarse file system a version is identified by a hash of its bytes. If a file has not changed for a minute, any
// later change shows in its times, so its hash is cached. (A minute allows for file servers with other clocks.)
#include "versions.h"

#include <fcntl.h>

#include <tessera/descriptor.h>
#include <tessera/fork.h>
#include <tessera/system_calls.h>

#include <ctime>

#include "copy_bytes.h"
#include "sha256.h"

namespace tessera {

namespace {

/// Whether futimens keeps nanoseconds; nullopt if that cannot be tried out here.
std::optional<bool> try_out(int folder, dev_t device) {
    constexpr mode_t own = 0600;
    const Descriptor file(os::open_unnamed(folder, ".", O_WRONLY, own));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || status.st_dev != device) return std::nullopt;
    const timespec fine{.tv_sec = status.st_mtim.tv_sec, .tv_nsec = 123'456'789};
    const timespec times[2] = {fine, fine};
    if (::futimens(file.get(), times) != 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
    return !is_coarse(status.st_mtim);
}

bool is_same(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

bool keeps_nanoseconds(int folder, const struct stat& file, bool writable) {
    static std::map<dev_t, bool> known;
    const std::lock_guard guard(library_mutex(LibraryMutex::file_times));
    if (const auto found = known.find(file.st_dev); found != known.end()) return found->second;
    if (const auto result = writable ? try_out(folder, file.st_dev) : std::nullopt) {
        known.emplace(file.st_dev, *result);
        return *result;
    }
    return !is_coarse(file.st_ctim);
}

ValueStamp content_stamp(const ByteSource& value) {
    Hasher hasher;
    for_each_piece(value, [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
    const Sha256 sum = hasher.finish();
    ValueStamp stamp{.size = value.size(), .by_content = true};
    for (int i = 0; i < 8; ++i) stamp.id = stamp.id << 8U | sum[static_cast<std::size_t>(i)];
    return stamp;
}

std::unique_ptr<ByteSource> open_stamped(const ReadableStore& store, std::string_view key,
                                         std::optional<ValueStamp>& stamp) {
    const auto before = store.stamp(key);
    std::unique_ptr<ByteSource> value = store.open(key);
    if (value) stamp = store.stamp(key);
    if (stamp != before) stamp = std::nullopt;
    return value;
}

std::optional<ValueStamp> ContentStamps::find(std::string_view key, const struct stat& status) const {
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(key);
    if (found == known_.end()) return std::nullopt;
    const struct stat& then = found->second.status;
    const bool same = then.st_dev == status.st_dev && then.st_ino == status.st_ino && then.st_size == status.st_size &&
                      is_same(then.st_mtim, status.st_mtim) && is_same(then.st_ctim, status.st_ctim);
    return same ? std::optional(found->second.stamp) : std::nullopt;
}

void ContentStamps::remember(std::string_view key, const struct stat& status, const ValueStamp& stamp) {
    constexpr std::time_t a_minute = 60;
    constexpr std::size_t most = 10'000;  // some MiB
    const std::time_t now = std::time(nullptr);
    if (now - status.st_mtim.tv_sec < a_minute || now - status.st_ctim.tv_sec < a_minute) return;
    const std::lock_guard guard(mutex_);
    if (known_.size() >= most) known_.clear();
    known_.insert_or_assign(std::string(key), Known{status, stamp});
}

}  // namespace tessera
