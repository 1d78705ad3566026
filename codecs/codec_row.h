// Helpers for the row that a codec's file adds to the table in codec_table.cpp. Private to the module.
#pragma once

#include <tessera/codec.h>

#include <string_view>
#include <utility>

#include "codec_members.h"

namespace tessera {

/// Sets a member that is absent or null; for CodecRow::complete.
inline void set_missing(Value& configuration, std::string_view member, Value value) {
    if (!given_member(configuration, member)) configuration.set(member, std::move(value));
}

/// Dimension k of the result is dimension axes[k] of `dims`. Empty axes leave the order unchanged.
[[nodiscard]] Dims permuted(const Dims& dims, const Dims& axes);

}  // namespace tessera
