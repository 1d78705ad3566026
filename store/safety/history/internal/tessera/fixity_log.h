// The fixity log of an array or a group in a directory: a line for each check, seal, repair and restoring, when it was
// made and what was found. `.tessera/fixity.jsonl`, which readers, copies, seals and sums ignore, has one JSON object
// in each line. Its member "before" is the SHA-256 of the line before, without the newline; 64 zeros in the first line.
// So a line that was changed or taken out shows. That the end was cut off shows to whoever kept the hash of a line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/value.h>

namespace tessera {

inline constexpr std::string_view fixity_key = ".tessera/fixity.jsonl";

struct FixityRecord {
    Value line =
        Value::object();  ///< "time", "who", "version", "what" ("verify", "seal", "repair", "restore"), "sound", …
    std::string hash;     ///< of the line: 64 hexadecimal digits
};

struct FixityLog {
    std::vector<FixityRecord> records;  ///< oldest first, up to a line that is none
    std::optional<std::size_t>
        broken_at;  ///< the number, from 1, of the first line that does not follow the one before
    /// The hash of the last line; empty without one.
    [[nodiscard]] std::string last() const { return records.empty() ? "" : records.back().hash; }
    [[nodiscard]] bool holds(std::string_view hash) const;
};

/// Reads the whole log; an empty one if there is none. A last line that was not written to its end counts as none.
/// Follows no link below the directory. Throws io. Thread rule: any thread.
[[nodiscard]] FixityLog read_fixity(const std::filesystem::path& directory);

/// Appends a line with the present time, user and host, `version` of Tessera and `what`, then the members of `found`.
/// Waits for other writers, and for the disk. Returns the hash of the line. Throws io, and corrupt for a log that is
/// broken: it stays as it is, to be looked at.
std::string append_fixity(const std::filesystem::path& directory, std::string_view what, std::string_view version,
                          const Value& found);

/// The same for work that is done: what has no log has none. Returns what is wrong if the line cannot be written, else
/// "".
[[nodiscard]] std::string note_fixity(const std::string& path, std::string_view what, std::string_view version,
                                      const Value& found);

/// The directory whose log tells of a path: the path itself. nullopt for what has no log: files, bags and OCFL objects,
/// which must not hold what they do not list, what lies in one, and other kinds of stores.
[[nodiscard]] std::optional<std::filesystem::path> fixity_directory(const std::string& path);

/// The same; throws unsupported for what has no log.
[[nodiscard]] std::filesystem::path require_fixity_directory(const std::string& path);

/// "intact", "last" and "records", the lines with their hashes.
[[nodiscard]] Value fixity_value(const FixityLog& log);
/// The events of PREMIS 3 that the records are, as a document of XML.
[[nodiscard]] std::string premis_events(const FixityLog& log, std::string_view object);

}  // namespace tessera
