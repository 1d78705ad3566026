// import, export, copy, rechunk: one engine, copy_hierarchy, with one set of options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/recipe.h>

#include "command.h"

namespace tessera::cli {

struct TransferOptions {
    std::string source, destination;
    /// Opens a source that is not at a path (several arrays in one). `source` is then its name, and `state` identifies
    /// its version.
    std::function<std::unique_ptr<ArraySource>()> open;
    std::string state;
    std::optional<Recipe> recipe;              ///< what is made, for a job; nullopt: a copy of `source`
    std::shared_ptr<const OpenedRecipe> made;  ///< what `open` gives, for the options that its result leaves open
    std::optional<std::string> selection;
    std::optional<std::string> where;   ///< a condition for the rows of a table
    std::optional<std::string> points;  ///< an array file with the indices of elements; see points.h
    // For an array as destination. Defaults come from the source, or else from `create`.
    std::optional<std::string> chunks, shards, codec, format, separator, structures, dimensions;
    std::vector<std::string> fills;      ///< --fill as given: VALUE, or NAME=VALUE for one array of a group
    bool drop_attributes = false;        ///< of groups, where the new format has no place for them
    bool skip_bad = false;               ///< a group also replaces an existing one if some of its arrays are unreadable
    std::optional<std::string> order;    ///< of the elements in a chunk or an array file
    std::optional<std::string> deflate;  ///< for an array file as destination
    std::optional<std::string> dtype, cast;  ///< --dtype and the cast rule; for a source without a dtype, its dtype
    std::optional<std::string> as;           ///< the format of an array file that is a pipe
    std::optional<std::string> missing;      ///< what stands where a .csv has no number
    std::optional<std::string> header;       ///< "yes" or "no": whether a .csv begins with a header
    bool link = false;
    bool verify = false;  ///< chunk files that stay valid are decoded before they are copied
    bool dry_run = false;
    bool decode_cf = false, encode_cf = false;
    std::string keep_bits, max_error;  ///< --keep-bits, --max-error; empty: not given
    bool object_strings = false;
    bool reverse_dims = false;  ///< for a .ra on either side
    bool overwrite = false;
    bool resume = false;
};

/// Runs the transfer and prints a report, in which `done` is the verb: "imported".
int transfer(Session& session, const TransferOptions& options, std::string_view done);

/// The options for new arrays, except fills. Throws invalid_argument for invalid text.
[[nodiscard]] ArrayWishes wishes_of(const TransferOptions& options, bool to_file);

/// Declares all options of `copy` that affect the result.
void declare_transfer_options(CLI::App& app, TransferOptions& options);

/// The options for the whole copy. `session` must outlive it.
[[nodiscard]] HierarchyOptions hierarchy_options(Session& session, const TransferOptions& options, bool to_file);

/// The source with elements converted by --dtype and --cast.
[[nodiscard]] std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source,
                                                     const std::optional<std::string>& dtype,
                                                     const std::optional<std::string>& cast);

/// Options for reading a source without a dtype. Throws invalid_argument for --header with another source.
[[nodiscard]] ArrayFileOptions reading_options(const TransferOptions& options, const Located& source);
/// Opens the source, which may be a pipe, with elements converted.
[[nodiscard]] std::unique_ptr<ArraySource> open_given(const TransferOptions& options);
[[nodiscard]] std::unique_ptr<ArraySource> open_given(const TransferOptions& options, const Located& source);
/// Declares these options.
void declare_reading_options(CLI::App& app, TransferOptions& options);

/// Throws for options of the other kind of destination, rather than ignoring them.
void require_fitting_options(const TransferOptions& options, bool to_file);

/// Declares SRC and DST of a command that makes one array of another.
void declare_places(CLI::App& app, TransferOptions& options);
/// Declares the options for writing a computed array: chunks, codec, format and so on.
void declare_result_options(CLI::App& app, TransferOptions& options);

/// Declares --where.
void declare_where(CLI::App& app, TransferOptions& options);
/// Declares the option that export, copy and get share.
void declare_object_strings(CLI::App& app, TransferOptions& options);

/// Whether a path ends in an array file's extension, so that a file and not an array directory is meant.
[[nodiscard]] bool names_array_file(const std::string& path);

}  // namespace tessera::cli
