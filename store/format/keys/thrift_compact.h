// Structures in Thrift's compact protocol, in which the metadata of Parquet are.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>

namespace tessera {

/// One value: an integer (also a Boolean), bytes, a list, or a structure of fields by their numbers.
struct ThriftValue {
    std::int64_t number = 0;
    std::string_view bytes;  ///< in the memory that was read
    std::vector<ThriftValue> list;
    std::map<int, ThriftValue> fields;

    /// Throws corrupt if there is no such field.
    [[nodiscard]] const ThriftValue& at(int field) const;
    /// The number of a field, or `otherwise`.
    [[nodiscard]] std::int64_t number_of(int field, std::int64_t otherwise) const;
};

/// Reads the structure at the beginning of `in`, which is cut to what follows it. Throws corrupt for what is none or is
/// nested deeper than any of Parquet's.
[[nodiscard]] ThriftValue read_thrift(ByteSpan& in);

/// An unsigned integer of 7 bits a byte, the low ones first; `in` is cut to what follows.
[[nodiscard]] std::uint64_t read_varint(ByteSpan& in);

}  // namespace tessera
