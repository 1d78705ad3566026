// The log of an array or a group: a line for each recorded change. The program writes one for each command; the library
// writes none by itself. A line has the time, user and host, and the words of a command, separated by tabs:
// "2026-11-23T09:30:00Z", "ada@lovelace", "tessera set grid.zarr 0:10 5".
//
// It lies in `.tessera/log`, which readers, copies, seals and sums ignore. Anybody may read, truncate or remove it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct LogLine {
    std::string time;    ///< "2026-11-23T09:30:00Z"
    std::string who;     ///< "user@host"
    std::string change;  ///< the words of a command
};

/// Appends a line to the log of the array or group in a directory. The line is written in one step, so that lines of
/// several writers never mix. Control characters and backslashes are escaped, and a line is cut after a few KiB. Does
/// not wait for the disk, follows no link below the directory, and creates no directory except `.tessera`. Returns
/// false if the line cannot be written. That throws nothing, because the change itself is already done.
bool append_log(const std::filesystem::path& directory, const LogLine& line) noexcept;

/// The last lines of the log in a directory, oldest first, from at most `most` bytes of it; empty without a log. Lines
/// that do not have this form are omitted. Throws io.
[[nodiscard]] std::vector<LogLine> read_log(const std::filesystem::path& directory, std::size_t most = 4U << 20U);

/// A line with the present time, and the user and host of this process.
[[nodiscard]] LogLine log_line(std::string change);

}  // namespace tessera
