// Edit: a batch of changes to one array that take effect all together or not at all.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/array.h>

namespace tessera {

struct EditOptions {
    bool keep_old = true;  ///< for undo(): the old values stay, as hard links where the store has them
};

/// Any number of writes, appends, resizes and attribute changes to one array, through the handle that array() gives.
/// Nobody else sees them before commit(); a crash or a power failure leaves all of them or none. New values lie in the
/// array's `.tessera/batch/` meanwhile, so that a batch of any size takes little memory.
///
/// While an Edit lives all other writers of the array wait, those of other processes too; readers do not, and while
/// commit() runs they may see a part of the changes: a batch is all-or-nothing against crashes, not isolated.
/// Thread rule: begun, committed and destroyed by one thread, which must not write to the array by another handle
/// meanwhile (that is an error, not a deadlock); the handle may be used from several threads.
class Edit {
public:
    /// Throws unsupported for a store that cannot (a zip).
    explicit Edit(const Array& array, const EditOptions& options = {});
    ~Edit();  ///< without commit(): nothing has happened
    Edit(Edit&&) noexcept;
    Edit& operator=(Edit&&) noexcept;

    [[nodiscard]] Array& array();
    Array* operator->() { return &array(); }

    /// Makes all changes take effect, and durable as the store's Durability says. Every place that is to be changed is
    /// looked at first. Once the batch is recorded it has happened: what fails from then on is thrown as
    /// ErrorCode::recorded, the next opening goes on with it, and it must not be made again. Any other error: nothing
    /// has happened.
    /// Nothing may be done with the Edit or its handle afterwards. Returns the number of values that changed.
    std::int64_t commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Takes the last batch of an array back, as a batch of its own: undone twice, it is there again. Throws not_found when
/// there is none to take back, and invalid_argument, naming it, when something that the batch wrote was changed since.
/// Returns the number of values that changed.
std::int64_t undo(const Array& array);

}  // namespace tessera
