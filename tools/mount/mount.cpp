// The folder of `tessera mount`, on libfuse.
//
// A few threads take requests from the kernel and answer them. They wait for requests and for the end at once, so that
// none of them is in a request when the folder is unmounted.
#include "mount.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <signals_blocked.h>
#include <tessera/descriptor.h>
#include <tessera/error.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "loaded_fuse.h"

namespace tessera::mount {

namespace {

constexpr int threads = 4;

/// What is shown, and the files that are open, with their paths.
struct Shown {
    Mounted mounted;
    std::mutex mutex = {};
    std::map<const OpenFile*, std::pair<std::unique_ptr<OpenFile>, std::string>> open = {};

    OpenFile* keep(std::unique_ptr<OpenFile> file, const std::string& path) {
        const std::lock_guard lock(mutex);
        OpenFile* const kept = file.get();
        open.emplace(kept, std::pair(std::move(file), path));
        return kept;
    }
    std::unique_ptr<OpenFile> take(const OpenFile* file) {
        const std::lock_guard lock(mutex);
        auto taken = open.extract(file);
        return std::move(taken.mapped().first);
    }
    std::set<std::string> open_paths() {
        const std::lock_guard lock(mutex);
        std::set<std::string> paths;
        for (const auto& [file, kept] : open) paths.insert(kept.second);
        return paths;
    }
};

Shown& shown() {
    return *static_cast<Shown*>(fuse().fuse_get_context()->private_data);
}

Mounted& mounted() {
    return shown().mounted;
}

/// The system's number for an error.
int number_of(const Error& e) {
    switch (e.code()) {
        case ErrorCode::not_found:
            return ENOENT;
        case ErrorCode::invalid_argument:
        case ErrorCode::out_of_bounds:
            return EINVAL;
        case ErrorCode::unsupported:
            return EOPNOTSUPP;
        case ErrorCode::budget:
            return ENOMEM;
        case ErrorCode::cancelled:
            return EINTR;
        case ErrorCode::sealed:
            return EACCES;
        default:
            return EIO;
    }
}

/// What a callback returns: no exception may pass through the library, which is C.
template <class Body>
int answered(const char* path, const Body& body) noexcept {
    try {
        return body(path == nullptr ? std::string() : std::string(path + (*path == '/' ? 1 : 0)));
    } catch (const Error& e) {
        try {
            if (e.code() != ErrorCode::not_found) mounted().note_error(path == nullptr ? "" : path, e.what());
        } catch (...) {
            return -EIO;
        }
        return -number_of(e);
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    } catch (...) {
        return -EIO;
    }
}

void fill_status(const Entry& entry, struct stat& status) {
    std::memset(&status, 0, sizeof(status));
    const unsigned permissions = entry.folder ? 0555U : entry.writable ? 0644U : 0444U;
    status.st_mode = static_cast<mode_t>((entry.folder ? S_IFDIR : S_IFREG) | permissions);
    status.st_nlink = entry.folder ? 2 : 1;
    status.st_size = static_cast<off_t>(entry.size);
    status.st_blksize = 1 << 17;
    status.st_blocks = static_cast<blkcnt_t>((entry.size + 511) / 512);
    status.st_uid = ::getuid();
    status.st_gid = ::getgid();
}

OpenFile& opened(const fuse_file_info* info) {
    // libfuse keeps it as a number.
    return *reinterpret_cast<OpenFile*>(info->fh);  // NOLINT(performance-no-int-to-ptr)
}

int on_getattr(const char* path, struct stat* status, fuse_file_info* info) {
    return answered(path, [&](const std::string& at) {
        if (info != nullptr && info->fh != 0) {
            fill_status({.writable = opened(info).writable(), .size = opened(info).size()}, *status);
            return 0;
        }
        const std::optional<Entry> entry = mounted().look(at);
        if (!entry) return -ENOENT;
        fill_status(*entry, *status);
        return 0;
    });
}

int on_readdir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t /*offset*/, fuse_file_info* /*info*/,
               fuse_readdir_flags /*flags*/) {
    return answered(path, [&](const std::string& at) {
        const auto none = static_cast<fuse_fill_dir_flags>(0);
        fill(buffer, ".", nullptr, 0, none);
        fill(buffer, "..", nullptr, 0, none);
        for (const Listed& one : mounted().list(at)) {
            struct stat status {};
            status.st_mode = one.folder ? S_IFDIR : S_IFREG;
            fill(buffer, one.name.c_str(), &status, 0, none);
        }
        return 0;
    });
}

int on_open(const char* path, fuse_file_info* info) {
    return answered(path, [&](const std::string& at) {
        const std::optional<Entry> entry = mounted().look(at);
        if (!entry) return -ENOENT;
        if (entry->folder) return -EISDIR;
        const bool to_write = (info->flags & O_ACCMODE) != O_RDONLY;
        if (to_write && !entry->writable) return -EROFS;
        if ((info->flags & O_TRUNC) != 0) return -EPERM;
        info->direct_io = entry->changing ? 1 : 0;
        info->fh = reinterpret_cast<std::uint64_t>(shown().keep(mounted().open(at, to_write), at));
        return 0;
    });
}

int on_read(const char* path, char* out, std::size_t size, off_t offset, fuse_file_info* info) {
    return answered(path, [&](const std::string&) {
        const MemoryScope scope(mounted().memory());
        const auto at = static_cast<std::uint64_t>(offset);
        return static_cast<int>(opened(info).read(at, std::as_writable_bytes(std::span(out, size))));
    });
}

int on_write(const char* path, const char* bytes, std::size_t size, off_t offset, fuse_file_info* info) {
    return answered(path, [&](const std::string&) {
        const MemoryScope scope(mounted().memory());
        opened(info).write(static_cast<std::uint64_t>(offset), std::as_bytes(std::span(bytes, size)));
        return static_cast<int>(size);
    });
}

int on_flush(const char* path, fuse_file_info* info) {
    return answered(path, [&](const std::string&) {
        const MemoryScope scope(mounted().memory());
        opened(info).flush();
        return 0;
    });
}

int on_fsync(const char* path, int /*data*/, fuse_file_info* info) {
    return on_flush(path, info);
}

int on_release(const char* path, fuse_file_info* info) {
    return answered(path, [&](const std::string&) {
        const MemoryScope scope(mounted().memory());
        const std::unique_ptr<OpenFile> file = shown().take(&opened(info));
        return 0;
    });
}

int on_truncate(const char* path, off_t size, fuse_file_info* /*info*/) {
    return answered(path, [&](const std::string& at) {
        const std::optional<Entry> entry = mounted().look(at);
        if (!entry) return -ENOENT;
        // What is there already; anything else would be another array.
        return entry->writable && static_cast<off_t>(entry->size) == size ? 0 : -EPERM;
    });
}

int on_access(const char* path, int mask) {
    return answered(path, [&](const std::string& at) {
        const std::optional<Entry> entry = mounted().look(at);
        if (!entry) return -ENOENT;
        return (mask & W_OK) != 0 && !entry->writable ? -EROFS : 0;
    });
}

void* on_init(fuse_conn_info* connection, fuse_config* /*config*/) {
    connection->max_readahead = 1U << 20U;
    return fuse().fuse_get_context()->private_data;
}

fuse_operations operations() {
    fuse_operations made{};
    made.getattr = on_getattr;
    made.readdir = on_readdir;
    made.open = on_open;
    made.read = on_read;
    made.write = on_write;
    made.flush = on_flush;
    made.fsync = on_fsync;
    made.release = on_release;
    made.truncate = on_truncate;
    made.access = on_access;
    made.init = on_init;
    return made;
}

/// libfuse's object for one folder, mounted as long as this lives.
class Session {
public:
    Session(Shown& shown, const std::filesystem::path& folder, const std::vector<std::string>& words) {
        fuse_args arguments{};
        for (const std::string& word : words) fuse().fuse_opt_add_arg(&arguments, word.c_str());
        const fuse_operations made = operations();
        fuse_ = fuse().fuse_new(&arguments, &made, sizeof(made), &shown);
        fuse().fuse_opt_free_args(&arguments);
        if (fuse_ == nullptr) throw unsupported("libfuse refuses the settings of a mounted folder");
        if (fuse().fuse_mount(fuse_, folder.c_str()) != 0) {
            fuse().fuse_destroy(fuse_);
            throw Error(ErrorCode::io, "mounting " + folder.string() +
                                           " failed: it takes /dev/fuse, and of users but root the program fusermount3 "
                                           "(package fuse3)");
        }
    }
    ~Session() {
        fuse().fuse_unmount(fuse_);
        fuse().fuse_destroy(fuse_);
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    [[nodiscard]] fuse_session* get() const { return fuse().fuse_get_session(fuse_); }

private:
    struct fuse* fuse_ = nullptr;
};

/// Answers requests until the folder is unmounted, or `end` can be read.
void answer_requests(fuse_session* session, int end) {
    fuse_buf buffer{};
    const int requests = fuse().fuse_session_fd(session);
    while (fuse().fuse_session_exited(session) == 0) {
        std::array<pollfd, 2> waiting{pollfd{requests, POLLIN, 0}, pollfd{end, POLLIN, 0}};
        if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
        if (waiting[1].revents != 0) break;
        if (waiting[0].revents == 0) continue;
        const int got = fuse().fuse_session_receive_buf(session, &buffer);
        if (got == -EINTR || got == -EAGAIN) continue;  // another thread took it
        if (got <= 0) break;
        fuse().fuse_session_process_buf(session, &buffer);
    }
    std::free(buffer.mem);
}

/// The threads that answer.
class Workers {
public:
    explicit Workers(fuse_session* session) : end_(::eventfd(0, EFD_CLOEXEC)) {
        const int requests = fuse().fuse_session_fd(session);
        ::fcntl(requests, F_SETFL, ::fcntl(requests, F_GETFL) | O_NONBLOCK);
        const serve::SignalsBlocked blocked;
        for (int i = 0; i < threads; ++i) {
            threads_.emplace_back([this, session] {
                answer_requests(session, end_.get());
                const std::lock_guard lock(mutex_);
                unmounted_ = true;
                changed_.notify_all();
            });
        }
    }
    /// Waits for their requests to be answered.
    ~Workers() {
        constexpr std::uint64_t one = 1;
        (void)!::write(end_.get(), &one, sizeof(one));
        threads_.clear();
    }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Waits for the end. Whether somebody unmounted the folder.
    bool wait(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [this] { return unmounted_; });
        return unmounted_;
    }

private:
    Descriptor end_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool unmounted_ = false;
    std::vector<std::jthread> threads_;
};

/// Has the system send what mapped files hold. It does not wait for that when a whole file system is synced.
void sync_files(const std::filesystem::path& folder, const std::set<std::string>& paths) {
    for (const std::string& path : paths) {
        const Descriptor file(::open((folder / path).c_str(), O_RDONLY | O_CLOEXEC));
        if (file.get() >= 0) (void)::fsync(file.get());
    }
}

void require_empty_folder(const std::filesystem::path& folder) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
        throw not_found(folder.string() + ": there is no folder to mount in; make one: mkdir " + folder.string());
    }
    if (!std::filesystem::is_empty(folder, error)) {
        throw invalid_argument(folder.string() +
                               ": a folder to mount in must be empty, because its files would be hidden");
    }
}

