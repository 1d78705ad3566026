// What the file of a codec takes to write its row for the table in codec_table.cpp. Private to the module.
#pragma once

#include <tessera/codec.h>

#include <string_view>
#include <utility>

#include "codec_members.h"

namespace tessera {

/// For CodecRow::complete.
inline void set_missing(Value& configuration, std::string_view member, Value value) {
    if (!given_member(configuration, member)) configuration.set(member, std::move(value));
}

/// Dimension k of the result is dimension axes[k] of `dims`; without axes they stay as they are.
[[nodiscard]] Dims permuted(const Dims& dims, const Dims& axes);

}  // namespace tessera
