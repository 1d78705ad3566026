// How two versions of a file are told apart where its times do not do it: see versions.cpp. Private to the store
// module.
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

/// A time that may be one of whole seconds, of FAT's two or of exFAT's hundredths. Times of files that Tessera writes
/// are none of these where the file system keeps nanoseconds.
[[nodiscard]] inline bool is_coarse(const timespec& time) {
    constexpr long hundredth = 10'000'000;
    return time.tv_nsec % hundredth == 0;
}

/// Of a file with a coarse time of modification: whether its file system keeps nanoseconds all the same. `folder` is an
/// open directory, in which that is tried out if it is `writable`. Any thread.
[[nodiscard]] bool keeps_nanoseconds(int folder, const struct stat& file, bool writable);

/// The stamp that tells versions apart by their bytes, all of which are read; without a time.
[[nodiscard]] ValueStamp content_stamp(const ByteSource& value);

/// Remembers such stamps of files that have not changed for a while. Any thread.
class ContentStamps {
public:
    /// Of a file whose status is this now; nothing where it is not known.
    [[nodiscard]] std::optional<ValueStamp> find(std::string_view key, const struct stat& status) const;
    /// `status` is from before the bytes were read.
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
