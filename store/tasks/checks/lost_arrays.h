// Arrays whose metadata are lost: folders with documents or chunks, but without an array. Private to
// store/tasks/checks.
#pragma once

#include <tessera/key_value_store.h>

#include <string>
#include <string_view>

#include "verify_run.h"

namespace tessera {

/// The search for them in one run.
class LostArrays {
public:
    explicit LostArrays(VerifyRun& run) : run_(run) {}

    /// For a folder without array and group: finds documents and chunks whose metadata is lost. Returns whether it has
    /// chunks.
    bool check(const std::string& path, const Listing& listing);
    /// Whether a folder of this name may belong to the chunks of a lost array.
    [[nodiscard]] static bool is_part_name(std::string_view name);

private:
    /// Finds documents beside which the one that makes an array of them is missing.
    void check_documents(const std::string& path, const Listing& listing);
    /// For a folder without array and group: the key, below it, of a file named like a chunk; empty if there is none.
    [[nodiscard]] std::string chunk_named(const std::string& path);

    VerifyRun& run_;
    /// Folders that chunk_named() may still search below its argument. Limits the search in thousands of nested
    /// folders, which every folder above would repeat.
    int deeper_looks_ = 10'000;
};

}  // namespace tessera
