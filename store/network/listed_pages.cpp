#include "listed_pages.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "answer_text.h"
#include "aws_signature.h"
#include "keys.h"

namespace tessera {

namespace {

/// Servers list in the order of keys, or of files: that many pages without one beyond those before are no listing.
constexpr int most_back = 1'000;
/// Folders, each in the one before, that list the same; and those that are remembered.
constexpr int most_alike = 32;
constexpr std::size_t most_folders = 256;
constexpr std::size_t longest_key = 1'024;

/// Without blanks at the end, and without the declaration of XML at the beginning.
std::string_view root_of(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text.starts_with(mark)) text.remove_prefix(mark.size());
    text = text.substr(0, text.find_last_not_of(blanks) + 1);
    const auto skip_blanks = [&] { text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size())); };
    skip_blanks();
    if (text.starts_with("<?xml")) {
        const std::size_t end = text.find("?>");
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
        skip_blanks();
    }
    return text;
}

bool is_listing(std::string_view text) {
    constexpr std::string_view begin = "<ListBucketResult";
    const std::string_view root = root_of(text);
    return root.starts_with(begin) && root.size() > begin.size() &&
           (root[begin.size()] == '>' || root[begin.size()] == ' ') && root.ends_with("</ListBucketResult>");
}

}  // namespace

void ListedPages::turn(const HttpResponse& response) {
    const std::string_view text = response.text();
    if (!is_listing(text)) {
        const std::string code = xml_element(text, "Code");
        throw corrupt("{}: asked for a list of what is there, the server answers {} with {}{}, which is no listing",
                      name_, response.status, what_came(response), code.empty() ? "" : " (" + code + ")");
    }
    const bool more = xml_element(text, "IsTruncated") == "true";
    std::string next = more ? xml_element(text, "NextContinuationToken") : std::string();
    if (more && next.empty()) {
        throw corrupt("{}: the server's listing is cut (IsTruncated), and says not how it goes on", name_);
    }
    if (more && (next == token_ || next == kept_token_)) {
        throw corrupt("{}: the server's listing goes on where it was already: it never ends", name_);
    }
    // Brent's way to find a cycle: a mark that is moved after 1, 2, 4, … pages.
    if (std::has_single_bit(++pages_)) kept_token_ = next;
    token_ = std::move(next);
}

void ListedPages::end() {
    back_ = std::exchange(further_, false) ? 0 : back_ + 1;
    if (back_ > most_back) {
        throw corrupt(
            "{}: the last {} pages of the server's listing name nothing that follows on those before: it "
            "never ends",
            name_, back_);
    }
}

void ListedFolders::note(const std::string& name, const std::string& prefix, std::size_t content) {
    if (prefix.size() > longest_key) {
        throw corrupt("{}: the server lists folders there, below a name that is longer than any key", name);
    }
    const std::string_view above = parent_of(prefix);
    const std::lock_guard guard(mutex_);
    const auto found = std::ranges::find(last_, above, &Folder::prefix);
    const int alike = !prefix.empty() && found != last_.end() && found->content == content ? found->alike + 1 : 0;
    if (alike >= most_alike) {
        throw corrupt(
            "{}: the server lists in each folder what it lists in the one above, {} times: they contain "
            "themselves",
            name, alike);
    }
    std::erase_if(last_, [&](const Folder& folder) { return folder.prefix == prefix; });
    last_.push_front({prefix, content, alike});
    if (last_.size() > most_folders) last_.pop_back();
}

}  // namespace tessera
