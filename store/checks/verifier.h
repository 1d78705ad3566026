// One run of verify. Private to store/checks.
#pragma once

#include <tessera/array_file.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>
#include <tessera/verify.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_state.h"
#include "check_chunk.h"
#include "keys.h"
#include "parity_restore.h"

namespace tessera {

/// Names below a folder, from one listing.
inline bool holds(const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::binary_search(names, name);
}

/// What verify() says of a path, with keys of what lies in the seal as they are in a SealedFileStore.
[[nodiscard]] VerifyReport verify_with_seal(const ArrayPath& path, const VerifyOptions& options);

/// A walk over all nodes. See verify.cpp for nodes and other files, and verify_array.cpp for the chunks of arrays.
class Verifier {
public:
    Verifier(const std::shared_ptr<KeyValueStore>& store, std::string_view root, const VerifyOptions& options)
        : store_(store),
          root_(root),
          options_(options),
          walk_(*store, root, [this](const std::string& link) { return probe_node(*store_, link).has_value(); }) {}

    VerifyReport run();
    /// Compares a SealedFileStore with its seal, after what was found otherwise.
    VerifyReport run_beside(VerifyReport found);

private:
    [[nodiscard]] std::string place(std::string_view path) const { return join_key(root_, path); }
    /// A key of the store, relative to the verified root.
    [[nodiscard]] std::string below(std::string_view key) const {
        return std::string(root_.empty() ? key : key.substr(root_.size() + 1));
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

    // ---- nodes

    void check_node(const std::string& path);
    /// Reports a folder that the walk did not enter, unless it was visited by another path.
    void check_passed(const PassedFolder& passed);
    /// Whether the place of one of Tessera's own names holds nothing, a file or a directory. Adds a finding for
    /// anything else; nothing is looked up behind that.
    bool check_place(const std::string& node, const std::string& key);
    void check_group(const std::string& path, const Dialect* dialect, const Listing& listing, bool unfinished);
    void check_group_documents(const std::string& path, const Dialect& dialect);
    /// The last of a dialect's documents contains the attributes.
    void check_attributes(const std::string& path, const Dialect& dialect);
    /// For a folder without array and group: finds documents and chunks whose metadata is lost. Returns whether it has
    /// chunks.
    bool check_orphans(const std::string& path, const Listing& listing);
    /// For a folder without array and group: the key, below it, of a file named like a chunk; empty if there is none.
    /// Limits the search in thousands of nested folders, which every folder above would repeat.
    [[nodiscard]] std::string chunk_named(const std::string& path) const;

    // ---- files that belong to no node

    void add_stray(const std::string& node, const std::string& key, std::string_view what);
    /// Whether a file is a leftover by its name; adds a finding then.
    bool check_name(const std::string& node, const std::string& key) { return check_name(node, node, key); }
    bool check_name(const std::string& node, const std::string& folder, std::string_view name);
    /// Whether a folder is one of Tessera's own; adds findings for leftovers in it.
    bool check_own_folder(const std::string& node, const std::string& name);
    /// Checks `.tessera` of a node. Returns whether the node is marked as unfinished.
    bool check_own(const std::string& path);
    void check_own_part(const std::string& node, const std::string& key, std::string_view name);
    [[nodiscard]] std::string set_aside_text(const std::string& node) const;
    void check_batch(const std::string& node, const std::string& key);
    /// Finds temporary files in a folder, which listings omit.
    void check_temporaries(const std::string& node, const std::string& folder);

    // ---- arrays

    /// `folders` are the names of those in the array's.
    void check_array(const std::string& path, const Dialect& dialect, const std::vector<std::string>& folders);
    void add_lost_separator(const std::string& path, const Dialect& dialect, const std::string& key);
    static std::string dotted(std::string key);
    /// Finds temporary files in the folders of chunks, at any depth.
    void check_chunk_folders(const std::string& node, const std::string& folder);
    void check_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded);
    /// Finds chunks that are not stored and have to be (verify_stored.cpp). `stored` are the numbers of those that are.
    void check_complete(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                        const std::vector<std::int64_t>& stored);
    void check_all_stored(const std::string& path, const LoadedArray& loaded, const std::vector<std::int64_t>& stored);
    void check_record(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                      const std::vector<std::int64_t>& stored);
    /// Adds a finding for a chunk, unless the array has too many. `count` are those before.
    void add_absent(const std::string& path, const LoadedArray& loaded, const Index& index, std::string_view text,
                    std::int64_t& count);
    /// Removes findings of absent chunks whose loss a seal noticed, too.
    void forget_absent_in_seals();
    /// Decodes the chunks with these numbers, in parallel.
    void decode_chunks(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                       const std::vector<std::int64_t>& stored, const IoOptions& io);
    void add_outside(const std::string& path, const LoadedArray& loaded, const Index& index, const std::string& key);
    void add_chunk(const std::string& path, const ArrayState& array, const LoadedArray& loaded, const Index& index,
                   const CheckedChunk::Bad& bad);

    // ---- seals

    /// Reports a directory in the place of a seal's manifest, by the listing of Tessera's own folder of a node.
    void check_manifest_place(const std::string& node, const Listing& own);
    /// Returns whether there is a seal.
    bool check_seal(const std::string& path);
    /// Compares a bag without a seal of its own with its manifests.
    void check_bag(const std::string& path);
    /// Findings for files that differ. `what` says so of changed, missing and added ones.
    void add_changes(const std::string& path, const SealState& state, const std::array<std::string_view, 3>& what);
    /// Repair leaves bags as they are, but for what their parity restores.
    void leave_bags();
    void check_parity(const std::string& path, const SealState& state);
    void add_differing(const std::string& path, const Differing& file, const ParityState& state);
    void add_parity(const std::string& path, const ParityArchive& archive, const ParityState& state);
    void check_snapshot(const std::string& path);

    std::shared_ptr<KeyValueStore> store_;
    mutable int deeper_looks_ = 10'000;  ///< folders that chunk_named() may still search below its argument
    std::string root_;
    const VerifyOptions& options_;
    FolderWalk walk_;  ///< over the nodes
    std::vector<std::string> bags_;
    std::vector<std::string> maybe_sealed_;  ///< nodes whose seals are looked at once all else is known
    std::mutex mutex_;
    VerifyReport report_;
};

}  // namespace tessera
