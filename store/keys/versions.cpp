// Versions of a file
// ------------------
// Every file gets its time from us, to the nanosecond, so that size, time and inode are those of one version only
// (FileWriter::finish). Not every file system keeps nanoseconds: ext2 to ext4 with inodes of 128 bytes, HFS+ and some
// network mounts keep whole seconds, FAT two of them, exFAT hundredths. There a file may be replaced several times
// within one tick, and since a freed inode is the first to be given out again, nothing that stat tells shows it; nor
// when another program writes into the file.
//
// What it costs is decided by the time itself: one with nanoseconds tells versions apart, and nothing more is asked. A
// round one is either of such a file system or was set by somebody (tar and rsync restore whole seconds). Which of them
// is tried out once for each file system: what does futimens leave of a file that has no name yet? Where nothing may be
// written, or where such files cannot be made (FAT, NFS), the time at which the status changed tells: that one is never
// set by anybody, and round only where all are.
//
// On a coarse file system a version is identified by its bytes, which are read and hashed. When a file has not changed
// for a minute, any later change shows in its times after all, so that what its bytes were is remembered (a minute: for
// file servers whose clocks differ from ours).
#include "versions.h"

#include <fcntl.h>

#include <tessera/fork.h>

#include <ctime>

#include "copy_bytes.h"
#include "descriptor.h"
#include "sha256.h"

namespace tessera {

namespace {

/// Whether futimens leaves nanoseconds; nothing where that cannot be found out here.
std::optional<bool> try_out(int folder, dev_t device) {
    constexpr mode_t own = 0600;
    const Descriptor file(open_at(folder, ".", O_WRONLY | O_TMPFILE, own));
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
