// Helpers for the row that a codec's file adds to the table in codec_table.cpp. Private to the module.
#pragma once

#include <fmt/format.h>
#include <tessera/codec.h>
#include <tessera/error_text.h>

#include <optional>
#include <string_view>
#include <utility>

#include "codec_members.h"

namespace tessera {

/// Sets a member that is absent or null; for CodecRow::complete.
inline void set_missing(Value& configuration, std::string_view member, Value value) {
    if (!given_member(configuration, member)) configuration.set(member, std::move(value));
}

/// The error of encoding by a codec that only decodes.
[[nodiscard]] inline Error no_encoder() {
    return unsupported("it is only read: Tessera has no encoder for it");
}

/// Makes a codec by `make(configuration)`. If the configuration is wrong only in members that decoding does not need,
/// makes one that decodes, and keeps the error; likewise if the codec encodes nothing at all.
template <class Make>
auto made_to_decode(const CodecRow& row, const Value& configuration, std::optional<Error>& kept, const Make& make) {
    if (row.only_decodes && !kept)
        kept = Error(ErrorCode::unsupported, fmt::format("{}: {}", row.name, no_encoder().what()));
    try {
        return make(configuration);
    } catch (const Error& e) {
        if (row.encoding_only.empty()) throw;
        try {
            auto codec = make(decoding_configuration(row, configuration));
            if (!kept) kept = Error(e.code(), fmt::format("{}: {}", row.name, e.what()));
            return codec;
        } catch (const Error&) {  // the error is another one
        }
        throw;
    }
}

/// Dimension k of the result is dimension axes[k] of `dims`. Empty axes leave the order unchanged.
[[nodiscard]] Dims permuted(const Dims& dims, const Dims& axes);

}  // namespace tessera
