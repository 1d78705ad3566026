#include "unit_claims.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/byte_io.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/value.h>

#include "unit_records.h"

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

/// What this process writes into its leases.
Value holder(std::chrono::milliseconds lease) {
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    const int process = process_number();
    return {{"host", host.data()},          {"place", here()},           {"process", process},
            {"started", start_of(process)}, {"lease_ms", lease.count()}, {"once", new_id()}};
}

/// For how long a lease with this text holds unless it is renewed: not at all if its holder was a process of this
/// machine that has ended. `usual` if it is damaged.
std::chrono::milliseconds life_of(std::string_view text, std::chrono::milliseconds usual) {
    try {
        const Value holder = Value::parse(text);
        static const std::string own_place = here();
        if (holder.at("place").as_string() == own_place &&
            start_of(holder.at("process").as_int64()) != holder.at("started").as_string()) {
            return std::chrono::milliseconds(0);
        }
        return std::chrono::milliseconds(holder.at("lease_ms").as_int64());
    } catch (const Error&) {
        return usual;
    }
}

/// For how long each lease has stayed the same, by this process's clock.
template <class State>
class Watch {
public:
    std::chrono::steady_clock::duration age(std::int64_t number, const State& state) {
        const auto now = std::chrono::steady_clock::now();
        auto& [seen, since] = seen_.try_emplace(number, state, now).first->second;
        if (!(seen == state)) {
            seen = state;
            since = now;
        }
        return now - since;
    }
    void forget(std::int64_t number) { seen_.erase(number); }

private:
    std::map<std::int64_t, std::pair<State, std::chrono::steady_clock::time_point>> seen_;
};

/// Calls renew() three times in each `lease`, in a thread of its own.
class Renewer {
public:
    Renewer(std::chrono::milliseconds lease, std::function<void()> renew)
        : thread_([this, lease, renew = std::move(renew)] {
              std::unique_lock lock(mutex_);
              while (!ending_.wait_for(lock, lease / 3, [&] { return ends_; })) {
                  lock.unlock();
                  renew();
                  lock.lock();
              }
          }) {}
    ~Renewer() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        ending_.notify_all();
        thread_.join();
    }
    Renewer(const Renewer&) = delete;
    Renewer& operator=(const Renewer&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable ending_;
    bool ends_ = false;
    std::thread thread_;
};

/// A lease file is renewed by its time.
class FolderClaims final : public UnitClaims {
public:
    FolderClaims(fs::path folder, std::chrono::milliseconds lease);
    ~FolderClaims() override;
    FolderClaims(const FolderClaims&) = delete;
    FolderClaims& operator=(const FolderClaims&) = delete;

    bool take(std::int64_t number) override;
    void give_back(std::int64_t number) override;
    [[nodiscard]] bool holds(std::int64_t number) override;

private:
    /// Whether the lease is the file that is open.
    [[nodiscard]] bool is_at(std::int64_t number, const Descriptor& file) const {
        struct stat own {};
        struct stat there {};
        return ::fstat(file.get(), &own) == 0 && ::stat(path_of(number).c_str(), &there) == 0 &&
               own.st_ino == there.st_ino;
    }
    [[nodiscard]] fs::path path_of(std::int64_t number) const { return folder_ / std::to_string(number); }
    [[nodiscard]] bool has_lapsed(const fs::path& path, std::int64_t number);
    bool make(std::int64_t number);

    fs::path folder_;
    std::chrono::milliseconds lease_;
    std::string own_;                                      ///< the text of this object's leases
    Watch<std::pair<std::uint64_t, std::int64_t>> watch_;  ///< inodes and times
    std::mutex mutex_;
    std::map<std::int64_t, Descriptor> held_;
    std::optional<Renewer> renewer_;
};

FolderClaims::FolderClaims(fs::path folder, std::chrono::milliseconds lease)
    : folder_(std::move(folder)), lease_(lease), own_(holder(lease).dump({.ascii = true})) {
    std::error_code error;
    fs::create_directory(folder_, error);
    if (error) throw io_error("cannot make", folder_.string(), error.value());
    renewer_.emplace(lease, [this] {
        const std::lock_guard lock(mutex_);
        for (const auto& held : held_) (void)::futimens(held.second.get(), nullptr);
    });
}

FolderClaims::~FolderClaims() {
    renewer_.reset();
    while (!held_.empty()) give_back(held_.begin()->first);
}

/// A lease is made under another name and linked, so that it is never seen without its text.
bool FolderClaims::make(std::int64_t number) {
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

bool FolderClaims::has_lapsed(const fs::path& path, std::int64_t number) {
    const Descriptor file(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    std::array<char, 2048> text{};
    const ssize_t size = ::read(file.get(), text.data(), text.size());
    const auto life = life_of({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))}, lease_);
    return watch_.age(number, {static_cast<std::uint64_t>(status.st_ino), nanoseconds(status.st_mtim)}) >= life;
}

