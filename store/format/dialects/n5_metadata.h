// The metadata of N5 (attributes.json) in the terms of the one model. N5 is only read: as what N5Store makes of it.
#pragma once

#include <tessera/dialect.h>
#include <tessera/value.h>

#include <string_view>

namespace tessera {

inline constexpr std::string_view n5_document_name = "attributes.json";

/// Whether the document of a folder is a data set's.
[[nodiscard]] bool is_n5_dataset(const Value& document);
/// The array that a data set is: dimensions in the reverse of N5's order, so that the last one is the fastest, chunks
/// of whole blocks without their headers, and v3's keys. The names of dimensions are those of `axes`. Throws corrupt or
/// unsupported, naming the member.
[[nodiscard]] ArrayMetadata n5_metadata(const Value& document);
/// The members that are none of N5's own, an object. Lists among them are as they stand there, in N5's order.
[[nodiscard]] Value n5_attributes(const Value& document);

}  // namespace tessera
