// A store that fails from some change on, for tests of what is left then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "forwarding_store.h"

namespace tessera {

/// Another store, until the n-th change: that one and all that come after fail, as when the program is gone.
class DyingStore final : public ForwardingStore {
public:
    DyingStore(std::shared_ptr<KeyValueStore> inner, std::int64_t lives)
        : ForwardingStore(std::move(inner)), lives_(lives) {}

    void put(std::string_view key, ByteSpan value) override {
        live();
        inner().put(key, value);
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        live();
        return inner().create(key);
    }
    bool link(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
        live();
        return ForwardingStore::link(key, other, other_key);
    }
    bool replace(std::string_view from, std::string_view to) override {
        live();
        return inner().replace(from, to);
    }
    bool erase(std::string_view key) override {
        live();
        return inner().erase(key);
    }
    void erase_below(std::string_view prefix) override {
        live();
        inner().erase_below(prefix);
    }

private:
    void live() {
        if (--lives_ < 0) throw Error(ErrorCode::io, "dead");
    }
    std::atomic<std::int64_t> lives_;
};

}  // namespace tessera
