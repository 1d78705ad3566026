// repair: acts on those findings of verify that have a remedy. Damaged chunks, and chunks outside their array, are set
// aside in the array's `.tessera/damaged/`, under their own keys. It deletes no data, unless told to drop the chunks
// that were set aside (RepairOptions::drop_damaged). If a link that must not be followed (StoreOptions::follow_links)
// leads to anything to be repaired, it repairs nothing and says so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/verify.h>

namespace tessera {

/// Files that repair has set aside.
struct SetAside {
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    SetAside& operator+=(const SetAside& more) {
        files += more.files;
        bytes += more.bytes;
        return *this;
    }
};
/// In one array or group, excluding the nodes below.
[[nodiscard]] SetAside set_aside_in(const PlaceView& place);
/// Deletes them, and returns their number and size.
SetAside drop_set_aside(const PlaceRef& place);

struct RepairOptions {
    IoOptions io = {};
    bool dry_run = false;  ///< only report the actions
    /// Take back a batch that was committed but is not in place yet, instead of finishing it: the array is as before
    /// the batch. A batch whose journal needs a newer version of Tessera is set aside. So is one that
    /// can neither be finished nor be taken back, because both new and old values are lost; then `mended()` is false.
    bool give_up_batches = false;
    /// Delete everything that this run and earlier ones set aside: these data are lost, and their space is freed.
    bool drop_damaged = false;
    /// For a seal with parity: also restore files that may have been edited since (FindingKind::changed, and `lost`).
    /// Where the seal was broken on purpose, only those that `to_seal_names` names.
    bool to_seal = false;
    /// Restrict `to_seal` to these files, by their keys below the repaired node; empty: all.
    std::vector<std::string> to_seal_names = {};
};

/// One finding, and the result of repairing it.
struct Repaired {
    Finding finding;
    bool done = false;  ///< with dry_run: whether it would be done
    std::string text;   ///< "removed"; or the reason why not
    /// Elements of a damaged chunk that read as the fill value now: nothing here could restore them.
    std::int64_t lost = 0;
};

struct RepairReport {
    std::vector<Repaired> actions;            ///< findings that have a remedy
    std::vector<Finding> remaining;           ///< findings without a remedy, possible edits among them; no notes
    std::int64_t done = 0;                    ///< number of actions that were done
    SetAside set_aside;                       ///< files in `.tessera/damaged` of the nodes afterwards
    SetAside dropped;                         ///< files deleted there, or with dry_run to be deleted
    [[nodiscard]] std::int64_t lost() const;  ///< elements that read as the fill value now
    /// Whether no damage and nothing unchecked remains, and no element was lost.
    [[nodiscard]] bool mended() const;
};

/// Verifies, then repairs array by array, each under its exclusive shape lock, so that it waits for writers and they
/// wait for it. Each finding is re-checked before it is acted on. A crash at any moment leaves each chunk where it was
/// or set aside, and the next run continues. Throws the errors of verify; io if a file cannot be moved; and
/// invalid_argument or unsupported for a store that is not writable.
///
/// A file that differs from its seal and has another time than when it was sealed may be somebody's edit. It is left as
/// it is and listed in RepairReport::remaining, unless RepairOptions::to_seal is set: that restores it, if the seal has
/// parity. A file counts as damaged, and is restored from parity without that, if it still has the time of its seal or
/// cannot be decoded.
RepairReport repair(const Place& place, const RepairOptions& options = {});

}  // namespace tessera