bool FolderClaims::take(std::int64_t number) {
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
    watch_.forget(number);
    return same && make(number);
}

void FolderClaims::give_back(std::int64_t number) {
    Descriptor file;
    {
        const std::lock_guard lock(mutex_);
        const auto found = held_.find(number);
        if (found == held_.end()) return;
        file = std::move(found->second);
        held_.erase(found);
    }
    if (is_at(number, file)) ::unlink(path_of(number).c_str());
}

bool FolderClaims::holds(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(number);
    return found != held_.end() && is_at(number, found->second);
}

/// A lease is an object, which is made only if there is none, and renewed by another number in its text. Where the
/// server does not hold conditions, two may hold one lease more often.
class ObjectClaims final : public UnitClaims {
public:
    ObjectClaims(Place place, std::chrono::milliseconds lease)
        : place_(std::move(place)), lease_(lease), own_(holder(lease)) {
        renewer_.emplace(lease, [this] { renew(); });
    }
    ~ObjectClaims() override {
        renewer_.reset();
        while (!held_.empty()) give_back(held_.back());
    }
    ObjectClaims(const ObjectClaims&) = delete;
    ObjectClaims& operator=(const ObjectClaims&) = delete;

    bool take(std::int64_t number) override {
        const std::string key = key_of(number);
        const std::string own = text_of(own_);
        if (place_.store->put_new(key, std::as_bytes(std::span(own)))) return keep(number);
        const std::string there = read(key);
        if (there.empty() || watch_.age(number, there) < life_of(there, lease_)) return false;
        watch_.forget(number);
        return replace(number, there) && keep(number);
    }

    void give_back(std::int64_t number) override {
        {
            const std::lock_guard lock(mutex_);
            if (std::erase(held_, number) == 0) return;
        }
        try {
            const FinishScope finishing;
            if (is_own(read(key_of(number)))) (void)place_.store->erase(key_of(number));
        } catch (const Error&) {  // it lapses by itself
        }
    }

    [[nodiscard]] bool holds(std::int64_t number) override { return is_own(read(key_of(number))); }

private:
    [[nodiscard]] std::string key_of(std::int64_t number) const { return place_.key(std::to_string(number)); }
    static std::string text_of(const Value& value) { return value.dump({.ascii = true}); }
    /// The text of a lease; empty if there is none.
    [[nodiscard]] std::string read(const std::string& key) const {
        Buffer bytes;
        if (!place_.store->get(key, bytes, std::uint64_t{1} << 16)) return {};
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    [[nodiscard]] bool is_own(std::string_view text) const {
        try {
            return !text.empty() && Value::parse(text).at("once") == own_.at("once");
        } catch (const Error&) {
            return false;
        }
    }
    bool keep(std::int64_t number) {
        const std::lock_guard lock(mutex_);
        held_.push_back(number);
        return true;
    }
    /// Puts a text of our own in place of another; false if that has changed.
    bool replace(std::int64_t number, std::string_view there) {
        const std::string key = key_of(number);
        const auto change = place_.store->begin_change(key, false);
        if (read(key) != there) return false;
        Value renewed = own_;
        renewed.set("renewed", ++renewed_);
        const std::string text = text_of(renewed);
        try {
            place_.store->put(key, std::as_bytes(std::span(text)));
        } catch (const Error&) {
            if (change && change->conflicted()) return false;
            throw;
        }
        return true;
    }
    void renew() {
        std::vector<std::int64_t> held;
        {
            const std::lock_guard lock(mutex_);
            held = held_;
        }
        for (const std::int64_t number : held) {
            try {
                const std::string there = read(key_of(number));
                if (is_own(there)) (void)replace(number, there);
            } catch (const Error&) {  // the next time
            }
        }
    }

    Place place_;
    std::chrono::milliseconds lease_;
    Value own_;  ///< the text of this object's leases
    Watch<std::string> watch_;
    std::atomic<std::int64_t> renewed_ = 0;
    std::mutex mutex_;
    std::vector<std::int64_t> held_;
    std::optional<Renewer> renewer_;
};

}  // namespace

std::unique_ptr<UnitClaims> unit_claims(Place records, std::chrono::milliseconds lease) {
    records.prefix = records.key("claims");
    if (const auto folder = folder_of(records)) return std::make_unique<FolderClaims>(*folder, lease);
    return std::make_unique<ObjectClaims>(std::move(records), lease);
}

}  // namespace tessera
