// What a command replaces, kept for undo().
//
// How it works
// ------------
// A directory store replaces files only by rename, and never writes into a file that has its final name. So a hard link
// to the old file keeps the old value, without a copy. Right before a name gets a new file, or is removed, the old file
// gets a second name `.tessera/undo/ID.N`, and the record `.tessera/undo/changes` (journal.cpp) gets a line: the
// key, N, and the stamps (size, time, inode) of the old value, if there was one, and of the new one. The line comes
// first and the rename after it. So after a kill each change in the record either happened, and the new stamp is in
// place, or did not, and the old file is. Undo can tell the two apart from what a later writer put there, which it
// never replaces.
//
// A key that changes several times has several lines, and each keeps what was there right before: if one of these is
// not what the line before it announced, somebody else wrote in between.
//
// The record is made at the first change, after everything that was kept before was removed. So a command that fails
// before it changes anything leaves the last change to be undone. Commands may run at the same time. The one that
// begins last owns the folder: it removes the record of the one before, and then the values that no later record is
// about. A command whose record has lost its name removes its own values when it ends.
//
// Nothing here waits for the disk. The first line of a complete record says how many there are. A record without it was
// interrupted: if its process is gone and the system was not restarted since, everything in it is as it was written,
// and can be taken back. After a restart a part of it may be missing, so it is refused.
//
// If a value cannot be linked (no hard links, another file system, no room), there is no undo, and the record says why.
// Nothing is ever copied.
#include "kept_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <random>
#include <system_error>
#include <utility>

#include "beneath.h"
#include "keys.h"
#include "versions.h"

namespace tessera {

namespace {

constexpr const char* record_file = undo_record_key.data() + undo_folder.size() + 1;

std::uint64_t random_id() {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
}

ValueStamp stamp_of(const struct stat& status) {
    return {.size = static_cast<std::uint64_t>(status.st_size),
            .modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
            .id = status.st_ino};
}

std::string errno_text(int error) {
    return std::generic_category().message(error);
}

}  // namespace

ChangeKeeper::ChangeKeeper(std::string_view prefix, std::string what, bool keep, OpenFolder open, GivePermissions give)
    : below_(prefix.empty() ? std::string() : fmt::format("{}/", prefix)),
      what_(std::move(what)),
      keep_(keep),
      open_(std::move(open)),
      give_(std::move(give)),
      id_(random_id()) {}

ChangeKeeper::~ChangeKeeper() {
    try {
        finish();
    } catch (const std::exception&) {
        // Without its end the record counts as interrupted, which is right.
    }
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
        if (const auto header = header_of(text)) later = fmt::format("{:016x}.", header->id);
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
        record_ = Descriptor(open_at(folder_.get(), record_file, O_WRONLY | O_CREAT | O_EXCL, for_all));
        if (record_) break;
        if (errno != EEXIST) break;
        if (::unlinkat(folder_.get(), record_file, 0) != 0 && errno != ENOENT) break;
    }
    if (!record_) return n > 0;
    give_(record_.get());
    records_ = true;
    const std::string header = header_line({.id = id_, .of_command = true, .what = what_});
    header_ = header.size();
    if (!write_line(header)) lose("");
    return n > 0;
}

void ChangeKeeper::keep_one(int folder, const char* name, const char* fresh, std::string_view key) {
    Journal::Entry entry{.kind = Journal::Entry::Kind::erase, .had_old = true, .stamp = {}, .key = std::string(key)};
    if (fresh != nullptr) {
        struct stat status {};
        if (::fstatat(folder, fresh, &status, AT_SYMLINK_NOFOLLOW) != 0) return lose(errno_text(errno));
        if (is_coarse(status.st_mtim) && !keeps_nanoseconds(folder, status, true)) {
            return lose("the file system keeps no nanoseconds, so that versions of a file cannot be told apart");
        }
        entry.kind = Journal::Entry::Kind::put;
        entry.stamp = stamp_of(status);
    }
    entry.number = next_++;
    const std::string kept = value_name(id_, entry.number);
    struct stat status {};
    if (::linkat(folder, name, folder_.get(), kept.c_str(), 0) == 0) {
        // By its new name, which nobody else changes.
        entry.old_known = ::fstatat(folder_.get(), kept.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (entry.old_known) entry.old = stamp_of(status);
    } else {
        const int error = errno;
        entry.had_old =
            error != ENOENT || ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
        if (entry.had_old) return lose(fmt::format("no hard link could be made ({})", errno_text(error)));
        if (fresh == nullptr) return;  // nothing is removed
    }
    std::string line;
    append_change(line, entry);
    if (!write_line(line)) return lose(errno_text(errno));
    ++lines_;
}

bool ChangeKeeper::write_line(const std::string& line) {
    // One write() is one step, which also moves the place of the next, so that lines of several threads do not mix.
    const ssize_t n = ::write(record_.get(), line.data(), line.size());
    if (n >= 0 && std::cmp_not_equal(n, line.size())) errno = ENOSPC;
    return std::cmp_equal(n, line.size());
}

/// From now on nothing is recorded. The record says why, or is removed if it cannot.
void ChangeKeeper::lose(std::string_view why) noexcept {
    if (!records_.exchange(false)) return;
    try {
        if (!why.empty() && write_line(lost_line(why))) return;
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
    if (good) {
        const EndMark end = end_mark(header_, lines_);
        good = std::cmp_equal(::pwrite(record_.get(), end.text.data(), end.text.size(), static_cast<off_t>(end.at)),
                              end.text.size());
    }
    if (const int why = record_.close()) {
        if (own) (void)::unlinkat(folder_.get(), record_file, 0);
        good = false;
    }
    if (good) return;
    // Another change replaced the record, or not everything could be kept.
    for (std::uint64_t n = 0; n < next_; ++n) (void)::unlinkat(folder_.get(), value_name(id_, n).c_str(), 0);
}

}  // namespace tessera
