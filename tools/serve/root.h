// One path that is served, and how nodes below it are found.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/locate.h>

#include "served.h"

namespace tessera::serve {

/// The parts of a path between '/'.
[[nodiscard]] std::vector<std::string> parts_of(std::string_view path);

/// Thread rule: any thread calls any member.
class Root {
public:
    /// A directory, an archive of arrays, references, an array file, or a member of one ("a.npz::name"); or an array or
    /// a group elsewhere ("s3://bucket/a"). Throws not_found and the like.
    Root(const std::string& path, bool follow_links);

    [[nodiscard]] const std::string& base_name() const { return base_name_; }
    /// The real path of the directory or file.
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The node at a path below; `at` is its path in URLs. Throws not_found, corrupt, unsupported.
    [[nodiscard]] std::shared_ptr<ServedNode> open(std::string_view below, std::string at) const;
    [[nodiscard]] std::vector<ServedChild> children(const ServedNode& node) const;
    /// What ServedNode::version is now; "" if the node is not there any more.
    [[nodiscard]] std::string version_of(const ServedNode& node) const;

private:
    void set_elsewhere(const Located& at);
    [[nodiscard]] std::string version_elsewhere(const ServedNode& node) const;
    [[nodiscard]] std::shared_ptr<KeyValueStore> directory() const;
    [[nodiscard]] Place store_in(const std::filesystem::path& file) const;
    [[nodiscard]] std::shared_ptr<ServedNode> open_in_directory(std::string_view below) const;
    [[nodiscard]] std::shared_ptr<ServedNode> open_folder(const Place& place) const;
    [[nodiscard]] std::shared_ptr<ServedNode> open_at_file(const std::string& key, std::string_view rest) const;
    [[nodiscard]] std::shared_ptr<ServedNode> open_member(ArrayPath file, std::string_view member) const;
    [[nodiscard]] bool holds_something(const PlaceView& place, int depth) const;
    /// Those of a directory that are no nodes of Zarr.
    void add_folders_and_files(const Place& place, std::vector<ServedChild>& children) const;

    std::filesystem::path path_;  ///< of the file or directory
    std::string member_;          ///< of "a.npz::name"
    std::string base_name_;
    bool is_directory_ = false;
    bool is_store_ = false;  ///< an archive or references
    bool follow_links_ = false;
    std::optional<Place> elsewhere_;  ///< of what is not on this machine

    mutable std::mutex mutex_;
    mutable std::shared_ptr<KeyValueStore> directory_;
    struct OpenStore {
        std::filesystem::path path;
        std::string version;
        std::shared_ptr<KeyValueStore> store;
    };
    mutable std::vector<OpenStore> stores_;  ///< archives and references, the last used one first
    struct Looked {
        std::chrono::steady_clock::time_point when;
        std::string version;
    };
    mutable std::map<std::string, Looked> looked_;  ///< by the paths of arrays elsewhere
};

}  // namespace tessera::serve
