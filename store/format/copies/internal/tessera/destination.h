// Destination: the place where a copy makes its arrays and groups, so that nothing unfinished opens as an array.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/destination_lock.h>

namespace tessera {

/// A group to be made.
struct PlannedGroup {
    std::string node;                 ///< where below the destination; "" is the destination itself
    const Dialect* dialect;           ///< nullptr for a plain folder
    std::optional<Value> attributes;  ///< nullopt: an existing group keeps its own
    Value unknown = Value::object();  ///< members of its document that the dialect does not know
};

/// Where arrays are made. Thread rule: one thread.
class Destination {
public:
    virtual ~Destination() = default;
    /// Begins an array at `node`, a path below the destination ("" is the destination itself). `made_from` identifies
    /// the source, to recognise its unfinished copy.
    virtual Array& add(const std::string& node, const PlannedArray& plan, std::string_view made_from) = 0;
    /// Whether the array added last resumes an unfinished copy.
    [[nodiscard]] virtual bool resumed() const = 0;
    /// Removes the array added last; false if that is impossible.
    virtual bool drop() = 0;
    virtual void add_group(const PlannedGroup& group) = 0;
    /// Makes everything visible.
    virtual void commit() = 0;
    /// Leaves an unfinished copy that can be resumed; returns where it is.
    virtual std::string keep() = 0;
};

/// A new zip, by its extension, or else a directory, or a place in another kind of store, with an array in it or arrays
/// below it. `existing.lock` is held.
/// Nodes must be added in the order of their paths, a group before its members, as DestinationLock requires.
[[nodiscard]] std::unique_ptr<Destination> open_destination(const std::string& path, Existing existing);

/// Throws unsupported for a zip or an array file, by its extension, that would not lie on this machine.
void require_destination(const std::string& path);

/// The lock to take before the first look at a destination, and to hold until the destination is complete. Holds
/// nothing if the folder of a file is missing, because the file cannot be made then.
[[nodiscard]] DestinationLock lock_destination(const std::string& path, const StoreOptions& options);

/// Throws invalid_argument for a path of this machine that lies in an array.
void require_outside_arrays(const std::filesystem::path& path);

/// Throws already_exists if a file is there and `overwrite` is false, and invalid_argument for a directory.
void require_free_file(const std::filesystem::path& path, bool overwrite);

}  // namespace tessera
