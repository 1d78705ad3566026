// What a command replaces, kept for undo().
//
// How it works
// ------------
// A directory store replaces files only by rename, and never writes into a file that has its final name. So a hard link
// to the old file keeps the old value, without a copy. Right before a name gets a new file, or is removed, the old file
// gets a second name `.tessera/undo/ID.N`, and the record `.tessera/undo/changes` gets a line: the key, N, whether
// there was an old value, and the stamp (size, time, inode) of the new one. The line comes first and the rename after
// it. So after a kill each change in the record either happened, and the new stamp is in place, or did not, and the
// old file is. Undo can tell the two apart from what a later writer put there, which it never replaces.
//
// A key that changes several times has several lines, and each keeps what was there right before: if one of these is
// not what the line before it announced, somebody else wrote in between.
//
// The record is made at the first change, after everything that was kept before was removed. So a command that fails
// before it changes anything leaves the last change to be undone. Commands may run at the same time. The one that
// begins last owns the folder: it removes the record of the one before, and then the values that no later record is
// about. A command whose record has lost its name removes its own values when it ends.
//
// Nothing here waits for the disk. The last line of a complete record says how many there are. A record without it was
// interrupted: if its process is gone and the system was not restarted since, everything in it is as it was written,
// and can be taken back. After a restart a part of it may be missing, so it is refused.
//
// If a value cannot be linked (no hard links, another file system, no room), there is no undo, and the record says why.
// Nothing is ever copied.
#include "kept_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/error_text.h>
#include <tessera/value.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <exception>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "beneath.h"
#include "copy_bytes.h"
#include "keys.h"
#include "versions.h"

namespace tessera {

namespace {

constexpr const char* record_file = "changes";  // changes_name
constexpr int record_version = 1;

/// Differs between two starts of the system; empty if the system does not tell.
std::string present_boot() {
    std::array<char, 64> text{};
    const Descriptor fd(open_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY));
    const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
    const std::string_view id(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    return std::string(id.substr(0, id.find('\n')));
}

std::uint64_t random_id() {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
}

/// Cut between characters of UTF-8, so that the first line of a record is no longer than readers take.
std::string shortened(std::string text) {
    constexpr std::size_t most = 4096;
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
    return text + "…";
}

std::string errno_text(int error) {
    return std::generic_category().message(error);
}

void read_header(KeptChanges& read, const Value& header) {
    if (header.at("tessera_undo").as_int64() != record_version) {
        throw unsupported("the record of changes has version {}, this program knows version {}",
                          header.at("tessera_undo").dump(), record_version);
    }
    const std::string& id = header.at("id").as_string();
    constexpr int hexadecimal = 16;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), read.id, hexadecimal);
    if (error != std::errc() || end != id.data() + id.size()) throw corrupt("no id");
    read.what = header.at("what").as_string();
}

