// Edit: a batch of changes to an array, or to several arrays of a group, that take effect all together or not at all.
// Undoable and undo(): reverting changes.
//
// What is kept, replaced and counted here are stored values: chunks (with shards: shards) and documents of metadata and
// attributes, each under its key in the store. They are not elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>

namespace tessera {

class Group;

struct EditOptions {
    bool keep_old = true;  ///< for undo(): keep the old stored values, as hard links if the store supports them
};

/// Any number of writes, appends, resizes and attribute changes to one array, or to the arrays of a group, through the
/// handles that array() gives. Nobody else sees them before commit(). A crash or a power failure leaves all of them or
/// none, in all arrays. Until the commit, new values lie in each array's `.tessera/batch/`, so that a batch of any size
/// takes little memory.
///
/// While an Edit lives, all other writers of the array wait, in other processes too; of a group, the writers of all
/// arrays below it and of its attributes. Readers do not wait: while commit() runs, they may see only some of the
/// changes. A batch is atomic with respect to crashes, but not isolated.
/// Thread rule: begun, committed and destroyed by one thread, which must not write to the array through another handle
/// meanwhile (that throws, rather than deadlocks). The handle may be used from several threads.
class Edit {
public:
    /// Throws unsupported for a store without batches (a zip).
    explicit Edit(const Array& array, const EditOptions& options = {});
    /// Over the arrays below a group, which all are locked, in the order of their real paths (two file descriptors for
    /// each).
    explicit Edit(const Group& group, const EditOptions& options = {});
    ~Edit();  ///< without commit(): nothing has happened
    Edit(Edit&&) noexcept;
    Edit& operator=(Edit&&) noexcept;

    [[nodiscard]] Array& array();
    Array* operator->() { return &array(); }
    /// Of a group: the array at a path below it, such as "fields/height". Throws not_found for a path without an array,
    /// and invalid_argument for one behind a link: a batch changes only what lies in the group.
    [[nodiscard]] Array& array(std::string_view path);

    /// Applies all changes, as durable as the store's Durability says. First checks that every target can be changed.
    /// Once the batch is recorded, it counts as done: a later failure throws ErrorCode::recorded, the next opening
    /// completes the batch, and the caller must not repeat it. After any other error, nothing has changed. Do not use
    /// the Edit or its handle afterwards. Returns the number of stored values that changed: chunks (with shards:
    /// shards) and documents, not elements.
    ///
    /// Other handles read the new elements at once. They learn of a new shape, and of other new metadata, only from
    /// Array::refresh(). The handle from which the Edit was made is one of them.
    std::int64_t commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

struct UndoOptions {
    bool keep_old = true;   ///< false: keep nothing, and discard the stored values kept by earlier changes
    std::string what = {};  ///< describes the changes, for a person: a command's words
};

/// From construction to destruction, keeps the stored values that changes to one array replace, as hard links, for
/// undo(). The changes take effect one by one, as without it. It covers changes through `array`, its copies and its
/// attributes, but not through other handles. The first change discards the values kept before; so without any change,
/// the previous one can still be undone. Keeping costs a few system calls for each value, never waits for the disk, and
/// never makes a change fail. If it is impossible (no hard links, times without nanoseconds, stores other than a
/// directory), undo() says so. Thread rule: construct and destroy it while no thread changes the array through `array`;
/// at most one at a time for each handle.
class Undoable {
public:
    explicit Undoable(const Array& array, const UndoOptions& options = {});
    /// The same for the attributes of a group, and nothing below it.
    explicit Undoable(const Group& group, const UndoOptions& options = {});
    ~Undoable();
    Undoable(Undoable&&) noexcept;
    Undoable& operator=(Undoable&&) noexcept;

    /// Whether anything was changed and all old values were kept so far, so that undo() can revert the changes.
    [[nodiscard]] bool has_kept() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Reverts the last kept change of an array: a batch, or the changes of an Undoable. The reversion is a batch of its
/// own, so that a second undo() restores the change. Of an interrupted change, the completed part is reverted. Throws
/// not_found if there is no change to revert, unsupported if it could not be kept or is still in progress, and
/// invalid_argument, naming the value, if a value that it wrote has changed since. Returns the number of stored values
/// that changed, as Edit::commit() does. After it, as after a commit, every handle needs Array::refresh() to learn of
/// another shape: `array`, too.
std::int64_t undo(const Array& array);

/// Reverts the last change of a group, in one step: a batch over its arrays, or a change of its attributes that an
/// Undoable kept. A second undo() restores it. Throws as undo() of an array does, which refuses to revert an array's
/// part of such a batch alone. Returns the number of stored values that changed. Handles to the arrays need
/// Array::refresh(), as above.
std::int64_t undo(const Group& group);

/// The old values for undo().
struct KeptForUndo {
    std::string what;         ///< UndoOptions::what; empty for a batch
    std::int64_t values = 0;  ///< number of old stored values: chunks (with shards: shards) and documents, not elements
    std::uint64_t bytes = 0;  ///< of all files; files that a snapshot links too take no extra room
};
/// For the array or group at a place; nullopt if nothing is kept. Queries the size of each file.
[[nodiscard]] std::optional<KeptForUndo> kept_for_undo(const PlaceView& place);

// The log of an array or a group: a line for each recorded change. The program writes one for each command; the library
// writes none by itself. A line has the time, user and host, and the words of a command, separated by tabs:
// "2026-11-23T09:30:00Z", "ada@lovelace", "tessera set grid.zarr 0:10 5".
//
// It lies in `.tessera/log`, which readers, copies, seals and sums ignore. Anybody may read, truncate or remove it.

struct LogLine {
    std::string time;    ///< "2026-11-23T09:30:00Z"
    std::string who;     ///< "user@host"
    std::string change;  ///< the words of a command
};

/// Appends a line to the log of the array or group in a directory. The line is written in one step, so that lines of
/// several writers never mix. Control characters and backslashes are escaped, and a line is cut after a few KiB. Does
/// not wait for the disk, follows no link below the directory, and creates no directory except `.tessera`. Returns
/// false if the line cannot be written. That throws nothing, because the change itself is already done.
bool append_log(const std::filesystem::path& directory, const LogLine& line) noexcept;

/// The last lines of the log in a directory, oldest first, from at most `most` bytes of it; empty without a log. Lines
/// that do not have this form are omitted. Throws io.
[[nodiscard]] std::vector<LogLine> read_log(const std::filesystem::path& directory, std::size_t most = 4U << 20U);

/// A line with the present time, and the user and host of this process.
[[nodiscard]] LogLine log_line(std::string change);

}  // namespace tessera
