// Where a copy makes its arrays and groups, so that nothing unfinished opens as an array.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/destination_lock.h>

namespace tessera {

/// A group that is to be made.
struct PlannedGroup {
    std::string node;                 ///< where below the destination; "" is the destination itself
    const Dialect* dialect;           ///< nullptr for a plain folder
    std::optional<Value> attributes;  ///< none: a group that is there already stays as it is
    Value unknown = Value::object();  ///< members of its document that the dialect does not know
};

/// Where arrays are made. Thread rule: one thread.
class Destination {
public:
    virtual ~Destination() = default;
    /// Begins an array at `node`, a path below the destination ("" is the destination itself). `made_from` recognises
    /// the same copy when it is gone on with.
    virtual Array& add(const std::string& node, const PlannedArray& plan, std::string_view made_from) = 0;
    /// Whether the array that was last added goes on with an unfinished copy.
    [[nodiscard]] virtual bool resumed() const = 0;
    /// Takes back the array that was last added; false where that cannot be.
    virtual bool drop() = 0;
    virtual void add_group(const PlannedGroup& group) = 0;
    /// Makes it all appear.
    virtual void commit() = 0;
    /// Leaves what is written, to go on with later, and says where it lies.
    virtual std::string keep() = 0;
};

/// A directory with an array in it or arrays below it, or a new zip by its extension. `existing.lock` is held: what is
/// added comes in the order of the paths, a group before what is in it, as DestinationLock wants it. `option_prefix`
/// as in ArrayWishes.
[[nodiscard]] std::unique_ptr<Destination> open_destination(const std::string& path, Existing existing,
                                                            std::string_view option_prefix);

/// Taken before the first look at a destination, and held until it is complete. None where the folder of a file is
/// missing: the file cannot be made then.
[[nodiscard]] DestinationLock lock_destination(const std::string& path, const StoreOptions& options);

}  // namespace tessera
