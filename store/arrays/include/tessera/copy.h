// copy_array: import, export, rechunk, recompress and change of format are this one engine.
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

namespace tessera {

/// A block of this size is still in the processor's cache when the sink looks at it after it was decoded.
constexpr std::int64_t passing_block = std::int64_t{1} << 20;

struct CopyOptions {
    IoOptions io = {};  ///< io.max_memory counts blocks and the scratch of every thread
    /// What to copy of the source; none: all. The sink has its shape.
    std::optional<Selection> selection = std::nullopt;
    /// For resumed copies: whether a region of the sink is complete already and need not be copied. Null: copy
    /// everything.
    std::function<bool(const Region&)> done = nullptr;
    /// Block-sized buffers that the sink allocates per block. The memory budget is divided by it.
    int held = 1;
    /// Blocks need not be larger than this many bytes once larger ones save nothing: `passing_block` for a sink that
    /// only looks at elements.
    std::int64_t ample = std::int64_t{32} << 20;
    /// Whether the sink takes a block again whose write() threw Error(budget), as memory that is short beside other
    /// threads makes it.
    bool repeatable = true;
};

/// Copies `source` (or a selection of it) to `sink` and finishes the sink. Shapes and dtypes must agree (byte order
/// apart). A compressed file that would have to be read again and again, or chunks that would be decoded more than
/// twice over, go through a temporary file (in $TMPDIR, else /var/tmp) instead. Blocks follow the sink, so that each
/// destination chunk is written once; a budget below one chunk per thread lowers the number of threads, one below a
/// single chunk is Error(budget) naming the least that works.
void copy_array(const ArraySource& source, ArraySink& sink, const CopyOptions& options = {});

/// Opens whatever a path names as a source: an array in a directory, an array file, "file.npz::member", and a field of
/// structures behind any of them, "table.zarr::close".
/// Throws not_found, saying what is there instead.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options = {});

/// What lies where an array is to be made.
enum class Occupant : std::uint8_t { nothing, array, unfinished, other };
[[nodiscard]] Occupant occupant(const std::filesystem::path& path);

/// Removes an unfinished copy, once nobody makes it any more. Throws not_found where there is none, already_exists,
/// naming it, for a directory that holds anything else.
void remove_unfinished(const std::filesystem::path& path, const StoreOptions& options = {});

/// What NewArray may do where something is already.
struct Existing {
    bool overwrite = false;   ///< replace an array, or an unfinished copy of our own; never anything else
    bool resume = false;      ///< go on with an unfinished copy of the same source into the same metadata
    StoreOptions store = {};  ///< how its place is opened
    /// Of the place, held by the caller for as long as the NewArray lives; null: the NewArray takes one itself.
    const DestinationLock* lock = nullptr;
    /// One of several that commit_together() ends: making it waits for the disk no more than writing it does.
    bool together = false;
};

/// A new array that appears only when it is complete: metadata last, and a marker in `.tessera/` until then. With
/// `overwrite` an old array stays until commit(), and is then replaced in one step. Who makes one where another run
/// does waits for that (see DestinationLock), and then finds what it has made.
/// Thread rule: one thread.
class NewArray {
public:
    /// `made_from` says what is copied, for `info` and to recognise the same copy again.
    /// Throws already_exists, naming what is there, unless nothing is or `existing` allows it.
    NewArray(const std::filesystem::path& path, const ArrayOptions& options, Existing existing,
             std::string_view made_from);
    NewArray(const std::filesystem::path& path, const Dialect& dialect, ArrayMetadata metadata, Existing existing,
             std::string_view made_from);
    ~NewArray();  ///< without commit() or keep(): removes what was written
    NewArray(NewArray&&) noexcept;
    NewArray& operator=(NewArray&&) noexcept;

    [[nodiscard]] Array& array();
    /// Whether this goes on with an unfinished copy, so that some chunks are there already.
    [[nodiscard]] bool resumed() const;
    /// Publishes the metadata, puts the array in its place, removes the marker and what was there before.
    Array commit();
    /// Whether its files and locks are given back until it is committed (rest_together()).
    [[nodiscard]] bool rests() const;
    /// Leaves what is written as an unfinished copy, to go on with later. Returns where it lies.
    std::filesystem::path keep();

private:
    friend void commit_together(std::span<NewArray* const> arrays);
    friend void rest_together(std::span<NewArray* const> arrays);
    struct State;
    std::unique_ptr<State> state_;
};

/// commit() of several, with as few waits for the disk as for one: all their chunks are on the disk before the first
/// metadata are seen, and all metadata before the first marker goes. Those that were not in place when it throws are
/// not removed by their destruction where their metadata are seen.
void commit_together(std::span<NewArray* const> arrays);

/// Arrays that are written and wait for the commit_together() of more than can have their files open at once (each
/// takes about four): their chunks are made durable, and their files closed. Until the commit nothing but their marker,
/// and the lock of a hierarchy around them, keeps others away; whoever takes one away meanwhile makes its commit throw
/// io.
void rest_together(std::span<NewArray* const> arrays);

}  // namespace tessera
