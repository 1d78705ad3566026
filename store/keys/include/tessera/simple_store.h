// SimpleStore: a KeyValueStore for values that are read and written as a whole, made from five functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Base of stores of a program's own (see add_store_kind). Everything else of a KeyValueStore is made of the five
/// functions below: versions are told apart by the values' bytes, and the locks exclude the threads of this process,
/// through all stores of the same name. Other processes are not excluded.
/// Thread rule: the five functions are called from several threads at once. Keys are checked before. They report
/// failures as Error (ErrorCode::io).
class SimpleStore : public KeyValueStore {
public:
    /// `name` as a user writes it: "mem:survey". Of the options, read_only and break_seal are heeded.
    SimpleStore(std::string name, const StoreOptions& options);

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const final;
    void put(std::string_view key, ByteSpan value) final;
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) final;
    bool erase(std::string_view key) final;
    void erase_below(std::string_view prefix) final;
    bool replace(std::string_view from, std::string_view to) final;
    void move(std::string_view from, std::string_view to) final;
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const final;
    [[nodiscard]] bool contains(std::string_view key) const final;
    [[nodiscard]] Listing list(std::string_view prefix) const final;
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const final;
    using KeyValueStore::for_each;
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) final;
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) final;
    void require_unsealed(std::string_view prefix) final;
    [[nodiscard]] bool read_only() const final { return options_.read_only; }
    [[nodiscard]] const std::string& name() const final { return name_; }

protected:
    /// The value of a key; nullopt if there is none.
    [[nodiscard]] virtual std::optional<Buffer> load(std::string_view key) const = 0;
    /// Sets a value, all at once: load() returns the old bytes or the new ones.
    virtual void store(std::string_view key, ByteSpan value) = 0;
    /// Removes a value; false if there was none.
    virtual bool remove(std::string_view key) = 0;
    /// All keys that begin with `prefix` and '/' (empty: all keys), in any order.
    [[nodiscard]] virtual std::vector<std::string> keys(std::string_view prefix) const = 0;
    /// The size of a value; nullopt if there is none. Override it if that takes less than loading the value.
    [[nodiscard]] virtual std::optional<std::uint64_t> size(std::string_view key) const;

private:
    void require_writable(std::string_view key) const;
    [[nodiscard]] std::string full_name(std::string_view key) const;

    std::string name_;
    StoreOptions options_;
    class LockTables& locks_;
};

}  // namespace tessera
