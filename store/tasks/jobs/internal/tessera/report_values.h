// What checks, seals, snapshots and measures report, as values: the program prints them as JSON, and Python's functions
// return them.
#pragma once

#include <string>
#include <vector>

#include <tessera/chunk_index.h>
#include <tessera/error.h>
#include <tessera/measure.h>
#include <tessera/packages.h>
#include <tessera/seal.h>
#include <tessera/seal_difference.h>
#include <tessera/snapshot.h>
#include <tessera/value.h>
#include <tessera/verify.h>

namespace tessera {

/// A message and what can be done, by the names that one's options have.
using Advised = std::string (*)(const std::string& message, const std::vector<Advice>& advice);

[[nodiscard]] Value finding_value(const Finding& finding, Advised advised);
[[nodiscard]] Value verified_value(const std::string& path, const VerifyReport& report, Advised advised);
/// What the fixity log keeps of a report: whether all was sound, and numbers.
[[nodiscard]] Value verified_counts(const VerifyReport& report);
[[nodiscard]] Value repaired_counts(const RepairReport& report);
[[nodiscard]] Value sealed_counts(const Sealed& sealed);
[[nodiscard]] Value repaired_value(const std::string& path, const RepairReport& report, bool dry_run, Advised advised);
[[nodiscard]] Value sealed_value(const std::string& path, const std::string& manifest, const Sealed& sealed);
[[nodiscard]] Value ocfl_value(const std::string& path, const std::string& id, const OcflVersionAdded& added);
[[nodiscard]] Value snapshot_value(const SnapshotInfo& info);
[[nodiscard]] Value indexed_value(const std::string& path, const Indexed& made);
[[nodiscard]] Value difference_value(const Difference& found);
[[nodiscard]] Value seal_difference_value(const SealDifference& found);
[[nodiscard]] Value packaged_value(const std::string& path, const std::string& folder, const Packaged& made);
/// Adds the members of one field, or of plain elements.
void add_statistics(Value& value, const Statistics& found);

}  // namespace tessera
