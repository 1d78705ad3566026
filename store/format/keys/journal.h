// The record of changes: of a batch, which take effect together, or of a command, for undo(). Private to the store
// module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

namespace tessera {

/// The maximum size of the record of a batch in bytes: room for ten million changes.
inline constexpr std::uint64_t journal_limit = std::uint64_t{1} << 30;
/// Where old values are kept, below the array.
inline constexpr std::string_view undo_folder = ".tessera/undo";
/// The record of the last change, beside the old values.
inline constexpr std::string_view undo_record_key = ".tessera/undo/changes";

struct Journal {
    struct Entry {
        enum class Kind : std::uint8_t { put, erase, array };
        Kind kind = Kind::put;
        bool had_old = false;      ///< the key was there before
        std::uint64_t number = 0;  ///< of the staged value and of the kept old one; no other entry has it
        ValueStamp stamp;          ///< put: of the new value, which it keeps under its key
        ValueStamp old = {};       ///< of the kept old value
        bool old_known = false;    ///< `old` was recorded
        std::string key;           ///< relative to the array; array: its path below the group
    };
    std::uint64_t id = 0;     ///< of the batch or command
    bool keeps_old = false;   ///< old values are kept, so that the batch can be undone
    bool gives_up = false;    ///< it reverts a batch that could not be put in place
    bool of_command = false;  ///< noted change by change: a key may have several entries, and the last may not have
                              ///< happened
    /// Of an array in a batch over a group: how many folders above the array the group is. The journal takes effect
    /// if the group has one with the same id.
    std::uint32_t group_above = 0;
    bool of_group = false;  ///< of a group: its entries are the arrays whose journals belong to it
    std::string what = {};  ///< for a person: the words of the command
    std::vector<Entry> entries = {};
    std::string refusal = {};  ///< of a command: why it cannot be taken back; empty if it can
    Buffer counted = {};       ///< as much memory as what was read and is made of it take, so that the budget binds
};

/// The name of a staged value of a batch, and of the old value that its change replaces.
[[nodiscard]] std::string value_name(std::uint64_t id, std::uint64_t number);

/// Whether a staged value may be the one that was recorded. Someone may have copied the array since, with other inodes
/// and times.
[[nodiscard]] bool may_be_recorded(const ValueStamp& recorded, const ValueStamp& found);

// ---- writing: of a batch the whole, of a command line by line

[[nodiscard]] Buffer encode_journal(const Journal& journal);
[[nodiscard]] std::string header_line(const Journal& journal);
void append_change(std::string& text, const Journal::Entry& entry);
/// Says that the changes could not all be kept.
[[nodiscard]] std::string lost_line(std::string_view why);
/// What is written into the header of a command, of so many bytes, once it has ended and made so many changes.
struct EndMark {
    std::size_t at = 0;
    std::string text;
};
[[nodiscard]] EndMark end_mark(std::size_t header, std::uint64_t changes);

// ---- reading

/// Reads the record of a batch or a command from a file of any size. Throws corrupt or unsupported, naming `name`, and
/// budget if it does not fit in memory. Takes that of a batch only if it is complete and its SHA-256 is right, and
/// loads nothing of it before. Checks that no key leads out of the array, but not that it belongs to it.
[[nodiscard]] Journal read_record(const ByteSource& file, std::string_view name);
/// The same of a batch that is to take effect, with advice for a pending one.
[[nodiscard]] Journal read_journal(const ByteSource& file, std::string_view name);
/// What the first line says; nullopt if it is none of a record. Any text or file.
[[nodiscard]] std::optional<Journal> header_of(std::string_view text);
[[nodiscard]] std::optional<Journal> header_of(const ByteSource& file);

}  // namespace tessera
