#include <tessera/system_calls.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#if defined(__linux__) && !defined(TESSERA_POSIX_ONLY)
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#else
#include <sys/mman.h>

#include <fmt/format.h>
#endif

namespace tessera::os {

int lock(int file, struct flock& range, bool wait) {
#ifdef F_OFD_SETLK  // of POSIX since 2024, after Linux and macOS
    int done = 0;
    do {
        done = ::fcntl(file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
    } while (done != 0 && errno == EINTR);
    return done;
#else
    errno = EINVAL;
    return -1;
#endif
}

#if defined(__linux__) && !defined(TESSERA_POSIX_ONLY)

const bool syncs_file_systems = true;
const int lookup = O_PATH;

bool exchange(const char* one, const char* other) {
    return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0;
}

bool rename_new(int from_folder, const char* from, int to_folder, const char* to) {
    return ::renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0;
}

int open_unnamed(int at, const char* folder, int flags, mode_t mode) {
    int file = -1;
    do {
        file = ::openat(at, folder, flags | O_TMPFILE | O_CLOEXEC, mode);
    } while (file < 0 && errno == EINTR);
    return file;
}

std::optional<int> open_beneath(int directory, const char* path, int flags, mode_t mode) {
    static std::atomic<bool> has_openat2 = true;
    if (!has_openat2) return std::nullopt;
    open_how how{};
    how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC));
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    long fd = -1;
    do {
        fd = ::syscall(SYS_openat2, directory, path, &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    // EPERM: from a sandbox that forbids the call, but also from the kernel for some files.
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
    if (errno == ENOSYS) has_openat2 = false;
    return std::nullopt;
}

bool clone(int to, int from) {
    return ::ioctl(to, FICLONE, from) == 0;
}

ssize_t copy_range(int from, int to, std::size_t size) {
    return ::copy_file_range(from, nullptr, to, nullptr, size, 0);
}

bool punch(int file, std::uint64_t offset, std::uint64_t size) {
    return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size)) == 0;
}

bool facts_of(int folder, const char* name, Facts& facts) {
    struct statx status {};
    if (::statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MODE | STATX_MNT_ID, &status) != 0) return false;
    facts = {.mode = status.stx_mode,
             .immutable = (status.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0,
             .device = std::uint64_t{status.stx_dev_major} << 32U | status.stx_dev_minor,
             .mount = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0};
    return true;
}

void refresh(int folder, const char* name) {
    struct statx fresh {};
    (void)::statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &fresh);
}

bool is_fuse(int folder) {
    struct statfs status {};
    return ::fstatfs(folder, &status) == 0 && status.f_type == FUSE_SUPER_MAGIC;
}

bool syncs_as_a_whole(int folder) {
    // On these types it reaches only the system's memory, and only fsync() of each file is passed on to the server.
    constexpr std::array<std::uint32_t, 4> others{FUSE_SUPER_MAGIC, V9FS_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC};
    struct statfs status {};
    return ::fstatfs(folder, &status) == 0 &&
           std::ranges::find(others, static_cast<std::uint32_t>(status.f_type)) == others.end();
}

bool sync_file_system(int file) {
    return ::syncfs(file) == 0;
}

int shared_memory(const char* name) {
    constexpr unsigned close_on_exec = 1, allow_sealing = 2;
    const int memory = static_cast<int>(::syscall(SYS_memfd_create, name, close_on_exec | allow_sealing));
    if (memory < 0) return -1;
    if (::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0) return memory;
    const int why = errno;
    ::close(memory);
    errno = why;
    return -1;
}

bool limit_memory(pid_t process, std::uint64_t bytes, bool as_far_as_may_be) {
    rlimit limit{};
    if (::prlimit(process, RLIMIT_AS, nullptr, &limit) != 0) return false;
    limit.rlim_cur = as_far_as_may_be ? limit.rlim_max : std::min<rlim_t>(limit.rlim_max, bytes);
    return ::prlimit(process, RLIMIT_AS, &limit, nullptr) == 0;
}

void name_process(const char* name) {
    (void)::prctl(PR_SET_NAME, name);
}

