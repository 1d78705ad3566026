// Copies: of arrays, by the engine (copy_array.h) and NewArray, an array that appears only when it is complete; and of
// hierarchies. copy_hierarchy copies all arrays and groups at and below a path to another path; sync_hierarchy carries
// only what differs.
//
// The source is an array, a group, a plain folder or a zip of arrays, an array file or a member of one. The end of the
// destination's name says what it becomes: an array file (".npy", ".npz::name"), a zip (".zip"), or else a directory.
// Several arrays become one directory, one zip, or one array file of a format that holds several.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/copy_array.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/key_value_store.h>
#include <tessera/locate.h>
#include <tessera/parallel.h>
#include <tessera/place.h>

namespace tessera {

/// Opens a path as a source: an array in a directory, an array file, "file.npz::member", or a field of structures in
/// any of them, "table.zarr::close". Throws not_found, naming what is at the path instead.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options = {});
/// The same of what was located, without asking the file system again.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(const Located& at, const ArrayFileOptions& options = {});

class DestinationLock;

/// The present content of the place for a new array. `removed`: the rest of an array whose removal was interrupted,
/// which a new array takes the place of.
enum class Occupant : std::uint8_t { nothing, array, unfinished, removed, other };
[[nodiscard]] Occupant occupant(const std::filesystem::path& path, const StoreOptions& options = {});

/// Removes an unfinished copy, or the rest of an array that was being removed; waits for a run that is still making it.
/// Throws not_found if there is none, and already_exists, naming it, if the directory holds anything else.
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
    bool resumable = true;  ///< whether a message offers to resume what is unfinished
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

/// The members in which a copy differs from its source. All others come from the source, or from the defaults of
/// ArrayOptions if the source is not an array in a store.
struct ArrayWishes {
    std::optional<Shape> chunks = std::nullopt;
    std::optional<Shape> shards = std::nullopt;  ///< empty: no sharding
    /// Lengths of chunks along dimensions of these names, in place of those that there would be.
    std::vector<std::pair<std::string, std::int64_t>> named_chunks = {};
    /// Instead of `chunks` or `shards`: as in ArrayOptions.
    std::optional<std::vector<ChunkEdges>> edges = std::nullopt;
    std::optional<std::vector<ChunkEdges>> shard_edges = std::nullopt;
    std::optional<std::string> codec = std::nullopt;  ///< "delta,zstd:3"
    std::optional<Value> fill = std::nullopt;
    std::optional<std::string> format = std::nullopt;  ///< "v3"
    /// Without a format, and for data that have none: that of what they were made from, and where there is none,
    /// default_format(preferred_format).
    std::optional<std::string> like_format = std::nullopt;
    std::string preferred_format = {};
    /// Whether v3 is taken, without a format, where the source's or the default one cannot express what is asked. Not
    /// for one of several arrays, which share a format.
    bool may_take_v3 = true;
    std::optional<std::string> separator = std::nullopt;
    std::optional<std::string> structures = std::nullopt;  ///< as ArrayOptions::structures
    std::optional<Order> order = std::nullopt;             ///< of the elements in a chunk
    std::optional<std::vector<std::optional<std::string>>> dimension_names = std::nullopt;
};

/// The complete metadata of an array to be made.
struct PlannedArray {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    std::vector<Note> changes;  ///< sentences about what differs from the source
    /// Why chunks are encoded anew; nullopt if those of the source are copied as they are.
    std::optional<std::string> recode;
};

/// Several arrays in groups that lie at no path: what is made of the arrays of other groups or files.
struct ArraySet {
    struct One {
        std::string path;                                    ///< in the set: "t", "model/t"
        std::function<std::unique_ptr<ArraySource>()> open;  ///< called more than once
        /// Sets what the wishes for the new array leave open; null: nothing.
        std::function<void(ArrayWishes& wishes)> complete = nullptr;
    };
    std::vector<One> arrays;             ///< each at another path
    std::vector<ArrayFileGroup> groups;  ///< of which the one named "" is the whole
    const Dialect* like = nullptr;       ///< the format of groups where none is chosen; null: the usual one
    bool consolidated = false;           ///< whether the copy gets consolidated metadata

