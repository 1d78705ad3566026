// Which values of an array are known to be equal to those of its source, so that `sync` need not read them again.
// Private to the store module.
#pragma once

#include <tessera/counted.h>
#include <tessera/key_value_store.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "array_state.h"

namespace tessera {

/// The record, below the destination.
inline constexpr std::string_view equal_values_key = ".tessera/equal";

/// A value counts as equal while both files have the stamps that they had when their bytes were compared. The record
/// holds a hash of each such pair of stamps, so that it knows nothing of grids, nor of which source it was. Only of
/// arrays in directories whose times tell each change; of any others nothing is known. Never a reason to fail.
///
/// Thread rule: look(), knows() and note() from any thread; write() once these have ended.
class EqualValues {
public:
    using Hash = std::array<unsigned char, 16>;
    /// The stamps of a value on both sides.
    struct Pair {
        Hash hash{};
        std::int64_t changed = 0;  ///< when the later one did
    };

    /// `recall`: whether to use what earlier runs left. `record`: whether to leave something. Both states outlive it.
    EqualValues(const ArrayState& from, const ArrayState& to, bool recall, bool record);

    /// How a value is now, by its key below the array; nullopt if that cannot be told.
    [[nodiscard]] std::optional<Pair> look(const std::string& key) const;
    /// Whether the bytes of such a pair were found equal.
    [[nodiscard]] bool knows(const Pair& pair);
    /// They were found equal now. `before` is how the pair looked before they were read.
    void note(const std::string& key, const std::optional<Pair>& before);
    /// Writes the record, if anything has changed.
    void write();

private:
    void load();

    const ArrayState& from_;
    const ArrayState& to_;
    bool usable_;
    std::shared_ptr<KeyValueStore> own_;   ///< to write to; null: nothing is written
    std::optional<std::int64_t> settled_;  ///< values that changed before this moment may be noted
    CountedVector<Hash> known_;            ///< ascending
    std::mutex mutex_;
    CountedVector<Hash> found_;
};

}  // namespace tessera
