// What changes and what is made durable, in order, and rules about it: for tests of what comes before what.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// One change, or a sync.
struct Event {
    enum class Kind : std::uint8_t { put, link, replace, erase, erase_below, move, sync } kind = Kind::sync;
    std::string key = {};   ///< what is there or gone after it; of erase_below and move a prefix
    std::string from = {};  ///< link, replace, move

    [[nodiscard]] std::string to_string() const {
        constexpr const char* names[] = {"put", "link", "replace", "erase", "erase_below", "move", "sync"};
        return std::string(names[static_cast<std::size_t>(kind)]) + ' ' + (from.empty() ? "" : from + " to ") + key;
    }
};

/// Some of the events.
using Which = std::function<bool(const Event&)>;

inline testing::AssertionResult with_events(testing::AssertionResult result, const std::vector<Event>& events) {
    for (const Event& event : events) result << "\n  " << event.to_string();
    return result;
}

/// Whether there are events of both kinds, all `first` ones before all `second` ones, and where `durable` a sync
/// between.
inline testing::AssertionResult in_turn(const std::vector<Event>& events, const Which& first, const Which& second,
                                        bool durable) {
    const auto last_first = std::find_if(events.rbegin(), events.rend(), first);
    const auto first_second = std::find_if(events.begin(), events.end(), second);
    if (last_first == events.rend()) return with_events(testing::AssertionFailure() << "no first one:", events);
    if (first_second == events.end()) return with_events(testing::AssertionFailure() << "no second one:", events);
    const auto after_first = last_first.base();
    if (first_second < after_first) return with_events(testing::AssertionFailure() << "in the other order:", events);
    const bool synced =
        std::any_of(after_first, first_second, [](const Event& e) { return e.kind == Event::Kind::sync; });
    if (durable && !synced) return with_events(testing::AssertionFailure() << "no sync between:", events);
    return testing::AssertionSuccess();
}

/// Whether there are such events, and a sync after the last of them.
inline testing::AssertionResult then_durable(const std::vector<Event>& events, const Which& which) {
    const auto last = std::find_if(events.rbegin(), events.rend(), which);
    if (last == events.rend()) return with_events(testing::AssertionFailure() << "nothing was changed:", events);
    if (std::any_of(last.base(), events.end(), [](const Event& e) { return e.kind == Event::Kind::sync; })) {
        return testing::AssertionSuccess();
    }
    return with_events(testing::AssertionFailure() << "no sync after it:", events);
}

}  // namespace tessera
