// The log of an array or a group: a line for each change that somebody wants to be remembered. The program writes one
// for each command; the library none by itself. A line is the time, user and host, and the words of a command, with a
// tab between them:
// "2026-11-23T09:30:00Z", "ada@lovelace", "tessera set grid.zarr 0:10 5".
//
// It lies in `.tessera/log`, which readers, copies, seals and sums pass by, and may be read, cut or removed by anybody.
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

/// Adds a line to the log of the array or group in a directory. All of it is written in one step at the end of the
/// file, so that lines of several writers never mix. Control characters and backslashes are escaped, and what is longer
/// than a few KiB is cut. Does not wait for the disk, follows no link below the directory, and makes no directory but
/// `.tessera`. False where it cannot be written; nothing is thrown then, for a change is not undone by that.
bool append_log(const std::filesystem::path& directory, const LogLine& line) noexcept;

/// The last lines of the log in a directory, the oldest first, at most so many bytes of it; none where there is none.
/// Lines that are not of this form are left out. Throws io.
[[nodiscard]] std::vector<LogLine> read_log(const std::filesystem::path& directory, std::size_t most = 4U << 20U);

/// The time, user and host of this moment and process, for a line.
[[nodiscard]] LogLine log_line(std::string change);

}  // namespace tessera
