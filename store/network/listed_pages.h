// ListedPages: the pages of a listing of S3, held against what a listing is. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "http_client.h"

namespace tessera {

/// What was listed in folders, to see that they do not contain themselves: to go through such ends in none. Thread
/// rule: every member may be called from any thread.
class ListedFolders {
public:
    /// Throws corrupt if the folders above list just the same. `content` is of what lies in this one.
    void note(const std::string& name, const std::string& prefix, std::size_t content);

private:
    struct Folder {
        std::string prefix;
        std::size_t content = 0;
        int alike = 0;  ///< folders above that list the same
    };
    std::mutex mutex_;
    std::deque<Folder> last_;
};

/// Each page must be a listing from its beginning to its end, and one that leads further: a server may answer 200 with
/// the page of a proxy, with an error, or with the same page for ever. Thread rule: of one thread.
class ListedPages {
public:
    /// `name` is what is listed, for messages.
    explicit ListedPages(std::string name) : name_(std::move(name)) {}

    /// Of the page to ask for; empty before the first and after the last.
    [[nodiscard]] const std::string& token() const { return token_; }
    /// Takes the next token from an answer. Throws corrupt unless it is a listing, with a token that is new if more
    /// pages follow.
    void turn(const HttpResponse& response);
    /// A name on the page.
    void note(std::string_view key, std::string_view etag) {
        for (const std::string_view text : {key, etag}) content_ = content_ * 31 + std::hash<std::string_view>()(text);
        if (key <= furthest_) return;
        furthest_ = key;
        further_ = true;
    }
    void note_folder() { has_folders_ = true; }
    [[nodiscard]] bool has_folders() const { return has_folders_; }
    /// Throws corrupt if too many pages lead nowhere.
    void end();
    /// A number for what was noted.
    [[nodiscard]] std::size_t content() const { return content_; }

private:
    std::string name_;
    std::string token_;
    std::string kept_token_;  ///< an earlier one: any cycle of tokens comes back to it
    std::uint64_t pages_ = 0;
    std::size_t content_ = 0;
    bool has_folders_ = false;
    std::string furthest_;
    bool further_ = false;
    int back_ = 0;  ///< pages one after another that did not lead further
};

}  // namespace tessera