std::string started_by() {
    const auto* const started = std::bit_cast<const char*>(::getauxval(AT_EXECFN));
    return started == nullptr ? "" : started;
}

ssize_t attribute(int file, const char* name, char* to, std::size_t size) {
    return ::fgetxattr(file, name, to, size);
}

ssize_t attribute(const char* path, const char* name, char* to, std::size_t size) {
    return ::lgetxattr(path, name, to, size);
}

bool set_attribute(int file, const char* name, const std::string& value) {
    return ::fsetxattr(file, name, value.data(), value.size(), 0) == 0;
}

void remove_attribute(int file, const char* name) {
    (void)::fremovexattr(file, name);
}

#else

namespace {

/// Sets errno to `why`; -1.
int without(int why) {
    errno = why;
    return -1;
}

}  // namespace

const bool syncs_file_systems = false;
const int lookup = O_RDONLY | O_NONBLOCK | O_NOCTTY;

bool exchange(const char* /*one*/, const char* /*other*/) {
    return without(ENOSYS) == 0;
}

bool rename_new(int /*from_folder*/, const char* /*from*/, int /*to_folder*/, const char* /*to*/) {
    return without(ENOSYS) == 0;
}

int open_unnamed(int /*at*/, const char* /*folder*/, int /*flags*/, mode_t /*mode*/) {
    return without(EOPNOTSUPP);
}

std::optional<int> open_beneath(int /*directory*/, const char* /*path*/, int /*flags*/, mode_t /*mode*/) {
    return std::nullopt;
}

bool clone(int /*to*/, int /*from*/) {
    return without(EOPNOTSUPP) == 0;
}

ssize_t copy_range(int /*from*/, int /*to*/, std::size_t /*size*/) {
    return without(EXDEV);
}

bool punch(int /*file*/, std::uint64_t /*offset*/, std::uint64_t /*size*/) {
    return without(EOPNOTSUPP) == 0;
}

bool facts_of(int folder, const char* name, Facts& facts) {
    struct stat status {};
    if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    facts = {
        .mode = status.st_mode, .immutable = false, .device = static_cast<std::uint64_t>(status.st_dev), .mount = 0};
    return true;
}

void refresh(int folder, const char* name) {
    struct stat status {};
    (void)::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
}

bool is_fuse(int /*folder*/) {
    return false;
}

bool syncs_as_a_whole(int /*folder*/) {
    return false;
}

bool sync_file_system(int file) {
    ::sync();
    return ::fsync(file) == 0 || errno == EINVAL;
}

int shared_memory(const char* name) {
    static std::atomic<unsigned> next = 0;
    int memory = -1;
    do {
        const std::string path = fmt::format("/{}-{}-{}", name, ::getpid(), next++);
        memory = ::shm_open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);  // closed by exec()
        if (memory >= 0) (void)::shm_unlink(path.c_str());
    } while (memory < 0 && errno == EEXIST);
    return memory;
}

bool limit_memory(pid_t /*process*/, std::uint64_t /*bytes*/, bool /*as_far_as_may_be*/) {
    return without(ENOSYS) == 0;
}

void name_process(const char* /*name*/) {}

std::string started_by() {
    return "";
}

ssize_t attribute(int /*file*/, const char* /*name*/, char* /*to*/, std::size_t /*size*/) {
    return without(EOPNOTSUPP);
}

ssize_t attribute(const char* /*path*/, const char* /*name*/, char* /*to*/, std::size_t /*size*/) {
    return without(EOPNOTSUPP);
}

bool set_attribute(int /*file*/, const char* /*name*/, const std::string& /*value*/) {
    return without(EOPNOTSUPP) == 0;
}

void remove_attribute(int /*file*/, const char* /*name*/) {}

#endif

void close_from(unsigned first) {
#if defined(SYS_close_range) && !defined(TESSERA_POSIX_ONLY)
    if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
#endif
    constexpr unsigned most = 1U << 16U;
    for (unsigned i = first; i <= most; ++i) ::close(static_cast<int>(i));
}

}  // namespace tessera::os
