// A store that writes down, in order, what is changed and what is made durable: for tests of what comes before what.
#pragma once

#include <gtest/gtest.h>
#include <tessera/error.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "forwarding_store.h"

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

class RecordingStore final : public ForwardingStore {
public:
    using ForwardingStore::ForwardingStore;

    void put(std::string_view key, ByteSpan value) override {
        require_alive({Event::Kind::put, std::string(key)});
        inner().put(key, value);
        record({Event::Kind::put, std::string(key)});
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        return std::make_unique<Sink>(*this, std::string(key), inner().create(key));
    }
    bool link(std::string_view key, const KeyValueStore& other, std::string_view other_key) override {
        if (!ForwardingStore::link(key, other, other_key)) return false;
        record({Event::Kind::link, std::string(key), std::string(other_key)});
        return true;
    }
    bool replace(std::string_view from, std::string_view to) override {
        require_alive({Event::Kind::replace, std::string(to), std::string(from)});
        if (!inner().replace(from, to)) return false;
        record({Event::Kind::replace, std::string(to), std::string(from)});
        return true;
    }
    bool erase(std::string_view key) override {
        require_alive({Event::Kind::erase, std::string(key)});
        if (!inner().erase(key)) return false;
        record({Event::Kind::erase, std::string(key)});
        return true;
    }
    void erase_below(std::string_view prefix) override {
        const Listing listing = inner().list(prefix);
        inner().erase_below(prefix);
        if (!listing.keys.empty() || !listing.prefixes.empty()) {
            record({Event::Kind::erase_below, std::string(prefix)});
        }
    }
    void move(std::string_view from, std::string_view to) override {
        inner().move(from, to);
        record({Event::Kind::move, std::string(to), std::string(from)});
    }
    void sync() override {
        inner().sync();
        record({Event::Kind::sync});
    }

    /// From now on such changes fail, as when the program is gone.
    void refuse(Which which) { refused_ = std::move(which); }

    /// What was recorded since the last call.
    [[nodiscard]] std::vector<Event> take() {
        const std::lock_guard guard(mutex_);
        return std::exchange(events_, {});
    }

private:
    /// A value that is there once it is finished.
    class Sink final : public ByteSink {
    public:
        Sink(RecordingStore& store, std::string key, std::unique_ptr<ByteSink> inner)
            : store_(store), key_(std::move(key)), inner_(std::move(inner)) {}
        [[nodiscard]] bool random_access() const override { return inner_->random_access(); }
        void append(ByteSpan bytes) override { inner_->append(bytes); }
        void write_at(std::uint64_t offset, ByteSpan bytes) override { inner_->write_at(offset, bytes); }
        void finish() override {
            inner_->finish();
            store_.record({Event::Kind::put, key_});
        }
        [[nodiscard]] const std::string& name() const override { return inner_->name(); }

    private:
        RecordingStore& store_;
        std::string key_;
        std::unique_ptr<ByteSink> inner_;
    };

    void require_alive(const Event& event) const {
        if (refused_ && refused_(event)) throw Error(ErrorCode::io, "dead");
    }

    void record(Event event) {
        const std::lock_guard guard(mutex_);
        events_.push_back(std::move(event));
    }

    std::mutex mutex_;
    std::vector<Event> events_;
    Which refused_;
};

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
