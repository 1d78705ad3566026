// A store that hands everything on to another one: what tests that count or fail some of its calls begin with.
#pragma once

#include <tessera/key_value_store.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

class ForwardingStore : public KeyValueStore, public LocalFiles {
public:
    explicit ForwardingStore(std::shared_ptr<KeyValueStore> inner) : inner_(std::move(inner)) {}

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override { return inner_->open(key); }
    void put(std::string_view key, ByteSpan value) override { inner_->put(key, value); }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override { return inner_->create(key); }
    [[nodiscard]] LocalFiles& local_files() override { return *this; }
    [[nodiscard]] const LocalFiles& local_files() const override { return *this; }
    bool link(std::string_view key, const ReadableStore& other, std::string_view other_key) override {
        return inner_->local_files().link(key, &other == this ? *inner_ : other, other_key);
    }
    bool replace(std::string_view from, std::string_view to) override { return inner_->replace(from, to); }
    Target prepare_replace(std::string_view key) override { return inner_->prepare_replace(key); }
    [[nodiscard]] bool contains(std::string_view key) const override { return inner_->contains(key); }
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override { return inner_->stamp(key); }
    bool erase(std::string_view key) override { return inner_->erase(key); }
    void erase_below(std::string_view prefix) override { inner_->erase_below(prefix); }
    [[nodiscard]] Listing list(std::string_view prefix) const override { return inner_->list(prefix); }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        inner_->for_each(prefix, each, folder);
    }
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        return inner_->lock(prefix, slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        return inner_->try_lock(prefix);
    }
    void move(std::string_view from, std::string_view to) override { inner_->move(from, to); }
    void sync() override { inner_->sync(); }
    void sync_later() override { inner_->sync_later(); }
    [[nodiscard]] const std::string& name() const override { return inner_->name(); }

protected:
    [[nodiscard]] KeyValueStore& inner() const { return *inner_; }

private:
    std::shared_ptr<KeyValueStore> inner_;
};

}  // namespace tessera
