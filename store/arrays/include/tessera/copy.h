// copy_array: the one engine for import, export, rechunking, recompression and change of format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/destination_lock.h>
#include <tessera/locate.h>

namespace tessera {

/// A decoded block of this size is still in the processor's cache when the sink reads it.
constexpr std::int64_t passing_block = std::int64_t{1} << 20;

struct CopyOptions {
    IoOptions io = {};  ///< io.max_memory counts blocks and the scratch of every thread
    /// The part of the source to copy, with the shape of the sink; nullopt: all.
    std::optional<Selection> selection = std::nullopt;
    /// For resumed copies: whether a region of the sink is complete already and need not be copied. Null: copy
    /// everything.
    std::function<bool(const Region&)> done = nullptr;
    /// Block-sized buffers that the sink allocates per block. The memory budget is divided by it.
    int held = 1;
    /// Upper limit in bytes for blocks that would gain nothing from being larger: `passing_block` for a sink that only
    /// reads elements.
    std::int64_t ample = std::int64_t{8} << 20;
    /// Whether a block may be written again after write() threw Error(budget) because other threads held the memory.
    bool repeatable = true;
};

/// Copies `source` (or a selection of it) to `sink` and finishes the sink. Shapes and dtypes must agree (byte order
/// apart). A temporary file (in $TMPDIR, else /var/tmp) is used if a compressed file would otherwise be read several
/// times, or chunks decoded more than twice. Blocks follow the sink, so that each destination chunk is written once. A
/// budget below one chunk per thread lowers the number of threads; one below a single chunk throws Error(budget),
/// naming the minimum.
void copy_array(const ArraySource& source, ArraySink& sink, const CopyOptions& options = {});

/// Opens a path as a source: an array in a directory, an array file, "file.npz::member", or a field of structures in
/// any of them, "table.zarr::close". Throws not_found, naming what is at the path instead.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options = {});
/// The same of what was located, without asking the file system again.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(const Located& at, const ArrayFileOptions& options = {});

/// The present content of the place for a new array.
enum class Occupant : std::uint8_t { nothing, array, unfinished, other };
[[nodiscard]] Occupant occupant(const std::filesystem::path& path);

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
/// (see DestinationLock) and then finds its result. Thread rule: one thread.
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
