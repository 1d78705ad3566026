// What a command replaces in an array, kept for undo() as hard links. Private to the store module.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/descriptor.h>

#include "journal.h"

namespace tessera {

/// Keeps what the names in a directory store lose, from its construction to its destruction. See kept_changes.cpp.
/// Thread rule: before() may be called from several threads at once.
class ChangeKeeper {
public:
    /// Opens the folder for the kept values, and makes it if `make`; on failure none, and errno is set.
    using OpenFolder = std::function<Descriptor(bool make)>;
    /// Gives an open file the permissions of the array's files.
    using GivePermissions = std::function<void(int file)>;

    /// For the array at `prefix`. `what` describes the changes, for a person. Without `keep`, the first change only
    /// removes what was kept before, because undo() takes back the last change or none.
    ChangeKeeper(std::string_view prefix, std::string what, bool keep, OpenFolder open, GivePermissions give);
    ~ChangeKeeper();
    ChangeKeeper(const ChangeKeeper&) = delete;
    ChangeKeeper& operator=(const ChangeKeeper&) = delete;

    /// Called before the file `fresh` gets the name `name` in the same folder, or before `name` is removed (`fresh` is
    /// null). `key` is the key of `name`, whose lock the caller holds. If the old value cannot be kept, the record says
    /// so; the change itself is never prevented.
    void before(int folder, const char* name, const char* fresh, std::string_view key) noexcept;

    /// Whether something was changed, and all of it was kept so far.
    [[nodiscard]] bool has_kept() const { return records_; }

private:
    [[nodiscard]] bool begin();
    [[nodiscard]] std::vector<std::string> kept_names() const;
    void forget_earlier();
    void forget_values();
    [[nodiscard]] bool create_record();
    void keep_one(int folder, const char* name, const char* fresh, std::string_view key);
    /// Writes one line in one step; returns whether that succeeded.
    [[nodiscard]] bool write_line(const std::string& line);
    void lose(std::string_view why) noexcept;
    void finish();

    std::string below_;  ///< of the array's keys: its prefix and '/', or nothing
    std::string what_;
    bool keep_;
    OpenFolder open_;
    GivePermissions give_;
    std::uint64_t id_;
    std::mutex mutex_;  ///< for the first change
    bool begun_ = false;
    Descriptor folder_;
    Descriptor record_;
    std::size_t header_ = 0;  ///< bytes of its first line
    std::atomic<bool> records_ = false;
    std::atomic<std::uint64_t> next_ = 0;   ///< number of the next kept value
    std::atomic<std::uint64_t> lines_ = 0;  ///< changes in the record
};

}  // namespace tessera
