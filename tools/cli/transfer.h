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
#include <tessera/copy_hierarchy.h>

#include "command.h"

namespace tessera::cli {

struct TransferOptions {
    std::string source, destination;
    /// Where the source is not what lies at a path (several arrays in one): opens it. `source` is what it is called,
    /// and `state` what recognises the same one again.
    std::function<std::unique_ptr<ArraySource>()> open;
    std::string state;
    std::optional<std::string> selection;
    std::optional<std::string> points;  ///< an array file that lists the elements wanted; see points.h
    // For an array as destination; what is not given comes from the source, else the defaults of `create`.
    std::optional<std::string> chunks, shards, codec, format, separator, dimensions;
    std::vector<std::string> fills;    ///< --fill as given: VALUE, or NAME=VALUE for one array of a group
    bool skip_bad = false;             ///< a group whose arrays cannot all be read replaces what is there all the same
    std::optional<std::string> order;  ///< of the elements in a chunk or an array file
    std::optional<std::string> deflate;      ///< for an array file as destination
    std::optional<std::string> dtype, cast;  ///< --dtype and the rule for it; of a source that keeps none, its dtype
    std::optional<std::string> header;       ///< "yes" or "no": whether a .csv begins with one
    bool link = false;
    bool dry_run = false;
    bool object_strings = false;
    bool reverse_dims = false;  ///< for a .ra on either side
    bool overwrite = false;
    bool resume = false;
};

/// Does it and reports; `done` is the word for the report: "imported".
int transfer(Session& session, const TransferOptions& options, std::string_view done);

/// What the options say of the arrays that are made, fills apart. Throws invalid_argument for text that is none.
[[nodiscard]] ArrayWishes wishes_of(const TransferOptions& options, bool to_file);

/// All that says what becomes of the source, as `copy` takes it.
void declare_transfer_options(CLI::App& app, TransferOptions& options);

/// What the options say of the whole copy. `session` must outlive it.
[[nodiscard]] HierarchyOptions hierarchy_options(Session& session, const TransferOptions& options, bool to_file);

/// The source with its elements converted as --dtype and --cast say.
[[nodiscard]] std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source,
                                                     const std::optional<std::string>& dtype,
                                                     const std::optional<std::string>& cast);

/// How a source that keeps no dtype is read; with options for others, --header is invalid_argument.
[[nodiscard]] ArrayFileOptions reading_options(const TransferOptions& options, const std::string& path);
/// The options for that.
void declare_reading_options(CLI::App& app, TransferOptions& options);

/// Refuses options of the other kind of destination, rather than ignoring them.
void require_fitting_options(const TransferOptions& options, bool to_file);

/// How the one array that a command computes is written: chunks, codec, format and so on.
void declare_result_options(CLI::App& app, TransferOptions& options);

/// The option that export, copy and get share.
void declare_object_strings(CLI::App& app, TransferOptions& options);

/// Whether a path ends in an array file's extension, so that a file and not an array directory is meant.
[[nodiscard]] bool names_array_file(const std::string& path);
/// Throws invalid_argument for a new directory that is named like a file of a kind that Tessera does not write
/// ("grid.csv"), unless a '/' at the end says that it is meant so.
void require_no_other_file(const std::string& path);

}  // namespace tessera::cli
