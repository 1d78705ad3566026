// The journal of a batch: the list of changes that take effect together. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

namespace tessera {

/// The maximum size of a journal in bytes: room for ten million changes.
inline constexpr std::uint64_t journal_limit = std::uint64_t{1} << 30;

struct Journal {
    struct Entry {
        enum class Kind : std::uint32_t { put = 1, erase = 2, array = 3 };
        Kind kind = Kind::put;
        bool had_old = false;      ///< the key was there before
        std::uint64_t number = 0;  ///< put: of the staged value
        ValueStamp stamp;          ///< put: of the staged value, which it keeps under its key
        std::string key;           ///< relative to the array; array: its path below the group
    };
    std::uint64_t id = 0;     ///< of the batch
    bool keeps_old = false;   ///< old values are kept, so that the batch can be undone
    bool gives_up = false;    ///< it reverts a batch that could not be put in place
    bool bare_names = false;  ///< version 1: the names of staged values do not begin with the batch's id
    /// Of an array in a batch over a group: how many folders above the array the group is. The journal takes effect
    /// if the group has one with the same id.
    std::uint32_t group_above = 0;
    bool of_group = false;  ///< of a group: its entries are the arrays whose journals belong to it
    std::vector<Entry> entries;

    /// The name of a staged value in the batch's folder.
    [[nodiscard]] std::string staged_name(const Entry& entry) const;
};

/// The name of a staged value of a batch: no other batch has one of that name.
[[nodiscard]] std::string staged_name(std::uint64_t batch, std::uint64_t number);

/// Whether a staged value may be the one that was recorded. Someone may have copied the array since, with other inodes
/// and times.
[[nodiscard]] bool may_be_recorded(const ValueStamp& recorded, const ValueStamp& found);

[[nodiscard]] Buffer encode_journal(const Journal& journal);
/// Throws corrupt or unsupported, naming `name`. Checks that no key leads out of the array.
[[nodiscard]] Journal decode_journal(ByteSpan bytes, std::string_view name);
/// The same from a file of any size. Loads it into memory only after its header and its SHA-256 were verified.
[[nodiscard]] Journal read_journal(const ByteSource& file, std::string_view name);
/// The id in the header of a journal that was read before; nullopt if it has none. Any file.
[[nodiscard]] std::optional<std::uint64_t> journal_id(const ByteSource& file);

}  // namespace tessera
