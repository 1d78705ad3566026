// Checked members of a codec's configuration. All functions throw invalid_argument, naming the member.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/value.h>

namespace tessera {

/// Throws invalid_argument, naming the first member that is not among `known`.
void require_known_members(const Value& configuration, std::initializer_list<std::string_view> known);

/// An integer within [least, most]; `otherwise` if the member is absent or null.
[[nodiscard]] std::int64_t integer_member(const Value& configuration, std::string_view name, std::int64_t otherwise,
                                          std::int64_t least, std::int64_t most);
[[nodiscard]] bool bool_member(const Value& configuration, std::string_view name, bool otherwise);
/// A dtype in NumPy's notation; `otherwise` if the member is absent or null.
[[nodiscard]] DType dtype_member(const Value& configuration, std::string_view name, const DType& otherwise);
/// One of `choices`; `otherwise` if the member is absent or null.
[[nodiscard]] std::string_view choice_member(const Value& configuration, std::string_view name,
                                             std::string_view otherwise, std::span<const std::string_view> choices);
/// An element in v3's notation of fill values, with the bits of a float as "0x7fc00000". `name` is for errors.
[[nodiscard]] ElementBytes scalar_member(const DType& dtype, const Value& v, std::string_view name);
/// The member if it is present and not null, else nullptr.
[[nodiscard]] const Value* given_member(const Value& configuration, std::string_view name);

}  // namespace tessera
