#include <tessera/edit.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/error.h>
#include <tessera/permissions.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "beneath.h"

namespace tessera {

namespace {

// Every local file system appends this much in one step.
constexpr std::size_t longest_line = 4096;
constexpr const char* folder = ".tessera";
constexpr const char* file = ".tessera/log";

/// Escapes control characters, which would end a line or a part of it.
std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (c == '\\') {
            safe += "\\\\";
        } else if (u < 0x20 || u == 0x7F) {
            safe += fmt::format("\\x{:02x}", u);
        } else {
            safe += c;
        }
    }
    return safe;
}

/// Truncates between characters of UTF-8.
void cut(std::string& text, std::size_t most) {
    if (text.size() <= most) return;
    constexpr std::string_view mark = "…";
    std::size_t end = most - mark.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
    text += mark;
}

/// Opens the log if it is a regular file; never through a link.
Descriptor open_log(int directory, int flags) {
    constexpr mode_t readable = 0666;
    Descriptor fd(open_beneath(directory, file, flags | O_NONBLOCK | O_NOCTTY, readable));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return Descriptor();
    return fd;
}

}  // namespace

bool append_log(const std::filesystem::path& directory, const LogLine& line) noexcept {
    try {
        std::string text = fmt::format("{}\t{}\t{}", escaped(line.time), escaped(line.who), escaped(line.change));
        cut(text, longest_line - 1);
        text += '\n';
        const Descriptor at(open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
        if (!at) return false;
        if (!make_folder_like_above(at.get(), folder) && errno != EEXIST) return false;
        const Descriptor log = open_log(at.get(), O_WRONLY | O_APPEND | O_CREAT);
        struct stat status {};
        if (!log || ::fstat(log.get(), &status) != 0) return false;
        (void)share_with_folder(log.get(), status, at.get());  // all who may write append to it
        return std::cmp_equal(::write(log.get(), text.data(), text.size()), text.size());
    } catch (const std::exception&) {
        return false;  // no memory for a line
    }
}

std::vector<LogLine> read_log(const std::filesystem::path& directory, std::size_t most) {
    std::vector<LogLine> lines;
    const Descriptor at(open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
    if (!at) {
        if (is_absent(errno)) return lines;
        throw io_error("cannot open", directory.string(), errno);
    }
    const Descriptor log = open_log(at.get(), O_RDONLY);
    if (!log) return lines;
    const off_t end = ::lseek(log.get(), 0, SEEK_END);
    const off_t begin = std::cmp_greater(end, most) ? end - static_cast<off_t>(most) : 0;
    std::string text(static_cast<std::size_t>(end - begin), '\0');
    const auto have = pread_all(log.get(), std::as_writable_bytes(std::span(text)), static_cast<std::uint64_t>(begin));
    if (!have) throw io_error("cannot read", (directory / file).string(), errno);
    text.resize(*have);
    // Skips an incomplete first or last line.
    std::size_t from = begin == 0 ? 0 : text.find('\n') + 1;
    for (std::size_t to = text.find('\n', from); to != std::string::npos; to = text.find('\n', from)) {
        const std::string_view line = std::string_view(text).substr(from, to - from);
        from = to + 1;
        const std::size_t who = line.find('\t');
        const std::size_t change = who == std::string_view::npos ? who : line.find('\t', who + 1);
        if (change == std::string_view::npos) continue;
        lines.push_back({std::string(line.substr(0, who)), std::string(line.substr(who + 1, change - who - 1)),
                         std::string(line.substr(change + 1))});
    }
    return lines;
}

LogLine log_line(std::string change) {
    std::array<char, 4096> names{};
    passwd entry{};
    passwd* found = nullptr;
    const uid_t user = ::geteuid();
    const bool known = ::getpwuid_r(user, &entry, names.data(), names.size(), &found) == 0 && found != nullptr;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
    return {fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))),
            fmt::format("{}@{}", known ? entry.pw_name : std::to_string(user), host.data()), std::move(change)};
}

}  // namespace tessera
