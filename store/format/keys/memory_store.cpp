// A store in memory. Values are immutable once put, so that an open value does not change when its key is replaced.
#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "keys.h"
#include "lock_table.h"
#include "memory_writer.h"
#include "sorted_keys.h"

namespace tessera {

namespace {

struct Versioned {
    explicit Versioned(ByteSpan bytes) : value(bytes), id(++versions) {}
    Buffer value;
    std::uint64_t id;  ///< unique among all values

private:
    static inline std::atomic<std::uint64_t> versions = 0;
};

using SharedValue = std::shared_ptr<const Versioned>;

class MemoryValue final : public ByteSource {
public:
    MemoryValue(SharedValue value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}
    [[nodiscard]] std::uint64_t size() const override { return value_->value.size(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        require_range(*this, offset, out.size());
        if (!out.empty()) std::memcpy(out.data(), value_->value.data() + offset, out.size());
    }
    [[nodiscard]] ByteSpan mapped() const override { return value_->value.span(); }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    SharedValue value_;
    std::string name_;
};

class MemoryStore final : public KeyValueStore {
public:
    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const std::shared_lock guard(mutex_);
        const auto found = values_.find(key);
        if (found == values_.end()) return nullptr;
        return std::make_unique<MemoryValue>(found->second, fmt::format("{}/{}", name_, key));
    }

    void put(std::string_view key, ByteSpan value) override {
        require_key(key);
        auto copy = std::make_shared<const Versioned>(value);
        const std::lock_guard guard(mutex_);
        values_.insert_or_assign(std::string(key), std::move(copy));
    }

    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        require_key(key);
        return std::make_unique<MemoryWriter>(*this, key);
    }

    bool erase(std::string_view key) override {
        require_key(key);
        const std::lock_guard guard(mutex_);
        const auto found = values_.find(key);
        if (found == values_.end()) return false;
        values_.erase(found);
        return true;
    }

    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        const std::lock_guard guard(mutex_);
        const auto gone = entries_below(values_, prefix);
        values_.erase(gone.begin(), gone.end());
    }

    void move(std::string_view from, std::string_view to) override {
        require_movable(name_, from, to);
        const std::lock_guard guard(mutex_);
        const auto old = entries_below(values_, from);
        if (old.empty()) throw not_found("moving {}/{}: nothing is there", name_, from);
        if (!entries_below(values_, to).empty() || values_.contains(to)) {
            throw already_exists("moving {}/{}: {} is there already", name_, from, to);
        }
        Values moved;
        for (const auto& [key, value] : old) moved.emplace(join_key(to, name_below(from, key)), value);
        values_.erase(old.begin(), old.end());
        values_.merge(moved);
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        const std::shared_lock guard(mutex_);
        return list_below(values_, prefix);
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(prefix, each, folder, std::shared_lock(mutex_), values_,
                             [](const SharedValue& value) { return value->value.size(); });
    }

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        require_prefix(prefix);
        return locks_.lock(prefix, slot, mode);
    }

    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        require_prefix(prefix);
        return locks_.try_lock(prefix);
    }

    bool replace(std::string_view from, std::string_view to) override {
        require_key(from);
        require_key(to);
        const std::lock_guard guard(mutex_);
        const auto found = values_.find(from);
        if (found == values_.end()) return false;
        const SharedValue value = found->second;
        values_.erase(found);
        values_.insert_or_assign(std::string(to), value);
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        const std::shared_lock guard(mutex_);
        const auto found = values_.find(key);
        if (found == values_.end()) return std::nullopt;
        return ValueStamp{.size = found->second->value.size(), .id = found->second->id};
    }

    [[nodiscard]] bool contains(std::string_view key) const override { return stamp(key).has_value(); }

    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    using Values = std::map<std::string, SharedValue, std::less<>>;

    std::string name_ = "memory";
    mutable std::shared_mutex mutex_;
    Values values_;
    LockTables locks_;
};

}  // namespace

std::shared_ptr<KeyValueStore> memory_store() {
    return std::make_shared<MemoryStore>();
}

}  // namespace tessera
