// A store that writes down, in order, what is changed and what is made durable: for tests of what comes before what.
#pragma once

#include <tessera/error.h>

#include <mutex>
#include <vector>

#include "forwarding_store.h"
#include "order.h"

namespace tessera {

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
    bool link(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
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

}  // namespace tessera
