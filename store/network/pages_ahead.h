// Pages of one listing that are asked for at once. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/far_store.h>

#include "http_client.h"

namespace tessera {

/// A value on a page.
struct ListedName {
    std::string name;
    std::uint64_t size = 0;
    std::string etag;
};

/// Each page of a listing says how the next is asked for, so that a million values take a thousand round trips. Whoever
/// knows which names there may be says about where they lie, and from the density of those that came it follows where
/// the next pages begin. A wrong guess costs a request: a page counts only from the name that was reached, and if there
/// is a gap, it is closed by the pages' own way. Thread rule: of one thread.
class PagesAhead {
public:
    /// Begins a request for the page of the names after one.
    using Ask = std::function<HttpTicket(const std::string& after)>;
    struct Page {
        HttpTicket ticket;
        std::string after;
    };

    PagesAhead(const FarStore::Places& places, Ask ask) : make_(places), ask_(std::move(ask)) {}

    /// A page that goes on from what was listed, up to the name `done`; nullopt if there is none.
    [[nodiscard]] std::optional<Page> take(const std::string& done);
    /// Whether an answer to such a page leads further than `done`. If the server lists in another order than that of
    /// names, or from elsewhere, nothing more is guessed.
    [[nodiscard]] bool leads_on(const Page& page, const HttpResponse& response, const std::vector<ListedName>& names,
                                const std::string& done);
    /// What a page told that others follow: more of these are asked for.
    void told(const std::vector<ListedName>& names);

private:
    [[nodiscard]] std::size_t place_of(std::string_view name) const;
    void stop();

    const FarStore::Places& make_;
    Ask ask_;
    bool made_ = false;
    std::vector<std::string> places_;
    std::size_t next_ = 0;     ///< the place to ask at
    std::size_t longest_ = 0;  ///< names on a page
    std::size_t at_once_ = 2;
    std::deque<Page> asked_;
};

}  // namespace tessera
