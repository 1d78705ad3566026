#include <tessera/fixity_log.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/edit.h>
#include <tessera/error_text.h>
#include <tessera/permissions.h>
#include <tessera/place.h>
#include <tessera/store_kind.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "beneath.h"
#include "seal_mark.h"
#include "sha256.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr const char* fixity_folder = ".tessera";
constexpr const char* fixity_file = fixity_key.data();          // a literal, which ends with 0
constexpr std::uint64_t longest_log = std::uint64_t{64} << 20;  // a line a day of several thousand years
constexpr std::size_t hash_digits = 64;

std::string hash_of(std::string_view line) {
    Hasher hasher;
    hasher.add(line.data(), line.size());
    return hex(hasher.finish());
}

/// Opens the log if it is a regular file. Throws io, also for anything else in its place.
Descriptor open_fixity_log(const Descriptor& directory, const fs::path& path, int flags) {
    constexpr mode_t readable = 0666;
    Descriptor fd(open_beneath(directory.get(), fixity_file, flags | O_NONBLOCK | O_NOCTTY, readable));
    if (!fd) {
        if (errno == ENOENT && (flags & O_CREAT) == 0) return fd;
        throw io_error("cannot open", (path / fixity_file).string(), errno);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        throw Error(ErrorCode::io, fmt::format("{}: expected a regular file", (path / fixity_file).string()));
    }
    return fd;
}

/// All of it, up to the end of its last whole line.
std::string whole_lines(const Descriptor& log, const fs::path& path) {
    const off_t size = ::lseek(log.get(), 0, SEEK_END);
    if (size < 0) throw io_error("cannot read", (path / fixity_file).string(), errno);
    if (std::cmp_greater(size, longest_log)) {
        throw corrupt("{}: {} bytes; a fixity log has at most {}", (path / fixity_file).string(), size, longest_log);
    }
    std::string text(static_cast<std::size_t>(size), '\0');
    const auto have = pread_all(log.get(), std::as_writable_bytes(std::span(text)), 0);
    if (!have) throw io_error("cannot read", (path / fixity_file).string(), errno);
    text.resize(std::min(*have, text.size()));
    text.resize(text.rfind('\n') + 1);
    return text;
}

/// The object in a line, if it follows the line with the hash `before`.
std::optional<Value> following(std::string_view line, std::string_view before) {
    try {
        Value value = Value::parse(line);
        const Value* const link = value.is_object() ? value.find("before") : nullptr;
        if (link == nullptr || !link->is_string() || link->as_string() != before) return {};
        return value;
    } catch (const Error&) {
        return {};  // no JSON
    }
}

FixityLog parse_log(std::string_view text) {
    FixityLog log;
    std::string before(hash_digits, '0');
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        std::optional<Value> value = following(line, before);
        if (!value) {
            log.broken_at = log.records.size() + 1;
            return log;
        }
        before = hash_of(line);
        log.records.push_back({std::move(*value), before});
    }
    return log;
}

Descriptor open_directory(const fs::path& directory) {
    Descriptor at(open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
    if (!at) throw io_error("cannot open", directory.string(), errno);
    return at;
}

std::string text_member(const Value& line, std::string_view name) {
    const Value* const value = line.find(name);
    if (value == nullptr) return "";
    return value->is_string() ? value->as_string() : value->dump();
}

std::string xml(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (c == '&' || c == '<' || c == '>' || c == '"') {
            safe += fmt::format("&#{};", static_cast<int>(c));
        } else {
            safe += u < ' ' ? '?' : c;  // XML has no other control characters
        }
    }
    return safe;
}

}  // namespace

bool FixityLog::holds(std::string_view hash) const {
    return std::ranges::any_of(records, [&](const FixityRecord& r) { return r.hash == hash; });
}

FixityLog read_fixity(const fs::path& directory) {
    const Descriptor log = open_fixity_log(open_directory(directory), directory, O_RDONLY);
    return log ? parse_log(whole_lines(log, directory)) : FixityLog();
}

