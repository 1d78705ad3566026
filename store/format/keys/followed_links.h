// Symbolic links on the way to a value that is read. Private to store/format/keys. Why: see followed_links.cpp.
#pragma once

#include <tessera/descriptor.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "beneath.h"

namespace tessera {

/// Whether an open file or folder lies in a folder, by real paths.
[[nodiscard]] bool lies_in(int fd, std::string_view folder);

/// The links below the root of one store that are followed. Thread rule: any thread may call any member.
class FollowedLinks {
public:
    struct Opened {
        Descriptor value;                                ///< none: errno says why, unless a link leads out
        std::optional<std::string> left = std::nullopt;  ///< the prefix that a link on the way leads out of
        bool is_folder = false;                          ///< whether that link is one to a folder
    };
    /// Opens a value through links. Those that are not within the folder of their array, or outside of arrays within
    /// the root, must lead straight to an array or a group with metadata. If `within` is not empty, none leads out of
    /// it.
    [[nodiscard]] Opened open(int root, const std::string& key, int flags, std::string_view within) const;
    /// Opens a value of an array or group that a link was followed to before; nullopt if there is none. A further link
    /// fails with ELOOP.
    [[nodiscard]] std::optional<int> open_known(int root, const std::string& key, int flags) const;
    /// Closes the folders that are kept.
    void forget() const { nodes_.clear(); }

private:
    mutable std::atomic<bool> any_ = false;
    mutable FolderCache nodes_;  ///< behind links, by the keys of the links
};

}  // namespace tessera
