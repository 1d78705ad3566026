#include "disk_cache.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/remote_options.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sha256.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* mark_name = "tessera-cache";
/// "tessera-cache 1 TEXT-SIZE BODY-SIZE SUM-OF-KEY-SIZES-AND-TEXT SUM-OF-BODY\n", numbers in hexadecimal digits.
constexpr std::size_t head_size = 60;
constexpr std::string_view head_begin = "tessera-cache 1 ";
constexpr std::uint64_t longest_text = std::uint64_t{64} << 10;
constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t longest_writing = 3'600 * second;
constexpr std::int64_t clocks_differ = 300 * second;

std::uint32_t sum_of(ByteSpan bytes, std::uint32_t begun = 0) {
    return ::crc32_gzip_refl(begun, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}
ByteSpan bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::int64_t nanoseconds(const timespec& time) {
    return (static_cast<std::int64_t>(time.tv_sec) * second) + time.tv_nsec;
}
timespec time_of(std::int64_t nanoseconds) {
    timespec time{};
    time.tv_sec = nanoseconds / second;
    time.tv_nsec = nanoseconds % second;
    return time;
}

/// What an entry takes on the disk.
std::uint64_t rounded(std::uint64_t size) {
    constexpr std::uint64_t block = 4'096;
    return (size + block - 1) / block * block;
}

bool is_hex(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_entry(std::string_view folder, std::string_view name) {
    return folder.size() == 2 && name.size() == 62 && is_hex(folder) && is_hex(name);
}
bool is_temporary(std::string_view folder, std::string_view name) {
    return name.size() > 64 && name.substr(62, 2) == ".t" && is_entry(folder, name.substr(0, 62));
}

std::string path_of(const std::string& key) {
    return key.substr(0, 2) + '/' + key.substr(2);
}

bool read_fully(int fd, MutableByteSpan out, std::uint64_t offset) {
    return pread_all(fd, out, offset) == out.size();
}

std::uint64_t hex_number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value;
}

/// The sizes and the text of an open entry; nullopt for a damaged one.
struct Head {
    std::string text;
    std::uint64_t size = 0;
    std::uint32_t sum = 0;
};

std::uint32_t sum_of_head(std::string_view key, std::string_view sizes, std::string_view text) {
    return sum_of(bytes_of(text), sum_of(bytes_of(sizes), sum_of(bytes_of(key))));
}

std::optional<Head> read_head(int fd, std::string_view key) {
    std::array<char, head_size> line{};
    if (!read_fully(fd, std::as_writable_bytes(std::span(line)), 0)) return std::nullopt;
    const std::string_view head(line.data(), line.size());
    if (!head.starts_with(head_begin) || head.back() != '\n') return std::nullopt;
    const std::uint64_t length = hex_number(head.substr(16, 8));
    if (length > longest_text) return std::nullopt;
    Head result{.text = std::string(length, '\0'), .size = hex_number(head.substr(25, 16))};
    if (!read_fully(fd, std::as_writable_bytes(std::span(result.text)), head_size)) return std::nullopt;
    result.sum = static_cast<std::uint32_t>(hex_number(head.substr(51, 8)));
    struct stat status {};
    const bool whole = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                       static_cast<std::uint64_t>(status.st_size) - head_size - length == result.size;
    if (!whole || sum_of_head(key, head.substr(16, 25), result.text) != hex_number(head.substr(42, 8))) {
        return std::nullopt;
    }
    return result;
}

Descriptor open_entry(int root, const std::string& path) {
    return Descriptor(open_at(root, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
}

/// Calls each(folder, name, status) for all files two levels below a folder.
template <class Each>
void for_each_file(const fs::path& root, const Each& each) {
    std::error_code error;
    for (const auto& folder : fs::directory_iterator(root, fs::directory_options::skip_permission_denied, error)) {
        const std::string first = folder.path().filename().string();
        if (first.size() != 2 || !is_hex(first) || folder.is_symlink(error) || !folder.is_directory(error)) continue;
        std::error_code failure;
        for (const auto& file : fs::directory_iterator(folder.path(), failure)) {
            struct stat status {};
            if (::lstat(file.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
            each(first, file.path().filename().string(), file.path(), status);
        }
    }
}

bool holds_entry(const fs::path& root) {
    bool found = false;
    for_each_file(root, [&](const std::string& folder, const std::string& name, const fs::path&, const struct stat&) {
        found = found || is_entry(folder, name);
    });
    return found;
}

}  // namespace

DiskCache::DiskCache(fs::path folder, std::uint64_t most) : folder_(std::move(folder)), most_(most) {
    const std::string name = folder_.string();
    std::error_code error;
    if (!folder_.parent_path().empty()) fs::create_directories(folder_.parent_path(), error);
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) throw io_error("making the cache", name, errno);
    root_ = Descriptor(open_at(AT_FDCWD, folder_.c_str(), O_RDONLY | O_DIRECTORY));
    struct stat status {};
    if (!root_ || ::fstat(root_.get(), &status) != 0) throw io_error("opening the cache", name, errno);
    shared_ = (status.st_mode & 077U) != 0 || status.st_uid != ::geteuid();
    const bool counted = open_mark(status.st_mode & 0666U);
    writable_ = static_cast<bool>(mark_) && ::faccessat(root_.get(), ".", W_OK, AT_EACCESS) == 0;
    if (writable_ && !counted) make_room(most_);
}

/// Opens the mark of a cache, and makes it: in a folder that is empty, or that holds entries and whose mark is gone or
/// is another thing. Whether it says how many bytes there are.
bool DiskCache::open_mark(unsigned mode) {
    const auto open = [&](int create) {
        mark_ = Descriptor(open_at(root_.get(), mark_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | create, mode));
        struct stat status {};
        if (!mark_ || ::fstat(mark_.get(), &status) != 0) return std::optional<std::int64_t>();
        return std::optional<std::int64_t>(S_ISREG(status.st_mode) ? status.st_size : -1);
    };
    constexpr std::int64_t size = 8;
    std::error_code error;
    // Another process may make the mark between the two looks: what is not empty is looked at once more.
    const auto found = open(0);
    const int why = errno;
    if (found >= 0 || (!found && (why == EACCES || why == EPERM || why == EROFS))) return found == size;
    const bool was_one = holds_entry(folder_);
    if (was_one && (found || why != ENOENT) && ::unlinkat(root_.get(), mark_name, 0) != 0) {
        (void)::unlinkat(root_.get(), mark_name, AT_REMOVEDIR);
    }
    const auto made = open(was_one || fs::is_empty(folder_, error) ? O_CREAT : 0);
    if (!made && errno == ENOENT) {
        throw invalid_argument("{}: is no cache of Tessera, and not empty: name a folder that is new or empty",
                               folder_.string());
    }
    if (made < 0) mark_ = Descriptor();
    return !was_one;
}

std::shared_ptr<DiskCache> DiskCache::open(const fs::path& folder, std::uint64_t most) {
    struct Process {
        int number = process_number();
        std::mutex mutex;
        std::map<std::pair<fs::path, std::uint64_t>, std::shared_ptr<DiskCache>> caches;
    };
    // A forked child begins anew: the locks of its parent are not its own.
    static std::atomic<Process*> current = nullptr;
    Process* process = current.load();
    while (process == nullptr || process->number != process_number()) {
        auto made = std::make_unique<Process>();
        if (current.compare_exchange_strong(process, made.get())) process = made.release();
    }
    const std::lock_guard guard(process->mutex);
    auto& cache = process->caches[{fs::absolute(folder), most}];
    if (cache == nullptr) cache = std::make_shared<DiskCache>(fs::absolute(folder), most);
    return cache;
}

std::string DiskCache::key_of(std::string_view text) {
    Hasher hasher;
    hasher.add(text.data(), text.size());
    return hex(hasher.finish());
}

std::int64_t DiskCache::now() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return nanoseconds(time);
}

std::optional<DiskCache::Entry> DiskCache::find(const std::string& key, bool with_body, std::uint64_t limit) {
    const Descriptor fd = open_entry(root_.get(), path_of(key));
    if (!fd) return std::nullopt;
    auto head = read_head(fd.get(), key);
    struct stat status {};
    if (!head || ::fstat(fd.get(), &status) != 0) {
        drop(key);
        return std::nullopt;
    }
    Entry entry{.text = std::move(head->text), .size = head->size, .body = {}, .checked = nanoseconds(status.st_mtim)};
    if (entry.checked > now() + clocks_differ) entry.checked = 0;
    if (!with_body) return entry;
    if (entry.size > limit) return std::nullopt;
    entry.body.reset(entry.size);
    if (!read_fully(fd.get(), entry.body.span(), head_size + entry.text.size()) || sum_of(entry.body) != head->sum) {
        drop(key);
        return std::nullopt;
    }
    const std::array<timespec, 2> times{time_of(now()), timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
    (void)::utimensat(root_.get(), path_of(key).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    return entry;
}

void DiskCache::store(const std::string& key, std::string_view text, ByteSpan body, std::int64_t checked) noexcept {
    const std::uint64_t size = head_size + text.size() + body.size();
    if (!writable_ || text.size() > longest_text || rounded(size) > most_ / 2) return;
    try {
        const std::uint64_t total = add(static_cast<std::int64_t>(rounded(size)));
        const auto give_up = [&] { (void)add(-static_cast<std::int64_t>(rounded(size))); };
        if (total > most_) {
            make_room(most_ - (most_ / 8) - std::min(most_ - (most_ / 8), rounded(size)));
            if (add(static_cast<std::int64_t>(rounded(size))) > most_) return give_up();
        }
        const std::string sizes = fmt::format("{:08x} {:016x}", text.size(), body.size());
        const std::string head =
            fmt::format("{}{} {:08x} {:08x}\n{}", head_begin, sizes, sum_of_head(key, sizes, text), sum_of(body), text);
        static std::atomic<std::uint64_t> number = 0;
        const std::string path = path_of(key);
        const std::string beside = fmt::format("{}.t{}-{}", path, process_number(), number++);
        struct stat status {};
        if (::fstat(root_.get(), &status) != 0) return give_up();
        (void)::mkdirat(root_.get(), key.substr(0, 2).c_str(), status.st_mode & 0777U);
        const Descriptor fd(
            open_at(root_.get(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, status.st_mode & 0666U));
        const std::array<timespec, 2> times{time_of(now()), time_of(checked)};
        struct stat old {};
        const bool replaces = ::fstatat(root_.get(), path.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
        if (!fd || !write_all(fd.get(), bytes_of(head)) || !write_all(fd.get(), body) ||
            ::futimens(fd.get(), times.data()) != 0 ||
            ::renameat(root_.get(), beside.c_str(), root_.get(), path.c_str()) != 0) {
            if (fd) (void)::unlinkat(root_.get(), beside.c_str(), 0);
            return give_up();
        }
        if (replaces) (void)add(-static_cast<std::int64_t>(rounded(static_cast<std::uint64_t>(old.st_size))));
    } catch (const std::exception&) {
        return;  // a cache
    }
}

void DiskCache::set_checked(const std::string& key, std::int64_t when) noexcept {
    const std::array<timespec, 2> times{time_of(now()), time_of(when)};
    (void)::utimensat(root_.get(), path_of(key).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
}

bool DiskCache::drop(const std::string& key) noexcept {
    const std::string path = path_of(key);
    struct stat status {};
    if (::fstatat(root_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (::unlinkat(root_.get(), path.c_str(), 0) != 0) return false;
    (void)add(-static_cast<std::int64_t>(rounded(static_cast<std::uint64_t>(status.st_size))));
    return true;
}

// ---- who fetches a value

namespace {

std::uint64_t byte_of(const std::string& key) {
    return 16 + (hex_number(std::string_view(key).substr(0, 16)) >> 2U);
}

}  // namespace

std::shared_ptr<DiskCache::Claim> DiskCache::claim(const std::string& key) {
    const std::lock_guard guard(claims_mutex_);
    if (claims_.contains(key)) return nullptr;
    if (writable_ && !lock(byte_of(key), F_WRLCK, false) && (errno == EAGAIN || errno == EACCES)) return nullptr;
    claims_.insert(key);
    return std::make_shared<Claim>(shared_from_this(), key);
}

void DiskCache::release(const std::string& key) noexcept {
    const std::lock_guard guard(claims_mutex_);
    if (const auto found = claims_.find(key); found != claims_.end()) claims_.erase(found);
    if (writable_) (void)lock(byte_of(key), F_UNLCK, false);
}

bool DiskCache::lock(std::uint64_t byte, short type, bool wait) const noexcept {
    struct flock area {};
    area.l_type = type;
    area.l_whence = SEEK_SET;
    area.l_start = static_cast<off_t>(byte);
    area.l_len = 1;
    return os::lock(mark_.get(), area, wait) == 0;
}

// ---- the bound

std::uint64_t DiskCache::add(std::int64_t bytes) noexcept {
    if (!writable_) return 0;
    const std::lock_guard guard(total_mutex_);
    (void)lock(0, F_WRLCK, true);
    std::array<unsigned char, 8> digits{};
    (void)read_fully(mark_.get(), std::as_writable_bytes(std::span(digits)), 0);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < digits.size(); ++i) total |= static_cast<std::uint64_t>(digits[i]) << (8 * i);
    const auto less = static_cast<std::uint64_t>(-bytes);
    total = bytes < 0 ? total - std::min(total, less) : total + static_cast<std::uint64_t>(bytes);
    for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = static_cast<unsigned char>(total >> (8 * i));
    (void)::pwrite(mark_.get(), digits.data(), digits.size(), 0);
    (void)lock(0, F_UNLCK, false);
    return total;
}

namespace {

/// How old entries are, in classes of which each is a hundredth longer than the one before, so that no list of all
/// entries is in memory.
class Ages {
public:
    explicit Ages(std::int64_t now) : now_(now), bytes_(classes) {}

    void add(const struct stat& status, std::uint64_t bytes) { bytes_[class_of(status)] += bytes; }

    [[nodiscard]] std::size_t class_of(const struct stat& status) const {
        constexpr double per_doubling = 64;
        const std::int64_t age = std::max<std::int64_t>(now_ - nanoseconds(status.st_atim), 0);
        return std::min(static_cast<std::size_t>(std::log2(static_cast<double>(age) + 1) * per_doubling), classes - 1);
    }

    /// This class and all older ones go, so that at most `target` bytes are left.
    [[nodiscard]] std::size_t first_to_go(std::uint64_t target) const {
        std::size_t oldest = 0;
        for (std::uint64_t kept = 0; oldest < bytes_.size() && kept + bytes_[oldest] <= target; ++oldest) {
            kept += bytes_[oldest];
        }
        return oldest;
    }

private:
    static constexpr std::size_t classes = std::size_t{64} * 64;
    std::int64_t now_;
    std::vector<std::uint64_t> bytes_;
};

}  // namespace

/// Removes what was used longest ago, until `target` bytes are left.
void DiskCache::make_room(std::uint64_t target) noexcept {
    const std::lock_guard guard(room_mutex_);
    (void)lock(1, F_WRLCK, true);
    try {
        const std::uint64_t before = add(0);
        const std::int64_t begun = now();
        Ages ages(begun);
        std::uint64_t total = 0;
        for_each_file(folder_, [&](const std::string& folder, const std::string& name, const fs::path& path,
                                   const struct stat& status) {
            if (is_temporary(folder, name) && begun - nanoseconds(status.st_mtim) > longest_writing &&
                begun - nanoseconds(status.st_ctim) > longest_writing) {
                (void)::unlink(path.c_str());
            }
            if (!is_entry(folder, name)) return;
            const std::uint64_t size = rounded(static_cast<std::uint64_t>(status.st_size));
            ages.add(status, size);
            total += size;
        });
        const std::size_t oldest = ages.first_to_go(target);
        for_each_file(folder_, [&](const std::string& folder, const std::string& name, const fs::path& path,
                                   const struct stat& status) {
            if (total <= target || !is_entry(folder, name) || ages.class_of(status) < oldest) return;
            if (::unlink(path.c_str()) == 0) total -= rounded(static_cast<std::uint64_t>(status.st_size));
        });
        // What others stored meanwhile may count twice, until room is made again.
        const std::uint64_t meanwhile = add(0);
        const std::uint64_t right = total + (meanwhile - std::min(meanwhile, before));
        (void)add(static_cast<std::int64_t>(right) - static_cast<std::int64_t>(meanwhile));
    } catch (const std::exception&) {
        errno = 0;  // a cache
    }
    (void)lock(1, F_UNLCK, false);
}

// ---- what lies there

namespace {

void require_cache(const fs::path& folder) {
    struct stat status {};
    if (::lstat((folder / mark_name).c_str(), &status) != 0) {
        throw not_found("{}: there is no cache of Tessera", folder.string());
    }
}

template <class Each>
void walk(const fs::path& folder, bool read, const Each& each) {
    for_each_file(
        folder, [&](const std::string& first, const std::string& name, const fs::path& path, const struct stat& file) {
            if (!is_entry(first, name)) return;
            CachedValue value{.name = {},
                              .part = {},
                              .bytes = rounded(static_cast<std::uint64_t>(file.st_size)),
                              .used = std::chrono::system_clock::time_point(
                                  std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                      std::chrono::nanoseconds(nanoseconds(file.st_atim))))};
            const Descriptor fd(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
            if (!fd) return;  // gone meanwhile, or another user's
            const auto head = read_head(fd.get(), first + name);
            value.damaged = !head;
            if (head) {
                const std::size_t end = std::min(head->text.find('\n'), head->text.size());
                const std::size_t next = std::min(head->text.find('\n', end + 1), head->text.size());
                value.name = head->text.substr(0, end);
                if (next > end) value.part = head->text.substr(end + 1, next - end - 1);
                std::uint32_t sum = 0;
                Buffer piece(std::size_t{256} << 10);
                for (std::uint64_t at = 0; read && at < head->size;) {
                    const std::size_t n = std::min<std::uint64_t>(piece.size(), head->size - at);
                    const MutableByteSpan part = piece.span().first(n);
                    if (!read_fully(fd.get(), part, head_size + head->text.size() + at)) break;
                    sum = sum_of(part, sum);
                    at += n;
                }
                value.damaged = read && sum != head->sum;
            }
            each(value, first + name);
        });
}

}  // namespace

void for_each_cached(const fs::path& folder, bool read, const std::function<void(const CachedValue&)>& each) {
    require_cache(folder);
    walk(folder, read, [&](const CachedValue& value, const std::string&) { each(value); });
}

std::uint64_t remove_cached(const fs::path& folder, bool read, const std::function<bool(const CachedValue&)>& which) {
    require_cache(folder);  // and makes none
    const auto cache = DiskCache::open(folder, UINT64_MAX);
    std::uint64_t removed = 0;
    walk(folder, read, [&](const CachedValue& value, const std::string& key) {
        if (which(value) && cache->drop(key)) ++removed;
    });
    return removed;
}

}  // namespace tessera
