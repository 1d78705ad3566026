// What only a store over the network has: each read is a request, so that it pays to announce them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>

namespace tessera {

struct StoreOptions;
struct ValueStamp;

/// A value that will be read soon.
struct ReadWish {
    std::string key;
    bool whole = false;  ///< by get(); else by open()
    /// By open_from() with these bytes; empty: the last ones are read first, as of a shard.
    ByteSource::Extent first = {};
};
/// Gives the next one; false when there is none.
using NextWish = std::function<bool(ReadWish& wish)>;
/// While it lives, values are fetched before they are asked for (KeyValueStore::read_ahead).
class ReadAhead {
public:
    virtual ~ReadAhead() = default;
};

/// What a server's answers told about times, by its own clock, in seconds since 1970; 0: nothing.
struct SeenTimes {
    std::int64_t now = 0;      ///< when it answered last
    std::int64_t changed = 0;  ///< when that value changed which changed last among those that were read
    std::string name;          ///< of that value
};

/// See the members of these names in ReadableStore and KeyValueStore. Thread rule: as KeyValueStore.
class FarStore {
public:
    virtual ~FarStore() = default;
    [[nodiscard]] virtual StoreOptions options_beside() const = 0;
    [[nodiscard]] virtual std::unique_ptr<ReadAhead> read_ahead(std::uint64_t /*usual*/, NextWish /*next*/,
                                                                std::uint64_t /*room*/) const {
        return nullptr;
    }
    [[nodiscard]] virtual std::unique_ptr<ReadAhead> keep_parts(bool /*whole*/) const { return nullptr; }
    [[nodiscard]] virtual std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const = 0;
    /// As for_each_sum() and for_each_stamp(); false if a listing tells neither.
    using EachVersion = std::function<void(std::string_view name, const ValueStamp& stamp, std::string_view md5)>;
    virtual bool for_each_version(std::string_view /*prefix*/, const EachVersion& /*each*/,
                                  const std::function<void(std::string_view name, bool link)>& /*folder*/) const {
        return false;
    }
    /// Calls each(name, stamp, MD5 sum) for all values below a prefix, with '/' in their names: a listing that knows no
    /// folders. `places`, which may be null, gives names in ascending order between which about as many values may lie,
    /// so that several pages can be asked for at once. false if there is no such listing.
    using Places = std::function<std::vector<std::string>()>;
    virtual bool for_each_below(std::string_view /*prefix*/, const Places& /*places*/,
                                const EachVersion& /*each*/) const {
        return false;
    }
    /// As open(), for who reads the bytes `first` first: the source has them from the beginning. Empty: the last bytes.
    [[nodiscard]] virtual std::unique_ptr<ByteSource> open_from(std::string_view key,
                                                                ByteSource::Extent first) const = 0;
    /// How many bytes come in the time of one more request, as far as this was measured.
    [[nodiscard]] virtual std::uint64_t worth_a_request() const { return std::uint64_t{1} << 20; }
    /// How often reading a source failed because its value was replaced meanwhile.
    [[nodiscard]] virtual std::uint64_t replaced() const { return 0; }
    [[nodiscard]] virtual SeenTimes seen_times() const { return {}; }
    virtual void abandon_uploads(std::string_view /*prefix*/) const {}
};

}  // namespace tessera
