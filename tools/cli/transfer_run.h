// Making what a transfer has planned.
#pragma once

#include <string>
#include <vector>

#include <tessera/destination_lock.h>
#include <tessera/folder_walk.h>

#include "transfer_report.h"

namespace tessera::cli {

/// Copies everything that the source names into directories or a zip. Arrays of a group that cannot be read are left
/// out; such a copy never replaces what is there, unless --skip-bad allows it: it lies beside it then. `building` is
/// the lock of the destination.
[[nodiscard]] Transferred copy_to_arrays(Session& session, const TransferOptions& options,
                                         const DestinationLock& building);
/// Adds what a walk over the source did not go into to what is left out, and says so.
void leave_out(Session& session, const TransferOptions& options, const std::vector<PassedFolder>& passed,
               std::vector<Unreadable>& left_out);
/// Copies one array into an array file.
[[nodiscard]] Transferred copy_to_file(Session& session, const TransferOptions& options);
/// The same of an array that is opened already.
[[nodiscard]] Transferred write_file(Session& session, const TransferOptions& options, const ArrayPath& path,
                                     const ArraySource& stored);
/// Copies the arrays `names` of the source into one file, and treats those that cannot be read as copy_to_arrays does.
[[nodiscard]] Transferred copy_to_bundle(Session& session, const TransferOptions& options,
                                         std::vector<std::string> names);

}  // namespace tessera::cli
