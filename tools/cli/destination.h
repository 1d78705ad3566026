// What copied arrays become: decided before anything is written, and made so that nothing unfinished opens as an array.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/convert.h>
#include <tessera/copy.h>

#include "transfer.h"

namespace tessera::cli {

/// An array that is to be made, in all its metadata.
struct PlannedArray {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    std::vector<std::string> changes;  ///< what is said otherwise than in the source
    /// Why chunks are encoded anew; nothing when those of the source are copied as they are.
    std::optional<std::string> recode;
};

/// The source's metadata with what the options change, in the dialect that they name. Throws invalid_argument and
/// unsupported, naming the option or member.
[[nodiscard]] PlannedArray plan_array(const ArraySource& source, const TransferOptions& options,
                                      const std::optional<Selection>& selection);

/// make_metadata(); where nobody has chosen the format, and it cannot express this, the error names one that can.
[[nodiscard]] ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen);

/// What xarray, which reads arrays with names of dimensions, would make of a fill that nobody chose; none where
/// nothing.
[[nodiscard]] std::optional<std::string> masking_note(const Dialect& dialect, const ArrayMetadata& metadata);

/// Whether chunks are compressed with zstd where the dialect's own program cannot read that.
[[nodiscard]] bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& metadata);

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
/// added comes in the order of the paths, a group before what is in it, as DestinationLock wants it.
[[nodiscard]] std::unique_ptr<Destination> open_destination(const std::string& path, Existing existing);

}  // namespace tessera::cli