/// What the first line of a record says; nothing if it is none.
std::optional<KeptChanges> header_in(std::string_view text) {
    try {
        KeptChanges read;
        read_header(read, Value::parse(text.substr(0, text.find('\n'))));
        return read;
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

std::string kept_name(std::uint64_t id, std::uint64_t number) {
    return fmt::format("{:016x}.{}", id, number);
}

// ---- writing

ChangeKeeper::ChangeKeeper(std::string_view prefix, std::string what, bool keep, OpenFolder open, GivePermissions give)
    : below_(prefix.empty() ? std::string() : fmt::format("{}/", prefix)),
      what_(shortened(std::move(what))),
      keep_(keep),
      open_(std::move(open)),
      give_(std::move(give)),
      id_(random_id()) {}

ChangeKeeper::~ChangeKeeper() {
    try {
        finish();
    } catch (const std::exception&) {
        // Without its last line the record counts as interrupted, which is right.
    }
}

std::string ChangeKeeper::kept_name(std::uint64_t number) const {
    return tessera::kept_name(id_, number);
}

void ChangeKeeper::before(int folder, const char* name, const char* fresh, std::string_view key) noexcept {
    try {
        if (!key.starts_with(below_)) return;
        key.remove_prefix(below_.size());
        if (is_own_name(key.substr(0, key.find('/')))) return;
        if (begin()) keep_one(folder, name, fresh, key);
    } catch (const std::exception& e) {
        lose(e.what());
    }
}

/// Returns whether changes are recorded.
bool ChangeKeeper::begin() {
    const std::lock_guard guard(mutex_);
    if (!std::exchange(begun_, true)) {
        folder_ = open_(keep_);
        if (folder_) {
            forget_earlier();
            // Whose record was in the way may have ended before it went.
            if (keep_ && create_record()) forget_values();
        }
    }
    return records_;
}

std::vector<std::string> ChangeKeeper::kept_names() const {
    std::vector<std::string> names;
    Descriptor listed(open_at(folder_.get(), ".", O_RDONLY | O_DIRECTORY));
    if (!listed) return names;
    (void)each_entry_of(std::move(listed), [&](int, const dirent& entry) { names.emplace_back(entry.d_name); });
    return names;
}

void ChangeKeeper::forget_earlier() {
    // First the record: a command that ends after this sees that it is gone, and removes its own values.
    (void)::unlinkat(folder_.get(), record_file, 0);
    forget_values();
}

/// Removes what is kept, but not for a command that has begun meanwhile: its record is there before its values are.
void ChangeKeeper::forget_values() {
    const std::vector<std::string> names = kept_names();
    std::string later;
    if (std::ranges::find(names, record_file) != names.end()) {
        const Descriptor record(open_at(folder_.get(), record_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        std::string text(std::size_t{64} << 10U, '\0');
        const ssize_t n = record ? ::read(record.get(), text.data(), text.size()) : 0;
        text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        if (const auto read = header_in(text)) later = fmt::format("{:016x}.", read->id);
    }
    for (const std::string& name : names) {
        if (name == record_file || (!later.empty() && name.starts_with(later))) continue;
        (void)::unlinkat(folder_.get(), name.c_str(), 0);
    }
}

/// Returns whether another record was in the way.
bool ChangeKeeper::create_record() {
    constexpr int tries = 100;  // others may begin at the same time
    constexpr mode_t for_all = 0666;
    int n = 0;
    for (; !record_ && n < tries; ++n) {
        record_ = Descriptor(open_at(folder_.get(), record_file, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, for_all));
        if (record_) break;
        if (errno != EEXIST) break;
        if (::unlinkat(folder_.get(), record_file, 0) != 0 && errno != ENOENT) break;
    }
    if (!record_) return n > 0;
    give_(record_.get());
    Value header = Value::object();
    header.set("tessera_undo", record_version);
    header.set("id", fmt::format("{:016x}", id_));
    header.set("boot", present_boot());
    header.set("writer", temporary_name());
    header.set("what", what_);
    records_ = true;
    if (!write_line(header.dump({.ascii = true}))) lose("");
    return n > 0;
}

void ChangeKeeper::keep_one(int folder, const char* name, const char* fresh, std::string_view key) {
    std::string stamp;
    if (fresh != nullptr) {
        struct stat status {};
        if (::fstatat(folder, fresh, &status, AT_SYMLINK_NOFOLLOW) != 0) return lose(errno_text(errno));
        if (is_coarse(status.st_mtim) && !keeps_nanoseconds(folder, status, true)) {
            return lose("the file system keeps no nanoseconds, so that versions of a file cannot be told apart");
        }
        const auto modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        stamp = fmt::format(R"("size":{},"modified":{},"inode":{},)", status.st_size, modified, status.st_ino);
    }
    const std::uint64_t number = next_++;
    bool had_old = true;
    if (::linkat(folder, name, folder_.get(), kept_name(number).c_str(), 0) != 0) {
        struct stat status {};
        const int error = errno;
        had_old = error != ENOENT || ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
        if (had_old) return lose(fmt::format("no hard link could be made ({})", errno_text(error)));
        if (fresh == nullptr) return;  // nothing is removed
    }
    if (!write_line(fmt::format(R"({{"n":{},{}"old":{},"key":{}}})", number, stamp, had_old,
                                Value(key).dump({.ascii = true})))) {
        return lose(errno_text(errno));
    }
    ++lines_;
}

bool ChangeKeeper::write_line(const std::string& line) {
    // One write() at the end of a file is one step, so that lines of several threads do not mix.
    const std::string text = line + '\n';
    const ssize_t n = ::write(record_.get(), text.data(), text.size());
    if (n >= 0 && std::cmp_not_equal(n, text.size())) errno = ENOSPC;
    return std::cmp_equal(n, text.size());
}

/// From now on nothing is recorded. The record says why, or is removed if it cannot.
void ChangeKeeper::lose(std::string_view why) noexcept {
    if (!records_.exchange(false)) return;
    try {
        Value line = Value::object();
        line.set("lost", why);
        if (!why.empty() && write_line(line.dump({.ascii = true}))) return;
    } catch (const std::exception&) {
        // no memory for a line
    }
    struct stat status {};
    if (::fstat(record_.get(), &status) == 0 && status.st_nlink > 0) (void)::unlinkat(folder_.get(), record_file, 0);
}

void ChangeKeeper::finish() {
    if (!record_) return;
    struct stat status {};
    const bool own = ::fstat(record_.get(), &status) == 0 && status.st_nlink > 0;
    bool good = own && records_;
    if (good && !write_line(fmt::format(R"({{"end":{}}})", lines_.load()))) good = false;
    if (const int why = record_.close()) {
        if (own) (void)::unlinkat(folder_.get(), record_file, 0);
        good = false;
    }
    if (good) return;
    // Another change replaced the record, or not everything could be kept.
    for (std::uint64_t n = 0; n < next_; ++n) (void)::unlinkat(folder_.get(), kept_name(n).c_str(), 0);
}

// ---- reading

namespace {

[[noreturn]] void no_record(std::string_view name, std::size_t line) {
    throw corrupt("{}: line {} is none of a record of changes: they cannot be taken back", name, line);
}

/// The object in a line. Throws no_record.
Value object_of(std::string_view line, std::string_view name, std::size_t number) {
    try {
        Value value = Value::parse(line);
        if (value.is_object()) return value;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
    }
    no_record(name, number);
}

KeptChange change_of(const Value& line) {
    KeptChange change;
    change.number = line.at("n").as_uint64();
    change.had_old = line.at("old").as_bool();
    change.key = line.at("key").as_string();
    change.erases = line.find("inode") == nullptr;
    if (!change.erases) {
        change.stamp.size = line.at("size").as_uint64();
        change.stamp.modified = line.at("modified").as_int64();
        change.stamp.id = line.at("inode").as_uint64();
    }
    require_key(change.key);
    return change;
}

/// Why a record without its last line cannot be taken back; empty if it can.
std::string why_incomplete(const Value& header) {
    if (header.at("boot").as_string() != present_boot() || header.at("boot").as_string().empty()) {
        return "it was interrupted, and the system was restarted since, so that the record may not be complete";
    }
    if (!temporary_writer_has_ended(header.at("writer").as_string())) return "it has not ended";
    return {};
}

/// Takes a record in line by line.
class RecordReader {
public:
    RecordReader(std::string_view name, std::uint64_t size) : name_(name), size_(size) {}

    void take(std::string_view line) {
        ++number_;
        const Value value = object_of(line, name_, number_);
        try {
            take_value(value);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::unsupported) {
                throw e.within(std::string(name_));
            }
            no_record(name_, number_);
        }
    }

    [[nodiscard]] std::size_t line() const { return number_ + 1; }

    KeptChanges finish() {
        if (header_.is_null()) no_record(name_, 1);
        if (!ended_ && read_.refusal.empty()) read_.refusal = why_incomplete(header_);
        return std::move(read_);
    }

private:
    void take_value(const Value& value) {
        if (number_ == 1) {
            read_header(read_, value);
            header_ = value;
            read_.counted = Buffer(static_cast<std::size_t>(2 * size_));
        } else if (const Value* why = value.find("lost")) {
            read_.refusal = "not all that it changed could be kept: " + why->as_string();
        } else if (const Value* end = value.find("end")) {
            ended_ = end->as_uint64() == read_.changes.size();
            if (!ended_) throw corrupt("another number of changes");
        } else {
            read_.changes.push_back(change_of(value));
        }
    }

    std::string_view name_;
    std::uint64_t size_;
    std::size_t number_ = 0;
    KeptChanges read_;
    Value header_;
    bool ended_ = false;
};

}  // namespace

KeptChanges read_kept_changes(const ByteSource& file, std::string_view name) {
    constexpr std::size_t longest = std::size_t{64} << 10U;
    RecordReader reader(name, file.size());
    std::string begun;  // of a line, in an earlier piece
    for_each_piece(file, [&](ByteSpan bytes) {
        std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
            begun += rest.substr(0, end);
            if (begun.size() > longest) no_record(name, reader.line());
            reader.take(begun);
            begun.clear();
            rest.remove_prefix(end + 1);
        }
        if (begun.size() + rest.size() > longest) no_record(name, reader.line());
        begun += rest;
    });
    // A line without an end was being written when its process was killed: that change did not happen.
    return reader.finish();
}

std::string description_of(const ByteSource& file) {
    try {
        constexpr std::uint64_t most = std::uint64_t{64} << 10U;
        const Buffer bytes = read_range(file, 0, std::min(file.size(), most));
        const auto read = header_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        return read ? read->what : std::string();
    } catch (const Error&) {
        return {};
    }
}

}  // namespace tessera
