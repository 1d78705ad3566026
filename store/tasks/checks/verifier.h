// The walk of a run of verify over all nodes. Private to store/tasks/checks.
#pragma once

#include <tessera/array_file.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>
#include <tessera/verify.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lost_arrays.h"
#include "verify_run.h"

namespace tessera {

/// What verify() says of a path, with keys of what lies in the seal as they are in a SealedFileStore.
[[nodiscard]] VerifyReport verify_with_seal(const ArrayPath& path, const VerifyOptions& options);

/// A walk over all nodes, which leaves each to the parts of verify_run.h. Use it once.
class Verifier {
public:
    Verifier(const Place& root, const VerifyOptions& options)
        : run_(root, options), lost_(run_), walk_(root, [this](const std::string& link) {
              return probe_node({*run_.store, link}).has_value();
          }) {}

    VerifyReport run();
    /// Compares a SealedFileStore with its seal, after what was found otherwise.
    VerifyReport run_beside(VerifyReport found);

private:
    void check_node(const std::string& path);
    /// A group, or a plain folder (dialect nullptr); enters what is to be checked below it.
    void check_group(const std::string& path, const Dialect* dialect, const Listing& listing);
    /// Repair leaves bags as they are, but for what their parity restores.
    void leave_bags();
    /// Reports a folder that the walk did not enter, unless it was visited by another path.
    void check_passed(const PassedFolder& passed);

    VerifyRun run_;
    LostArrays lost_;
    FolderWalk walk_;                        ///< over the nodes
    std::vector<std::string> bags_;          ///< folders that are bags
    std::vector<std::string> maybe_sealed_;  ///< nodes whose seals are looked at once all else is known
};

}  // namespace tessera
