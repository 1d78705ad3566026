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
#include <tessera/key_value_store.h>

namespace tessera {

/// Where old values are kept, below the array.
inline constexpr std::string_view undo_folder = ".tessera/undo";
/// The record of a command's changes, in that folder. Batches have a journal there instead.
inline constexpr std::string_view changes_name = "changes";

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
    [[nodiscard]] std::string kept_name(std::uint64_t number) const;
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
    std::atomic<bool> records_ = false;
    std::atomic<std::uint64_t> next_ = 0;   ///< number of the next kept value
    std::atomic<std::uint64_t> lines_ = 0;  ///< changes in the record
};

/// A change in such a record.
struct KeptChange {
    bool erases = false;
    bool had_old = false;      ///< the old value is kept
    std::uint64_t number = 0;  ///< of the kept value
    ValueStamp stamp;          ///< of the new value, unless it erases
    std::string key;           ///< relative to the array
};

struct KeptChanges {
    std::uint64_t id = 0;
    std::string what;
    std::string refusal;  ///< why they cannot be taken back; empty if they can
    std::vector<KeptChange> changes;
    Buffer counted;  ///< as much memory as the list and what is made of it take, so that the budget binds
};

/// The name of a kept value in the folder.
[[nodiscard]] std::string kept_name(std::uint64_t id, std::uint64_t number);

/// Reads a record. Throws corrupt, naming `name`, if it is none, and budget if it does not fit in memory. Does not
/// check that its keys belong to the array.
[[nodiscard]] KeptChanges read_kept_changes(const ByteSource& file, std::string_view name);
/// Only the description in it; empty if it cannot be read.
[[nodiscard]] std::string description_of(const ByteSource& file);

}  // namespace tessera
