// Copies of arrays: what to open, the engine (copy_array.h), and NewArray, an array that appears only when it is
// complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/copy_array.h>
#include <tessera/locate.h>

namespace tessera {

/// Opens a path as a source: an array in a directory, an array file, "file.npz::member", or a field of structures in
/// any of them, "table.zarr::close". Throws not_found, naming what is at the path instead.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options = {});
/// The same of what was located, without asking the file system again.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(const Located& at, const ArrayFileOptions& options = {});

class DestinationLock;

/// The present content of the place for a new array.
enum class Occupant : std::uint8_t { nothing, array, unfinished, other };
[[nodiscard]] Occupant occupant(const std::filesystem::path& path, const StoreOptions& options = {});

/// Removes an unfinished copy; waits for a run that is still making it. Throws not_found if there is none, and
/// already_exists, naming it, if the directory holds anything else.
void remove_unfinished(const std::filesystem::path& path, const StoreOptions& options = {});

/// What NewArray may do if something is already there.
struct Existing {
    bool overwrite = false;   ///< replace an array, or an unfinished copy of our own; never anything else
    bool resume = false;      ///< resume an unfinished copy of the same source into the same metadata
    StoreOptions store = {};  ///< how the destination is opened
    /// The lock of the destination, held by the caller while the NewArray lives; null: the NewArray takes one itself.
    const DestinationLock* lock = nullptr;
    /// Committed with others by commit_together(): creating it defers waiting for the disk to that.
    bool together = false;
};

/// Throws already_exists, naming what is there, unless `existing` allows it.
void require_may_replace(const std::filesystem::path& path, Occupant there, const Existing& existing);

/// A new array that appears only when it is complete: metadata last, and a marker in `.tessera/` until then. With
/// `overwrite`, an old array stays until commit() and is then replaced in one step; in stores without folders in
/// several, between which no array is there. If another run makes the same destination, the constructor waits for it
/// and then finds its result. Thread rule: one thread.
class NewArray {
public:
    /// `made_from` describes the source, for `info` and to recognise an unfinished copy of it. If something is there
    /// that `existing` does not allow, throws already_exists, naming it.
    NewArray(const std::filesystem::path& path, const ArrayOptions& options, Existing existing,
             std::string_view made_from);
    NewArray(const std::filesystem::path& path, const Dialect& dialect, ArrayMetadata metadata, Existing existing,
             std::string_view made_from);
    ~NewArray();  ///< without commit() or keep(): removes what was written
    NewArray(NewArray&&) noexcept;
    NewArray& operator=(NewArray&&) noexcept;

    [[nodiscard]] Array& array();
    /// Whether this resumes an unfinished copy, so that some chunks exist already.
    [[nodiscard]] bool resumed() const;
    /// Publishes the metadata, moves the array into place, and removes the marker and the replaced array.
    Array commit();
    /// Whether its files and locks are released until the commit (rest_together()).
    [[nodiscard]] bool rests() const;
    /// Leaves the array as an unfinished copy that can be resumed. Returns its path.
    std::filesystem::path keep();

private:
    friend void commit_together(std::span<NewArray* const> arrays);
    friend void rest_together(std::span<NewArray* const> arrays);
    struct State;
    std::unique_ptr<State> state_;
};

/// Commits several arrays with as few waits for the disk as for one. All chunks are on the disk before any metadata is
/// published, and all metadata before any marker is removed. If it throws, the destructors keep arrays whose metadata
/// was already published.
void commit_together(std::span<NewArray* const> arrays);

/// Releases the files of written arrays until commit_together(), for more arrays than can have their files open at once
/// (each takes about four). Makes their chunks durable and closes their files. Until the commit, only the marker and
/// the lock of an enclosing hierarchy keep others away. If somebody removes such an array meanwhile, its commit throws
/// io.
void rest_together(std::span<NewArray* const> arrays);

}  // namespace tessera
