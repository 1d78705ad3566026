// Files as sources and sinks, and the names of files that are being written.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include <tessera/byte_io.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/file_source.h>
#include <tessera/fnv.h>
#include <tessera/permissions.h>
#include <tessera/temporary_file.h>

#include "mapped_file.h"

namespace tessera {

namespace {

/// The target of `path` behind symbolic links, so that replacing it replaces the file and not the link.
std::filesystem::path behind_links(std::filesystem::path path) {
    std::error_code reason;
    for (int links = 0; std::filesystem::is_symlink(path, reason); ++links) {
        if (links == 40) throw io_error("cannot follow", path.string(), ELOOP);
        path = path.parent_path() / std::filesystem::read_symlink(path, reason);
        if (reason) throw io_error("cannot follow", path.string(), reason.value());
    }
    return path;
}

class FileSink final : public ByteSink {
public:
    FileSink(const std::filesystem::path& path, bool durable)
        : name_(path.string()), target_(behind_links(path)), durable_(durable) {
        struct stat old {};
        const bool replaces = ::stat(target_.c_str(), &old) == 0;
        if (replaces && !S_ISREG(old.st_mode)) {
            throw Error(ErrorCode::io,
                        fmt::format("cannot write {}: something that is not a regular file is there", name_));
        }
        // At no time open to more people than in the end.
        file_ = TemporaryFile(AT_FDCWD, replaces ? old.st_mode & 0666U : 0666U, target_.parent_path().native());
        if (!file_) throw io_error("cannot create", name_, errno);
        struct stat now {};
        if (!replaces || ::fstat(file_.file(), &now) != 0) return;
        Permissions wanted = permissions_from(old);
        wanted.list = access_list_at(AT_FDCWD, target_.c_str());
        Permissions made = permissions_from(now);
        made.list = access_list(file_.file());
        (void)give_permissions(file_.file(), made, wanted);
    }

    const std::string& name() const override { return name_; }
    bool random_access() const override { return true; }

    void append(ByteSpan bytes) override {
        write_at(end_, bytes);
        end_ += bytes.size();
    }

    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        if (!pwrite_all(file_.file(), bytes, offset)) throw io_error("cannot write", name_, errno);
    }

    void finish() override {
        if (durable_ && !file_.sync()) throw io_error("cannot write to the disk", name_, errno);
        if (!file_.close()) throw io_error("cannot write", name_, errno);
        if (!file_.rename(target_.c_str())) throw io_error("cannot replace", name_, errno);
        const std::filesystem::path above = target_.parent_path();
        if (durable_ && !sync_directory(AT_FDCWD, above.empty() ? "." : above.c_str())) {
            throw io_error("cannot write to the disk", above.string(), errno);
        }
    }

private:
    std::string name_;
    std::filesystem::path target_;
    TemporaryFile file_;
    std::uint64_t end_ = 0;
    bool durable_;
};

}  // namespace

Descriptor open_regular(const std::filesystem::path& path, int flags, std::uint64_t& size) {
    // O_NONBLOCK: opening a pipe without a writer must not hang before the pipe can be refused.
    Descriptor file(open_at(AT_FDCWD, path.c_str(), flags | O_NONBLOCK));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) throw io_error("cannot open", path.string(), errno);
    if (!S_ISREG(facts.st_mode)) {
        throw Error(ErrorCode::io, fmt::format("cannot open {}: it is {}, not a regular file", path.string(),
                                               S_ISDIR(facts.st_mode) ? "a directory" : "a device, pipe or socket"));
    }
    size = static_cast<std::uint64_t>(facts.st_size);
    return file;
}

MappedFile::MappedFile(const std::filesystem::path& path, bool writable) : name_(path.string()) {
    const Descriptor file = open_regular(path, writable ? O_RDWR : O_RDONLY, size_);
    if (size_ == 0) return;
    void* at = ::mmap(nullptr, size_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) throw io_error("cannot map", name_, errno);
    data_ = static_cast<std::byte*>(at);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::read(std::uint64_t offset, MutableByteSpan out) const {
    require_range(*this, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), data_ + offset, out.size());
}

void MappedFile::drop_cache(std::uint64_t offset, std::uint64_t length) const {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = (offset + page - 1) / page * page, end = (offset + length) / page * page;
    if (begin < end && end <= size_) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::flush() {
    if (data_ != nullptr && ::msync(data_, size_, MS_SYNC) != 0) throw io_error("cannot write", name_, errno);
}

std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path) {
    std::uint64_t size = 0;
    Descriptor file = open_regular(path, O_RDONLY, size);
    return std::make_unique<FileSource>(std::move(file), size, path.string());
}

std::unique_ptr<ByteSource> map_file(const std::filesystem::path& path) {
    return std::make_unique<MappedFile>(path, false);
}

namespace {

/// A hash of the machine's name. Containers that share a folder mostly have different names.
std::string host_tag() {
    struct utsname names {};
    ::uname(&names);
    return fmt::format("{:08x}", fnv1a<std::uint32_t>(names.nodename));
}

const std::string& this_host() {
    static const std::string tag = host_tag();
    return tag;
}

}  // namespace

int process_number() {
    static std::atomic<int> number = 0;
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { number = ::getpid(); });
    if (registered != 0) return ::getpid();
    if (number == 0) number = ::getpid();
    return number;
}

std::string temporary_name() {
    static std::atomic<std::uint64_t> counter = 0;
    return fmt::format("{}{}-{}-{}", temporary_prefix, process_number(), counter++, this_host());
}

bool temporary_writer_has_ended(std::string_view name) {
    if (!name.starts_with(temporary_prefix)) return false;
    name.remove_prefix(temporary_prefix.size());
    pid_t pid = 0;
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [after_pid, no_pid] = std::from_chars(name.data(), end, pid);
    if (no_pid != std::errc() || pid <= 0 || after_pid == end || *after_pid != '-') return false;
    const auto [after_number, no_number] = std::from_chars(after_pid + 1, end, number);
    if (no_number != std::errc()) return false;
    // Names from Tessera 0.1 have no machine.
    const std::string_view host(after_number, end);
    if (!host.empty() && (host[0] != '-' || host.substr(1) != this_host())) return false;
    return ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::unique_ptr<ByteSink> create_file(const std::filesystem::path& path, bool durable) {
    return std::make_unique<FileSink>(path, durable);
}

}  // namespace tessera