/// What shows itself would wait for itself.
void require_outside(const std::filesystem::path& folder, const std::string& path) {
    std::error_code ignored;
    const std::filesystem::path inner = std::filesystem::weakly_canonical(folder, ignored);
    const std::filesystem::path outer = std::filesystem::weakly_canonical(path, ignored);
    const auto end = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first;
    if (outer.empty() || end != outer.end()) return;
    throw invalid_argument("{}: it lies in {}, which would show itself; choose a folder elsewhere", folder.string(),
                           path);
}

}  // namespace

bool can_mount() {
    return true;
}

void show(const std::string& path, const std::filesystem::path& folder, const MountOptions& options, bool others,
          const std::stop_token& stop, const std::function<void()>& ready) {
    require_empty_folder(folder);
    require_outside(folder, path);
    std::stop_source halt;  // of what is being read
    MountOptions own = options;
    own.io.stop = halt.get_token();
    Shown shown{.mounted = {path, own}};
    std::vector<std::string> words{"tessera", "-o", "fsname=tessera,subtype=tessera"};
    words.back() += options.write ? ",default_permissions" : ",ro,default_permissions";
    if (others) words.back() += ",allow_other";
    {
        const Session session(shown, folder, words);
        Workers workers(session.get());
        ready();
        const bool unmounted = workers.wait(stop);
        // What mapped files hold comes as requests, which are answered as long as there are workers.
        if (options.write && !unmounted) sync_files(folder, shown.open_paths());
        halt.request_stop();
    }
    for (const auto& [file, kept] : shown.open) kept.first->flush();
}

}  // namespace tessera::mount
