// Arrays of a group in a store far away that grow together. Private to the store module.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/group.h>
#include <tessera/shape.h>
#include <tessera/store_locks.h>

namespace tessera {

class HeldAppend;

/// Appends to arrays of one group that show all together, or not at all, once commit() has recorded them. What a killed
/// program had recorded is finished before. Thread rule: used by one thread.
class GroupGrowth {
public:
    /// Waits for the lease of the group, which it holds as long as it lives.
    explicit GroupGrowth(const Group& group);
    ~GroupGrowth();
    GroupGrowth(const GroupGrowth&) = delete;
    GroupGrowth& operator=(const GroupGrowth&) = delete;

    /// Writes what comes after the end of the array at a path below the group, which has the shape `before`; returns
    /// the shape that it gets. At most once for each array. Throws as Array::append(), and io if another writer has
    /// changed the shape.
    Shape append(const std::string& path, const Shape& before, int axis,
                 std::span<const std::unique_ptr<ArraySource>> parts, const IoOptions& io);
    /// Throws io if another writer was faster: then nothing has changed. Throws recorded if the arrays grow all the
    /// same, so that this must not be repeated.
    void commit();

private:
    struct Part {
        std::string path;
        std::unique_ptr<HeldAppend> append;
    };
    Group group_;
    StoreLock lease_;
    std::vector<Part> parts_;
};

}  // namespace tessera
