// One run of verify, and the parts of it, each of which adds to the report what it finds. Private to
// store/tasks/checks.
#pragma once

#include <tessera/verify.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_state.h"
#include "check_chunk.h"
#include "keys.h"

namespace tessera {

/// Names below a folder, from one listing.
inline bool holds(const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::binary_search(names, name);
}

/// What all parts look at, and the report. Paths and keys of findings are relative to `root`.
/// Thread rule: add() and guarded() may be called from several threads at once; the report is for the one that walks.
struct VerifyRun {
    VerifyRun(Place at, const VerifyOptions& how)
        : store(std::move(at.store)), root(std::move(at.prefix)), options(how) {}

    [[nodiscard]] std::string place(std::string_view path) const { return join_key(root, path); }
    /// A key of the store, relative to the verified root.
    [[nodiscard]] std::string below(std::string_view key) const {
        return std::string(root.empty() ? key : key.substr(root.size() + 1));
    }

    void add(Finding finding);

    /// Runs `body`; turns its error into a finding like `where`. Returns whether it succeeded.
    template <class Body>
    bool guarded(Finding where, const Body& body) {
        try {
            body();
            return true;
        } catch (...) {
            Fault fault = current_fault();
            where.kind = fault.kind;
            where.text = std::move(fault.text);
            where.advice = std::move(fault.advice);
            // A file that cannot be read now may be intact, and must not be repaired.
            if (where.kind == FindingKind::unchecked) where.remedy = Remedy::none;
            add(std::move(where));
            return false;
        }
    }

    const std::shared_ptr<KeyValueStore> store;
    const std::string root;
    const VerifyOptions& options;
    VerifyReport report;

private:
    std::mutex mutex_;
};

// ---- documents (verify_documents.cpp)

/// The last of a dialect's documents contains the attributes.
void verify_attributes(VerifyRun& run, const std::string& node, const Dialect& dialect);
void verify_group_documents(VerifyRun& run, const std::string& node, const Dialect& dialect);

// ---- arrays (verify_array.cpp)

/// Counts the array at `node`, and checks its files and chunks. `folders` are the names of those in the array's.
void verify_array(VerifyRun& run, const std::string& node, const Dialect& dialect,
                  const std::vector<std::string>& folders);

// ---- chunks that are not stored (verify_stored.cpp)

/// Finds chunks that are not stored and have to be. `stored` and `units` are the ascending numbers of those that are:
/// of chunks or shards, and of units.
void verify_complete(VerifyRun& run, const std::string& node, const ArrayState& array, const LoadedArray& loaded,
                     std::span<const std::int64_t> stored, std::span<const std::int64_t> units);
/// Removes findings of absent chunks whose loss a seal noticed, too.
void forget_absent_in_seals(VerifyReport& report);

// ---- seals and snapshots (verify_seal.cpp)

/// Returns whether there is a seal.
bool verify_node_seal(VerifyRun& run, const std::string& node);
/// Compares a bag with its manifests, after its own seal if it is `sealed` besides.
void verify_bag(VerifyRun& run, const std::string& bag, bool sealed);
/// Holds an OCFL object against the specification and its inventories.
void verify_ocfl(VerifyRun& run, const std::string& object);
void verify_snapshot(VerifyRun& run, const std::string& node);

}  // namespace tessera
