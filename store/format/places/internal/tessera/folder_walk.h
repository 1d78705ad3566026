// A walk over the folders of a store that always terminates.
//
// Symbolic links can lead back to a folder above, or out to the whole machine. They can also give a folder a second
// name, so that the number of paths doubles with each level. A walk therefore visits each real folder once, by its real
// path if it has one below the root: links come last. It goes no deeper than deepest_folder. passed() lists the folders
// that it did not enter, so that nobody takes a part for the whole.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/place.h>

namespace tessera {

/// Thread rule: one thread. The store must outlive it.
class FolderWalk {
public:
    /// Whether to follow the link at `prefix` in the store.
    using Follow = std::function<bool(const std::string& prefix)>;

    /// Begins at `place`, the first folder of next(). If `follow` is empty, no link is followed.
    FolderWalk(const PlaceView& place, Follow follow);

    /// Goes to the next folder; false at the end.
    bool next();
    /// The current folder: its path below the root of the walk, and its prefix in the store.
    [[nodiscard]] const std::string& path() const { return at_.path; }
    [[nodiscard]] std::string prefix() const;
    /// Its last name; empty at the beginning.
    [[nodiscard]] std::string_view name() const;
    /// Its content, listed on the first call.
    [[nodiscard]] const Listing& listing();

    /// Schedules a folder or a link that listing() names.
    void enter(const std::string& name);
    /// The same for who knows which it is, without a listing.
    void enter(const std::string& name, bool link);

    /// Folders that were not entered, in no order. Complete at the end of the walk.
    [[nodiscard]] const std::vector<PassedFolder>& passed() const { return passed_; }

private:
    struct Folder {
        std::string path;
        int depth = 0;
    };

    [[nodiscard]] std::string place(std::string_view path) const;
    void arrive(Folder folder);
    bool follow_link(const Folder& link);
    void remember(const std::string& path);
    bool is_new(const std::string& path);

    const ReadableStore& store_;
    std::string root_;
    Follow follow_;
    std::vector<Folder> open_;
    std::deque<Folder> links_;
    Folder at_;
    std::optional<Listing> listing_;
    bool behind_links_ = false;        ///< all folders that are reached without links are done
    std::vector<std::string> walked_;  ///< paths of folders whose ids are not known yet
    std::map<FileId, std::string> ids_;
    std::vector<PassedFolder> passed_;
};

}  // namespace tessera