    [[nodiscard]] const One& at(std::string_view path) const;
};

struct HierarchyOptions {
    /// Changes applied to every array. Without a format here, the arrays get that of the group around the destination,
    /// if there is one.
    ArrayWishes arrays = {};
    /// Fills of individual arrays, by path below the source. They take precedence over `arrays.fill`.
    std::vector<std::pair<std::string, Value>> fills = {};
    /// The element that stands for a fill that is given, in one of the arrays; null: the fill itself.
    std::function<Value(const ArraySource& array, const Value& fill)> fill_code = nullptr;
    /// Copy only this part of a single array: "10:20, ::2".
    std::optional<std::string> selection = std::nullopt;
    /// Whether a node of a hierarchy is left out, with everything below it; null: none is. Called with paths below the
    /// source.
    std::function<bool(const std::string& path)> exclude = nullptr;
    /// Wraps each opened array; the copy reads the result. Null: the array itself.
    std::function<std::unique_ptr<ArraySource>(std::unique_ptr<ArraySource> opened)> view = nullptr;

    /// Opens a source that is not at a path, such as several joined arrays; null: `source` is a path. Called more than
    /// once.
    std::function<std::unique_ptr<ArraySource>()> open = nullptr;
    /// What is copied in place of what lies at a path; null: that. All of it appears, or nothing.
    std::shared_ptr<const ArraySet> set = nullptr;
    /// With `open` and `set`: identifies the source, to recognise its unfinished copy.
    std::string made_from = {};

    bool overwrite = false;  ///< replace an existing destination, once the new one is complete
    bool resume = false;     ///< resume an unfinished copy, and leave one on failure
    bool link = false;       ///< hard links in place of copies of chunk files that stay valid
    bool verify = false;     ///< decode chunk files that stay valid before they are copied or linked
    bool dry_run = false;    ///< plan only: nothing is written
    /// Leave out attributes of groups for which the new format has no place, with a note; otherwise they are an error.
    bool drop_attributes = false;
    /// Whether a copied hierarchy also replaces an existing one if some source arrays cannot be read. Otherwise it is
    /// written beside the destination, under another name (CopiedHierarchy::path).
    bool skip_unreadable = false;

    // Of array files.
    int deflate_level = 0;                    ///< for .npz: 0 stores, 1 to 9 deflates
    std::vector<std::string> unlimited = {};  ///< for netCDF and HDF5: dimensions that are to grow, beside the source's
    bool object_strings = false;              ///< for .npy and .npz: variable-length strings as Python objects
    bool reverse_dims = false;                ///< for .ra, on either side
    /// For a source file without a dtype, as in ArrayFileOptions.
    std::optional<DType> dtype = std::nullopt;
    std::optional<bool> header = std::nullopt;

    IoOptions io = {};
    StoreOptions from = {};   ///< how a source that is a path is opened, always to read
    StoreOptions store = {};  ///< how the destination is opened
    /// Called with a sentence for each difference from the source; may be null.
    std::function<void(const Note& note)> note = nullptr;
    /// How to list the arrays, for the error that several of them cannot become one file.
    std::string list_hint = {};
};

/// An array to be copied.
struct PlannedCopy {
    std::string source;  ///< as open_source takes it
    std::string node;    ///< its path below the source and the destination; "" for a single array
    PlannedArray plan;
};

/// An array that was made.
struct CopiedArray {
    std::string path;
    DType dtype;
    Shape shape;
    std::optional<Shape> chunk_shape;    ///< nullopt in an array file
    std::int64_t chunks = 0;             ///< stored; with shards, shards
    std::optional<std::uint64_t> bytes;  ///< stored; nullopt for one of several arrays in a file
    std::string_view format = {};        ///< "zmeta"; empty in an array file
    Shape shard_shape = {};              ///< empty without shards

