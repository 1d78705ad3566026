#include "pages_ahead.h"

#include <tessera/memory_account.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "aws_signature.h"

namespace tessera {

namespace {

constexpr std::size_t most_at_once = 32;
/// A page of a thousand names, and what is read of it.
constexpr std::uint64_t usual_page = std::uint64_t{1} << 20;
/// So much of a page is expected to be new: the more, the more often a gap has to be closed.
constexpr double new_part = 0.9;

bool is_ascending(const std::vector<ListedName>& names) {
    return std::ranges::adjacent_find(names, std::greater_equal<>(), &ListedName::name) == names.end();
}

}  // namespace

std::optional<PagesAhead::Page> PagesAhead::take(const std::string& done) {
    while (asked_.size() > 1 && asked_[1].after <= done) asked_.pop_front();
    if (asked_.empty() || asked_.front().after > done) return std::nullopt;
    Page page = std::move(asked_.front());
    asked_.pop_front();
    return page;
}

bool PagesAhead::leads_on(const Page& page, const HttpResponse& response, const std::vector<ListedName>& names,
                          const std::string& done) {
    constexpr int ok = 200;
    if (response.status != ok || !is_ascending(names) || (!names.empty() && names.front().name <= page.after)) {
        stop();
        return false;
    }
    const bool useful =
        xml_element(response.text(), "IsTruncated") != "true" || (!names.empty() && names.back().name > done);
    at_once_ = useful ? std::min(2 * at_once_, most_at_once) : std::max<std::size_t>(at_once_ / 2, 1);
    return useful;
}

void PagesAhead::told(const std::vector<ListedName>& names) {
    if (names.empty() || !is_ascending(names)) return stop();
    if (!std::exchange(made_, true) && make_) places_ = make_();
    const std::size_t end = place_of(names.back().name);
    const std::size_t passed = std::max<std::size_t>(end - place_of(names.front().name), 1);
    longest_ = std::max(longest_, names.size());
    const double room = new_part * static_cast<double>(longest_) / static_cast<double>(names.size());
    const auto step = std::max<std::size_t>(static_cast<std::size_t>(room * static_cast<double>(passed)), 1);
    // The page after this one comes without a guess.
    next_ = std::max(next_, end + step - 1);
    const std::size_t most = std::min<std::size_t>(at_once_, memory_left() / 4 / usual_page);
    for (; asked_.size() < most && next_ < places_.size(); next_ += step) {
        asked_.push_back({ask_(places_[next_]), places_[next_]});
    }
}

std::size_t PagesAhead::place_of(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(places_, name) - places_.begin());
}

void PagesAhead::stop() {
    asked_.clear();
    places_.clear();
    made_ = true;
}

}  // namespace tessera
