// DiskCache: a folder of entries by key, bounded in bytes over all processes that use it. Private to the store module.
//
// An entry is a file ab/cdef…, named by its key, a SHA-256 sum: a line with sums and sizes, a text, and a body. It is
// written beside its name and renamed, and checked when it is read. A damaged one is removed. The file's time of access
// is when it was used, its time of change when it was last known to be valid. `tessera-cache` marks the folder, holds
// how many bytes there are, and is the file whose bytes are locked: 0 for that number, 1 for who makes room, and others
// by key for who fetches a value.
//
// Nothing here throws because of the disk: what cannot be kept is fetched again.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <tessera/buffer.h>
#include <tessera/descriptor.h>

namespace tessera {

/// Thread rule: every member may be called from several threads at once.
class DiskCache : public std::enable_shared_from_this<DiskCache> {
public:
    /// The one of a folder in this process. Throws invalid_argument for a folder that holds other things, and io if it
    /// cannot be made.
    static std::shared_ptr<DiskCache> open(const std::filesystem::path& folder, std::uint64_t most);

    /// "cdef…" of anything, in 64 hexadecimal digits.
    [[nodiscard]] static std::string key_of(std::string_view text);
    /// Nanoseconds since 1970.
    [[nodiscard]] static std::int64_t now();

    struct Entry {
        std::string text;
        std::uint64_t size = 0;  ///< of the body
        Buffer body;             ///< if it was wanted
        std::int64_t checked = 0;
    };
    /// nullopt if there is none, or a damaged one, or one with a body of more than `limit` bytes.
    [[nodiscard]] std::optional<Entry> find(const std::string& key, bool with_body, std::uint64_t limit = UINT64_MAX);
    /// `checked` is 0 for an entry that has to be validated before it is used.
    void store(const std::string& key, std::string_view text, ByteSpan body, std::int64_t checked) noexcept;
    /// It is known to be valid now.
    void set_checked(const std::string& key, std::int64_t when) noexcept;
    /// Whether there was one.
    bool drop(const std::string& key) noexcept;

    /// While it lives, no other thread or process claims the key.
    class Claim {
    public:
        Claim(std::shared_ptr<DiskCache> cache, std::string key) : cache_(std::move(cache)), key_(std::move(key)) {}
        ~Claim() { cache_->release(key_); }
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;

    private:
        std::shared_ptr<DiskCache> cache_;
        std::string key_;
    };
    /// Null if another one has it.
    [[nodiscard]] std::shared_ptr<Claim> claim(const std::string& key);

    /// Whether others than the owner can look into the folder.
    [[nodiscard]] bool is_shared() const { return shared_; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    /// Goes up with each value that this process writes to a server.
    std::atomic<std::uint64_t> writes = 0;

    DiskCache(std::filesystem::path folder, std::uint64_t most);

private:
    friend class Claim;
    [[nodiscard]] bool open_mark(unsigned mode);
    void release(const std::string& key) noexcept;
    /// Adds to the number of bytes, and returns it.
    std::uint64_t add(std::int64_t bytes) noexcept;
    void make_room(std::uint64_t target) noexcept;
    [[nodiscard]] bool lock(std::uint64_t byte, short type, bool wait) const noexcept;

    std::filesystem::path folder_;
    std::uint64_t most_;
    bool shared_ = false;
    bool writable_ = true;
    Descriptor root_;
    Descriptor mark_;
    std::mutex total_mutex_;
    std::mutex room_mutex_;
    std::mutex claims_mutex_;
    std::set<std::string, std::less<>> claims_;
};

}  // namespace tessera