std::string append_fixity(const fs::path& directory, std::string_view what, std::string_view version,
                          const Value& found) {
    const Descriptor at = open_directory(directory);
    if (!make_folder_like_above(at.get(), fixity_folder) && errno != EEXIST) {
        throw io_error("cannot make", (directory / fixity_folder).string(), errno);
    }
    const Descriptor log = open_fixity_log(at, directory, O_RDWR | O_CREAT);
    struct stat status {};
    if (::fstat(log.get(), &status) == 0) (void)share_with_folder(log.get(), status, at.get());
    if (::flock(log.get(), LOCK_EX) != 0) throw io_error("cannot lock", (directory / fixity_file).string(), errno);
    const std::string text = whole_lines(log, directory);
    const FixityLog before = parse_log(text);
    if (before.broken_at) {
        throw corrupt(
            "{}: line {} does not follow the line before: nothing is recorded until somebody has looked at it",
            (directory / fixity_file).string(), *before.broken_at);
    }
    const LogLine now = log_line("");
    Value line{{"time", now.time}, {"who", now.who}, {"version", version}, {"what", what}};
    for (const auto& [key, value] : found.as_object()) line.set(key, value);
    line.set("before", before.records.empty() ? std::string(hash_digits, '0') : before.last());
    const std::string dumped = line.dump() + '\n';
    // What a writer left that was killed is written over. The end comes last, so that a line is there as a whole or
    // not.
    const bool written = pwrite_all(log.get(), std::as_bytes(std::span(dumped)), text.size()) &&
                         ::ftruncate(log.get(), static_cast<off_t>(text.size() + dumped.size())) == 0 &&
                         ::fsync(log.get()) == 0;
    if (!written) throw io_error("cannot write", (directory / fixity_file).string(), errno);
    return hash_of(std::string_view(dumped).substr(0, dumped.size() - 1));
}

std::string note_fixity(const std::string& path, std::string_view what, std::string_view version, const Value& found) {
    try {
        if (const auto directory = fixity_directory(path)) (void)append_fixity(*directory, what, version, found);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

std::optional<fs::path> fixity_directory(const std::string& path) {
    std::error_code ignored;
    if (!is_local(path) || !fs::is_directory(path, ignored)) return {};
    const fs::path real = real_path(path);
    // Of the path itself, if it is one, or of one above.
    for (const char* const content : {"data", "v1"}) {
        if (!package_holding((real / content).string()).empty()) return {};
    }
    return path;
}

fs::path require_fixity_directory(const std::string& path) {
    if (auto directory = fixity_directory(path)) return *directory;
    throw unsupported(
        "{}: only an array or a group in a directory has a fixity log, and neither a bag, an OCFL object nor what "
        "lies in one",
        path);
}

Value fixity_value(const FixityLog& log) {
    Value list = Value::array();
    for (const FixityRecord& record : log.records) {
        Value one = record.line;
        one.set("hash", record.hash);
        list.push_back(std::move(one));
    }
    Value value{{"intact", !log.broken_at.has_value()}, {"last", log.last()}};
    value.set("records", std::move(list));
    return value;
}

std::string premis_events(const FixityLog& log, std::string_view object) {
    std::string text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<premis:premis xmlns:premis=\"http://www.loc.gov/premis/v3\" "
        "version=\"3.0\">\n";
    for (const FixityRecord& record : log.records) {
        const std::string what = text_member(record.line, "what");
        text += fmt::format(
            "  <premis:event>\n"
            "    <premis:eventIdentifier><premis:eventIdentifierType>SHA-256 of the log's "
            "line</premis:eventIdentifierType><premis:eventIdentifierValue>{}</premis:eventIdentifierValue>"
            "</premis:eventIdentifier>\n"
            "    <premis:eventType>{}</premis:eventType>\n"
            "    <premis:eventDateTime>{}</premis:eventDateTime>\n"
            "    <premis:eventDetailInformation><premis:eventDetail>{}</premis:eventDetail>"
            "</premis:eventDetailInformation>\n"
            "    <premis:eventOutcomeInformation><premis:eventOutcome>{}</premis:eventOutcome>"
            "</premis:eventOutcomeInformation>\n"
            "    <premis:linkingAgentIdentifier><premis:linkingAgentIdentifierType>software"
            "</premis:linkingAgentIdentifierType><premis:linkingAgentIdentifierValue>tessera {}"
            "</premis:linkingAgentIdentifierValue></premis:linkingAgentIdentifier>\n"
            "    <premis:linkingObjectIdentifier><premis:linkingObjectIdentifierType>path"
            "</premis:linkingObjectIdentifierType><premis:linkingObjectIdentifierValue>{}"
            "</premis:linkingObjectIdentifierValue></premis:linkingObjectIdentifier>\n"
            "  </premis:event>\n",
            record.hash, what == "verify" ? "fixity check" : xml(what), xml(text_member(record.line, "time")),
            xml(record.line.dump()), text_member(record.line, "sound") == "true" ? "pass" : "fail",
            xml(text_member(record.line, "version")), xml(object));
    }
    return text + "</premis:premis>\n";
}

}  // namespace tessera