    [[nodiscard]] std::uint64_t logical() const { return static_cast<std::uint64_t>(byte_count(shape, dtype.size())); }
};

/// An array of several that cannot be read.
struct LeftOut {
    std::string node;    ///< its path below the source
    std::string source;  ///< as open_source takes it
    std::string why;
};

struct CopiedHierarchy {
    /// The destination, or another path if the existing destination was not replaced because arrays were left out.
    std::string path = {};
    std::vector<PlannedCopy> planned = {};  ///< empty if the destination is an array file
    std::vector<CopiedArray> made = {};     ///< empty after a dry run
    std::vector<LeftOut> left_out = {};
    /// Folders and links of the source that the walk did not enter, so that the copy lacks them.
    std::vector<PassedFolder> passed = {};
    std::uint64_t bytes = 0;  ///< stored, in all
    bool one_file = false;    ///< several arrays in one array file
};

/// Copies everything at and below `source`. Arrays of a hierarchy that cannot be read (corrupt, unsupported) are left
/// out and reported; any other failure is thrown, and leaves the destination as it was, apart from an unfinished copy
/// if `resume`. The destination is locked from before the first look at it.
/// Throws already_exists, invalid_argument, unsupported, and the errors of opening, reading and writing.
CopiedHierarchy copy_hierarchy(const std::string& source, const std::string& destination,
                               const HierarchyOptions& options = {});
/// The same for one array that is already open, or computed as it is read. Chunks of an Array are copied as they are
/// where possible. `options.made_from` identifies the source, to recognise its unfinished copy.
CopiedHierarchy copy_hierarchy(const ArraySource& source, const std::string& destination,
                               const HierarchyOptions& options = {});

/// The description of an array that was made.
[[nodiscard]] CopiedArray copied_array(const std::string& path, const Array& array);

/// The members of a whole file of several arrays; empty for everything else.
[[nodiscard]] std::vector<std::string> several_members(const Located& at);

/// The group that lies there (a plain folder or zip with arrays in it is one too); nullopt for an array or a file.
[[nodiscard]] std::optional<Group> group_at(const Located& at);

/// As open_source(), but throws the error of the file's reader for objects that cannot be read.
[[nodiscard]] std::unique_ptr<ArraySource> open_readable_source(const Located& at,
                                                                const ArrayFileOptions& options = {});

struct SyncOptions {
    bool dry_run = false;  ///< only counts
    bool all = false;      ///< reads what is known to be equal, too
    IoOptions io = {};
    StoreOptions store = {};  ///< how the destination is opened
};

struct Synced {
    std::int64_t arrays = 0;
    std::int64_t made = 0;     ///< of these, arrays that were not there, and are copied whole
    std::int64_t same = 0;     ///< values (chunks, shards) that are the same on both sides
    std::int64_t unread = 0;   ///< of these, known to be so by the stamps of both files, and not read
    std::int64_t carried = 0;  ///< values that differ, or were not there
    std::int64_t erased = 0;   ///< values that the source does not have
    std::uint64_t bytes = 0;   ///< of the carried values
};

/// Makes each array at and below `destination` that is also at `source` equal to it: chunks as they are stored,
/// metadata and attributes. Values differ if their sizes do, or their MD5 sums, which S3 lists; where neither side
/// lists one, the bytes are compared, once: as long as both files keep their stamps (size, inode, times), they are
/// known to be equal. What is not at the destination is copied (copy_hierarchy, in the same format); nodes that are
/// only there stay. An array that grew or shrank at the source does so at the destination. Data come before metadata
/// when it grows, and no reader sees a chunk half written, but one who reads meanwhile may see some old and some new
/// chunks. Holds the locks of the destination and of each array. Throws invalid_argument if the destination is stored
/// otherwise (format, dtype, chunks, codecs, keys), with nothing of that array changed; and the errors of opening,
/// reading and writing.
Synced sync_hierarchy(const std::string& source, const std::string& destination, const SyncOptions& options = {});

}  // namespace tessera
