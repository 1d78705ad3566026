// A walk over the folders of a store that always ends.
//
// Symbolic links can lead back to a folder above, to one that has another name too, so that the number of ways to it
// doubles with each level, or out to the whole machine. A walk therefore comes to each real folder once, and by its
// real path: links come after everything that can be reached without. Nor does it go deeper than deepest_folder. What
// it did not go into is told (passed()), so that nobody takes a part for the whole.
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

namespace tessera {

/// How many folders below its beginning a walk goes.
inline constexpr int deepest_folder = 256;

/// A folder, or the name of one, that a walk did not go into.
struct PassedFolder {
    enum class Why : std::uint8_t {
        second_way,  ///< a link to a folder that the walk has come to by another path
        elsewhere,   ///< a link that is not followed
        nowhere,     ///< a link that leads nowhere
        too_deep,    ///< deeper than deepest_folder
    };
    std::string path;  ///< below where the walk began
    Why why = Why::elsewhere;
    std::string target;  ///< second_way: that other path; else what is written in the link
};

/// For one thread. The store outlives it.
class FolderWalk {
public:
    /// Tells of the prefix of a link, in the store, whether the walk goes on behind it.
    using Follow = std::function<bool(const std::string& prefix)>;

    /// Begins at `prefix`, which next() comes to first. Empty `follow`: no link is followed.
    FolderWalk(const KeyValueStore& store, std::string_view prefix, Follow follow);

    /// Goes to the next folder; false at the end.
    bool next();
    /// Of the folder that the walk is at: below where it began, and in the store.
    [[nodiscard]] const std::string& path() const { return at_.path; }
    [[nodiscard]] std::string prefix() const;
    /// Its last name; empty at the beginning.
    [[nodiscard]] std::string_view name() const;
    /// What it holds, listed when it is asked for first.
    [[nodiscard]] const Listing& listing();

    /// Makes the walk go on into a folder that listing() names, or a link.
    void enter(const std::string& name);

    /// What it passed, in no order. Complete at the end.
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

    const KeyValueStore& store_;
    std::string root_;
    Follow follow_;
    std::vector<Folder> open_;
    std::deque<Folder> links_;
    Folder at_;
    std::optional<Listing> listing_;
    bool behind_links_ = false;        ///< everything that is reached without links is done
    std::vector<std::string> walked_;  ///< paths of folders whose ids are not known yet
    std::map<FolderId, std::string> ids_;
    std::vector<PassedFolder> passed_;
};

}  // namespace tessera
