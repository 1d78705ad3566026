// How to tell two versions of a file apart if its times are too coarse: see versions.cpp. Private to the store module.
#pragma once

#include <sys/stat.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/byte_io.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Whether a time may have been rounded to whole seconds, FAT's two seconds or exFAT's hundredths. Tessera gives its
/// files other times if the file system keeps nanoseconds.
[[nodiscard]] inline bool is_coarse(const timespec& time) {
    constexpr long hundredth = 10'000'000;
    return time.tv_nsec % hundredth == 0;
}

/// For a file with a coarse modification time: whether its file system keeps nanoseconds nevertheless. Tries that out
/// in the open directory `folder` if it is `writable`. Any thread.
[[nodiscard]] bool keeps_nanoseconds(int folder, const struct stat& file, bool writable);

/// The stamp that identifies a version by its bytes, without a time. Reads them all.
[[nodiscard]] ValueStamp content_stamp(const ByteSource& value);

/// Opens a value, with its stamp, or none if it was replaced just then. Null if there is none.
[[nodiscard]] std::unique_ptr<ByteSource> open_stamped(const ReadableStore& store, std::string_view key,
                                                       std::optional<ValueStamp>& stamp);

/// Caches such stamps for files that have not changed for a while. Any thread.
class ContentStamps {
public:
    /// The stamp of a file with this present status; nullopt if it is not cached.
    [[nodiscard]] std::optional<ValueStamp> find(std::string_view key, const struct stat& status) const;
    /// `status` must be from before the bytes were read.
    void remember(std::string_view key, const struct stat& status, const ValueStamp& stamp);

private:
    struct Known {
        struct stat status;
        ValueStamp stamp;
    };
    mutable std::mutex mutex_;
    std::map<std::string, Known, std::less<>> known_;
};

}  // namespace tessera
