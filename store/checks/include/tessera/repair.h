// repair: mends what verify finds and can be mended. Damaged chunks, and chunks outside their array, are set aside in
// `.tessera/damaged/` of the array, under their own keys: it deletes no data, unless it is told to drop what was set
// aside (RepairOptions::drop_damaged). Where a link that must not be
// followed (StoreOptions::follow_links) leads to something that is to be mended, it mends nothing and says so.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/set_aside.h>
#include <tessera/verify.h>

namespace tessera {

struct RepairOptions {
    IoOptions io = {};
    bool dry_run = false;  ///< only say what would be done
    /// A batch that was committed and is not in place yet is taken back instead of finished: all is as before it. One
    /// whose journal only a newer version of Tessera knows is set aside.
    bool give_up_batches = false;
    /// Delete what was set aside, by this run and by those before: data is lost, and the space returns.
    bool drop_damaged = false;
    /// Of a seal with parity: restores also files that may have been edited since.
    bool to_seal = false;
    /// Only these of them, by their keys below what is repaired; empty: all.
    std::vector<std::string> to_seal_names = {};
};

/// One finding, and what became of it.
struct Repaired {
    Finding finding;
    bool done = false;  ///< or with dry_run: would be done
    std::string text;   ///< "removed"; or why not
};

struct RepairReport {
    std::vector<Repaired> actions;      ///< findings that have a remedy
    std::vector<Finding> remaining;     ///< damage and leftovers that have none
    std::int64_t done = 0;              ///< of the actions
    SetAside set_aside;                 ///< what lies in `.tessera/damaged` of the nodes afterwards
    SetAside dropped;                   ///< what was deleted there, or with dry_run would be
    [[nodiscard]] bool mended() const;  ///< whether no damage and nothing unchecked is left
};

/// Verifies, then mends array by array, each under its shape lock, held exclusively, so that it waits for writers and
/// they for it; what was found is looked at once more before anything is done about it. A crash at any moment leaves
/// each chunk where it was or set aside, and the next run goes on. Throws what verify throws, and io where a file
/// cannot be moved; invalid_argument or unsupported for a store that cannot be written.
RepairReport repair(const std::shared_ptr<KeyValueStore>& store, std::string_view prefix,
                    const RepairOptions& options = {});

}  // namespace tessera
