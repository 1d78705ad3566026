#include "unit_claims.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/value.h>

namespace tessera {

namespace fs = std::filesystem;

namespace {

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Where a process number means this process: the machine since it started, and the namespace of its processes.
std::string here() {
    std::error_code ignored;
    return first_line("/proc/sys/kernel/random/boot_id") + " " +
           fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

/// When a process started, in ticks of the machine; empty if there is none. Another one may have its number later.
std::string start_of(std::int64_t process) {
    const std::string line = first_line(fmt::format("/proc/{}/stat", process));
    std::size_t at = line.rfind(')');  // the name before it may hold anything
    if (at == std::string::npos) return {};
    constexpr int fields = 20;
    for (int i = 0; i < fields && at != std::string::npos; ++i) at = line.find(' ', at + 1);
    return at == std::string::npos ? "" : line.substr(at + 1, line.find(' ', at + 1) - at - 1);
}

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

UnitClaims::UnitClaims(fs::path folder, std::chrono::milliseconds lease) : folder_(std::move(folder)), lease_(lease) {
    std::error_code error;
    fs::create_directory(folder_, error);
    if (error) throw io_error("cannot make", folder_.string(), error.value());
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    const int process = process_number();
    own_ = Value{{"host", host.data()},
                 {"place", here()},
                 {"process", process},
                 {"started", start_of(process)},
                 {"lease_ms", lease_.count()},
                 {"once", fmt::format("{:08x}{:08x}", std::random_device{}(), std::random_device{}())}}
               .dump({.ascii = true});
    renewer_ = std::thread([this] { renew(); });
}

UnitClaims::~UnitClaims() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    ending_.notify_all();
    renewer_.join();
    while (!held_.empty()) give_back(held_.begin()->first);
}

fs::path UnitClaims::path_of(std::int64_t number) const {
    return folder_ / std::to_string(number);
}

void UnitClaims::renew() {
    std::unique_lock lock(mutex_);
    while (!ending_.wait_for(lock, lease_ / 3, [&] { return ends_; })) {
        for (const auto& lease : held_) (void)::futimens(lease.second.get(), nullptr);
    }
}

/// A lease is made under another name and linked, so that it is never seen without its text.
bool UnitClaims::make(std::int64_t number) {
    const fs::path path = path_of(number);
    const fs::path draft = folder_ / temporary_name();
    Descriptor file(open_at(AT_FDCWD, draft.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666));
    if (!file) throw io_error("cannot make", draft.string(), errno);
    const bool written = ::write(file.get(), own_.data(), own_.size()) == static_cast<ssize_t>(own_.size());
    const int failed = written ? 0 : errno;
    const bool linked = written && ::link(draft.c_str(), path.c_str()) == 0;
    const int why = linked ? 0 : written ? errno : failed;
    // Over NFS the answer to link() may be lost: the number of links tells.
    struct stat status {};
    const bool ours = linked || (written && ::fstat(file.get(), &status) == 0 && status.st_nlink == 2);
    ::unlink(draft.c_str());
    if (!ours && why != EEXIST) throw io_error("cannot make", path.string(), why);
    if (!ours) return false;
    const std::lock_guard lock(mutex_);
    held_.insert_or_assign(number, std::move(file));
    return true;
}

bool UnitClaims::has_lapsed(const fs::path& path, std::int64_t number) {
    const Descriptor file(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    std::array<char, 2048> text{};
    const ssize_t size = ::read(file.get(), text.data(), text.size());
    std::chrono::milliseconds lease = lease_;
    try {
        const Value holder = Value::parse({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
        lease = std::chrono::milliseconds(holder.at("lease_ms").as_int64());
        static const std::string own_place = here();
        if (holder.at("place").as_string() == own_place &&
            start_of(holder.at("process").as_int64()) != holder.at("started").as_string()) {
            return true;
        }
    } catch (const Error&) {  // damaged: it lapses as any other
    }
    const auto now = std::chrono::steady_clock::now();
    const Seen found{static_cast<std::uint64_t>(status.st_ino), nanoseconds(status.st_mtim), now};
    const auto [seen, first] = seen_.try_emplace(number, found);
    if (!first && (seen->second.inode != found.inode || seen->second.renewed != found.renewed)) seen->second = found;
    return now - seen->second.since >= lease;
}

bool UnitClaims::take(std::int64_t number) {
    if (make(number)) return true;
    const fs::path path = path_of(number);
    struct stat before {};
    if (::stat(path.c_str(), &before) != 0 || !has_lapsed(path, number)) return false;
    // Compare and swap: what was moved away must be the lease that lapsed.
    const fs::path aside = folder_ / temporary_name();
    if (::rename(path.c_str(), aside.c_str()) != 0) return false;
    struct stat moved {};
    const bool same = ::stat(aside.c_str(), &moved) == 0 && moved.st_ino == before.st_ino &&
                      nanoseconds(moved.st_mtim) == nanoseconds(before.st_mtim);
    if (!same) (void)::link(aside.c_str(), path.c_str());  // somebody was faster, and gets it back
    ::unlink(aside.c_str());
    seen_.erase(number);
    return same && make(number);
}

void UnitClaims::give_back(std::int64_t number) {
    Descriptor file;
    {
        const std::lock_guard lock(mutex_);
        const auto found = held_.find(number);
        if (found == held_.end()) return;
        file = std::move(found->second);
        held_.erase(found);
    }
    struct stat own {};
    struct stat there {};
    const fs::path path = path_of(number);
    if (::fstat(file.get(), &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_ino == there.st_ino) {
        ::unlink(path.c_str());
    }
}

}  // namespace tessera
