// What a copied hierarchy is to become: the arrays and groups that its source names, planned before anything is
// written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/copy_hierarchy.h>
#include <tessera/destination.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <tessera/selection.h>

namespace tessera {

/// One call of copy_hierarchy, with what was found out about its source.
struct HierarchyCopy : HierarchyOptions {
    std::string source, destination;
    std::optional<Place> archive = std::nullopt;   ///< the source, if that is a zip: opened once
    std::optional<ArrayPath> file = std::nullopt;  ///< the source, if that is an array file or a member: opened once
    bool several_members = false;                  ///< the source is a file of several arrays

    void tell(const std::string& text) const {
        if (note) note(text);
    }
};

/// Everything that is to be made.
struct HierarchyPlan {
    std::vector<PlannedGroup> groups;
    std::vector<PlannedCopy> jobs;
    bool hierarchy = false;  ///< arrays of it that cannot be read are left out
    std::vector<LeftOut> unreadable;
    std::vector<PassedFolder> passed;  ///< what the walk over the source did not go into
};

/// All the arrays that the source names: itself, its members, or what is below it.
[[nodiscard]] HierarchyPlan plan_hierarchy(const HierarchyCopy& copy);

/// The array file that a path names, or the member of one, open; nullopt for everything else.
[[nodiscard]] std::optional<ArrayPath> array_file_at(const std::string& path);

/// Opens an array of the source, and makes a file's reader say what is wrong with one that it cannot read.
[[nodiscard]] std::unique_ptr<ArraySource> open_copied(const HierarchyCopy& copy, const std::string& path);

/// The selection, bound to the source's shape.
[[nodiscard]] std::optional<Selection> selection_of(const HierarchyCopy& copy, const ArraySource& source);

/// The path of one of several arrays of the source: file::name, or below a directory or zip.
[[nodiscard]] std::string part_path(const HierarchyCopy& copy, const std::string& name);

/// Whether an error is about what an array holds, and not about the place or the time: others can then be copied.
[[nodiscard]] bool is_unreadable(const Error& error);

/// Whether the caller leaves out what lies at a path below the source, or a folder above it.
[[nodiscard]] bool is_excluded(const HierarchyCopy& copy, const std::string& path);

/// Refuses two members of one name.
void require_distinct(const std::string& source, const std::vector<std::string>& members);

/// The arrays below a directory, a zip or a group in one, by their paths in it: "elevation", "group/elevation". Array
/// files are not among them; an array itself, or another file, has none. `passed` becomes what was not looked into.
[[nodiscard]] std::vector<std::string> arrays_below(const HierarchyCopy& copy, std::vector<PassedFolder>& passed);

/// Copies one array into an array file.
[[nodiscard]] CopiedHierarchy copy_to_file(const HierarchyCopy& copy);
/// Copies the arrays `names` of the source into one file. Those that cannot be read are left out, and the file is then
/// written beside what is there, as of a hierarchy.
[[nodiscard]] CopiedHierarchy copy_to_bundle(const HierarchyCopy& copy, std::vector<std::string> names);

/// Why an array of the source cannot be read as a whole; nullopt if it can.
[[nodiscard]] std::optional<std::string> why_unreadable(const HierarchyCopy& copy, const std::string& source);
/// A free name beside the destination, for what must not replace what is there.
[[nodiscard]] std::string incomplete_name(const std::string& destination);

}  // namespace tessera
