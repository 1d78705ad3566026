// RemoteOptions: how values behind HTTP and in S3 are asked for. Also what lies in a cache of such values on the disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct RemoteOptions {
    /// The folder of a cache on the disk, which is made with mode 0700; empty: there is none. Many processes may use it
    /// at once. If others than its owner can read the folder, it only takes what anybody may read: no answer to a
    /// request that had credentials, a query or headers of its own.
    std::filesystem::path cache = {};
    std::uint64_t cache_bytes = std::uint64_t{10} << 30;  ///< the most that all processes together keep in it
    /// So long an answer serves without asking the server whether it is still valid; that a value is absent, for a
    /// minute of it at most. Programs that write ask always.
    std::chrono::milliseconds cache_age{0};
    /// Nothing is asked over the network: what is not in the cache is an error.
    bool offline = false;

    /// Taken before the environment variables of these names: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, …
    std::map<std::string, std::string, std::less<>> settings = {};
    /// Requests to S3 are not signed.
    bool anonymous = false;
    /// Lines that are added to each request to a server of files: "Authorization: Bearer …". They go to no other host.
    std::vector<std::string> headers = {};
    /// The status, 401 or 403, by which servers say that there is no such value; 0: none.
    int absent_status = 0;
    /// Called with a line for each request that is answered, without secrets, in any thread; may be null.
    std::function<void(std::string_view line)> log = nullptr;
    /// Called with what a server names and nobody can read, in any thread; may be null, and StoreOptions::waiter then
    /// hears of it.
    std::function<void(std::string_view text)> note = nullptr;
};

/// The options where StoreOptions::remote is null: those of the innermost RemoteScope, else those of
/// set_remote_options(). Any thread.
[[nodiscard]] std::shared_ptr<const RemoteOptions> remote_options();
/// For what is opened from now on. Any thread.
void set_remote_options(const RemoteOptions& options);

/// As long as it lives, what this thread opens without options of its own, and what the jobs of its parallel_for open,
/// is opened with these; it keeps them. Thread rule: made and destroyed by one thread, the last one first.
class RemoteScope {
public:
    explicit RemoteScope(std::shared_ptr<const RemoteOptions> options);
    ~RemoteScope();
    RemoteScope(const RemoteScope&) = delete;
    RemoteScope& operator=(const RemoteScope&) = delete;
    [[nodiscard]] const std::shared_ptr<const RemoteOptions>& options() const { return options_; }

private:
    std::shared_ptr<const RemoteOptions> options_;
    const RemoteScope* outer_;
};

/// What this process has asked over the network until now.
struct RemoteActivity {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;  ///< that came
    std::string waits_for =
        {};  ///< without secrets: a request that is under way, if nothing has come for three seconds
};
[[nodiscard]] RemoteActivity remote_activity();

/// "401" or "403". Throws invalid_argument, beginning with `what`, for other texts.
[[nodiscard]] int parse_absent_status(std::string_view what, std::string_view text);

/// An entry of a cache.
struct CachedValue {
    std::string name;         ///< where it is from, without secrets: "s3://bucket/a.zarr/c/0/0"
    std::string part;         ///< "whole", "bytes 0-99", "absent"
    std::uint64_t bytes = 0;  ///< on the disk
    std::chrono::system_clock::time_point used;
    bool damaged = false;  ///< its bytes are not those that were written; such an entry is never an answer
};
/// Calls each(entry) for every entry of the cache in a folder, in no order. `read`: reads them, to find damaged ones.
/// Throws not_found if there is no cache there.
void for_each_cached(const std::filesystem::path& folder, bool read,
                     const std::function<void(const CachedValue&)>& each);
/// Removes the entries for which which(entry) is true, and returns their number. Damaged ones are known only if `read`.
std::uint64_t remove_cached(const std::filesystem::path& folder, bool read,
                            const std::function<bool(const CachedValue&)>& which);

}  // namespace tessera
