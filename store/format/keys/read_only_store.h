// The part that stores have in common of which nothing is changed in place: zips, references, chunks of other files.
#pragma once

#include <tessera/error.h>
#include <tessera/key_value_store.h>

#include <memory>
#include <optional>
#include <string_view>

namespace tessera {

/// Refuses every change, in the words of the class that derives from it.
class ReadOnlyStore : public KeyValueStore {
public:
    void put(std::string_view key, ByteSpan /*value*/) final { throw refusal(key); }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) final { throw refusal(key); }
    bool erase(std::string_view key) final { throw refusal(key); }
    void erase_below(std::string_view prefix) final { throw refusal(prefix); }
    void move(std::string_view from, std::string_view /*to*/) final { throw refusal(from); }
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t /*slot*/, LockMode /*mode*/) final {
        throw refusal(prefix);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) final { throw refusal(prefix); }

private:
    [[nodiscard]] virtual Error refusal(std::string_view key) const = 0;
};

}  // namespace tessera
