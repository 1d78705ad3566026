// The plan of a copied hierarchy: all arrays and groups of its source, planned before anything is written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/destination.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/selection.h>

#include "part_places.h"

namespace tessera {

/// One call of copy_hierarchy, with the properties of its source.
struct HierarchyCopy : HierarchyOptions {
    std::string source, destination;
    std::optional<Located> at = std::nullopt;  ///< the source; nullopt with `open` or `set`
    std::vector<std::string> members = {};     ///< of the source, if that is a set or a file of several arrays
    /// The selection, if the source holds several arrays.
    std::shared_ptr<SharedSelection> shared = nullptr;
    std::shared_ptr<PartPlaces> places = std::make_shared<PartPlaces>();  ///< of what it selects

    void tell(const Note& text) const {
        if (note) note(text);
    }
};

/// Everything to be made.
struct HierarchyPlan {
    std::vector<PlannedGroup> groups;
    std::vector<PlannedCopy> jobs;
    std::shared_ptr<const ArraySource> only;  ///< the source of the only job, unless that is one of a hierarchy
    bool hierarchy = false;                   ///< unreadable arrays are left out
    std::vector<LeftOut> unreadable;
    std::vector<PassedFolder> passed;  ///< folders that the walk over the source did not enter
};

/// Plans all arrays of the source: itself, its members, or those below it.
[[nodiscard]] HierarchyPlan plan_hierarchy(const HierarchyCopy& copy);

/// Opens an array of the source. For an unreadable one, throws the error of the file's reader.
[[nodiscard]] std::unique_ptr<ArraySource> open_copied(const HierarchyCopy& copy, const std::string& path);

/// The selection, bound to the source's shape; nullopt: all of it. If `say`, a note says what its names and values were
/// taken for.
[[nodiscard]] std::optional<Selection> selection_of(const HierarchyCopy& copy, const ArraySource& source,
                                                    bool say = false);

/// The path of one of the source's arrays: file::name, or below a directory or zip.
[[nodiscard]] std::string part_path(const HierarchyCopy& copy, const std::string& name);

/// Whether an error concerns only the content of one array, so that others can still be copied.
[[nodiscard]] bool is_unreadable(const Error& error);

/// Whether the caller excludes a path below the source, or a folder above it.
[[nodiscard]] bool is_excluded(const HierarchyCopy& copy, const std::string& path);

/// The groups of a file of a format that has groups; otherwise empty.
[[nodiscard]] std::vector<ArrayFileGroup> file_groups(const Located& at);
/// The groups of a set, or of a file of a format that has groups; otherwise empty.
[[nodiscard]] std::vector<ArrayFileGroup> member_groups(const HierarchyCopy& copy);

/// Throws if two members have the same name.
void require_distinct(const std::string& source, const std::vector<std::string>& members);

/// The arrays below a directory, a zip or a group in one, by their paths in it: "elevation", "group/elevation".
/// Excludes array files. Empty if the source is itself an array or another file. Sets `passed` to the folders not
/// entered.
[[nodiscard]] std::vector<std::string> arrays_below(const HierarchyCopy& copy, std::vector<PassedFolder>& passed);

/// Copies one array into an array file.
[[nodiscard]] CopiedHierarchy copy_to_file(const HierarchyCopy& copy);
/// Copies the arrays `names` of the source into one file. Unreadable ones are left out, and the file is then written
/// beside an existing one, as for a hierarchy.
[[nodiscard]] CopiedHierarchy copy_to_bundle(const HierarchyCopy& copy, std::vector<std::string> names);

/// Why an array of the source cannot be read as a whole; nullopt if it can.
[[nodiscard]] std::optional<std::string> why_unreadable(const HierarchyCopy& copy, const std::string& source);
/// A free name beside the destination, for an incomplete copy that must not replace an existing one.
[[nodiscard]] std::string incomplete_name(const std::string& destination, const StoreOptions& options);

}  // namespace tessera
