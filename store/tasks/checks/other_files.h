// The files of a node beside its metadata and values. Private to store/tasks/checks.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "verify_run.h"

namespace tessera {

/// Finds leftovers, what is wrong in Tessera's own folder, and files that belong to no node, for one array or group.
/// Keys and folders are relative to the verified root, as those of findings are.
class OtherFiles {
public:
    OtherFiles(VerifyRun& run, std::string node) : run_(run), node_(std::move(node)) {}

    void add_stray(const std::string& key, std::string_view what) const;
    /// Whether a file is a leftover by its name; adds a finding then.
    bool check_name(std::string_view name) const { return check_name(node_, name); }
    bool check_name(const std::string& folder, std::string_view name) const;
    /// Whether a folder is one of Tessera's own; adds findings for leftovers in it.
    bool check_own_folder(const std::string& name) const;
    /// Checks `.tessera` of the node. Returns whether the node is marked as unfinished.
    bool check_own() const;
    /// Reports a directory in the place of a seal's manifest, by the listing of `.tessera` of the node.
    void check_manifest_place(const Listing& own) const;
    /// Whether the place of one of Tessera's own names holds nothing, a file or a directory. Adds a finding for
    /// anything else; nothing is looked up behind that.
    bool check_place(const std::string& key) const;
    /// Finds temporary files in a folder, which listings omit.
    void check_temporaries(const std::string& folder) const;

private:
    void check_own_part(const std::string& key, std::string_view name) const;
    void check_batch(const std::string& key) const;
    void describe_recorded(Finding& finding) const;
    [[nodiscard]] std::string set_aside_text() const;
    /// Whether the marker of an unfinished copy is there; adds a finding then.
    bool check_marker(const Listing& own) const;

    VerifyRun& run_;
    std::string node_;
};

}  // namespace tessera
