// What a transfer is to make: the arrays and groups that its source names, planned before anything is written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/selection.h>

#include "destination.h"
#include "transfer.h"

namespace tessera::cli {

/// One array to be made.
struct Job {
    std::string source;  ///< as open_source takes it
    std::string node;    ///< where below the destination; "" is the destination itself
    PlannedArray plan;
};

/// An array of several that cannot be read.
struct Unreadable {
    std::string node;
    std::string why;
};

/// Everything that is to be made.
struct Plan {
    std::vector<PlannedGroup> groups;
    std::vector<Job> jobs;
    bool hierarchy = false;  ///< of which arrays that cannot be read are left out
    std::vector<Unreadable> unreadable;
    std::vector<PassedFolder> passed;  ///< what the walk over the source did not go into
};

/// All the arrays that the source names: itself, its members, or what is below it.
[[nodiscard]] Plan plan_jobs(Session& session, const TransferOptions& options);

/// Opens an array of the source, and makes a file's reader say what is wrong with one that it cannot read.
[[nodiscard]] std::unique_ptr<ArraySource> open_transferred(const TransferOptions& options, const std::string& path);

/// The source with its elements converted as --dtype and --cast say.
[[nodiscard]] std::unique_ptr<ArraySource> converted(std::unique_ptr<ArraySource> source,
                                                     const std::optional<std::string>& dtype,
                                                     const std::optional<std::string>& cast);

/// --sel, bound to the source's shape.
[[nodiscard]] std::optional<Selection> selection_of(const TransferOptions& options, const ArraySource& source);

/// Where a job's array is made.
[[nodiscard]] std::string place_of(const TransferOptions& options, const Job& job);

/// The path of one of several arrays of the source: file::name, or below a directory or zip.
[[nodiscard]] std::string part_path(const TransferOptions& options, const std::string& name);

/// Whether an error is about what an array holds, and not about the place or the time: others can then be copied.
[[nodiscard]] bool is_unreadable(const Error& error);

/// The members of a file of several arrays that a path names as a whole; empty for everything else.
[[nodiscard]] std::vector<std::string> several_members(const std::string& name);

/// Refuses two members of one name.
void require_distinct(const std::string& source, const std::vector<std::string>& members);

/// The group that a path names (a plain folder or zip with arrays in it is one too); nothing for an array or a file.
[[nodiscard]] std::optional<Group> group_at(const std::string& path);

}  // namespace tessera::cli
