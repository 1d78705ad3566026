// copy_hierarchy: copies all arrays and groups at and below a path to another path.
//
// The source is an array, a group, a plain folder or a zip of arrays, an array file or a member of one. The end of the
// destination's name says what it becomes: an array file (".npy", ".npz::name"), a zip (".zip"), or else a directory.
// Several arrays become one directory, one zip, or one array file of a format that holds several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/array_plan.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>
#include <tessera/key_value_store.h>
#include <tessera/locate.h>
#include <tessera/parallel.h>

namespace tessera {

struct HierarchyOptions {
    /// Changes applied to every array. Without a format here, the arrays get that of the group around the destination,
    /// if there is one.
    ArrayWishes arrays = {};
    /// Fills of individual arrays, by path below the source. They take precedence over `arrays.fill`.
    std::vector<std::pair<std::string, Value>> fills = {};
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
    /// With `open`: identifies the source, to recognise its unfinished copy.
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
    int deflate_level = 0;        ///< for .npz: 0 stores, 1 to 9 deflates
    bool object_strings = false;  ///< for .npy and .npz: variable-length strings as Python objects
    bool reverse_dims = false;    ///< for .ra, on either side
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
/// if `resume`. The destination is locked (DestinationLock) from before the first look at it.
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

}  // namespace tessera
