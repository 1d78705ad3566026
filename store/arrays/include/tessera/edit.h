// Edit: a batch of changes to one array that take effect all together or not at all.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/array.h>

namespace tessera {

struct EditOptions {
    bool keep_old = true;  ///< for undo(): keep the old values, as hard links if the store supports them
};

/// Any number of writes, appends, resizes and attribute changes to one array, through the handle that array() gives.
/// Nobody else sees them before commit(). A crash or a power failure leaves all of them or none. Until the commit, new
/// values lie in the array's `.tessera/batch/`, so that a batch of any size takes little memory.
///
/// While an Edit lives, all other writers of the array wait, in other processes too. Readers do not wait: while
/// commit() runs, they may see only some of the changes. A batch is atomic with respect to crashes, but not isolated.
/// Thread rule: begun, committed and destroyed by one thread, which must not write to the array through another handle
/// meanwhile (that throws, rather than deadlocks). The handle may be used from several threads.
class Edit {
public:
    /// Throws unsupported for a store without batches (a zip).
    explicit Edit(const Array& array, const EditOptions& options = {});
    ~Edit();  ///< without commit(): nothing has happened
    Edit(Edit&&) noexcept;
    Edit& operator=(Edit&&) noexcept;

    [[nodiscard]] Array& array();
    Array* operator->() { return &array(); }

    /// Applies all changes, as durable as the store's Durability says. First checks that every target can be changed.
    /// Once the batch is recorded, it counts as done: a later failure throws ErrorCode::recorded, the next opening
    /// completes the batch, and the caller must not repeat it. After any other error, nothing has changed. Do not use
    /// the Edit or its handle afterwards. Returns the number of values that changed.
    std::int64_t commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Reverts the last batch of an array, as a batch of its own: a second undo() restores it. Throws not_found if there is
/// none to revert, and invalid_argument, naming the value, if something that the batch wrote has changed since. Returns
/// the number of values that changed.
std::int64_t undo(const Array& array);

}  // namespace tessera
