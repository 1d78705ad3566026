// UTF-8 to and from code points. Private to the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Appends one code point. An invalid one (a surrogate, above U+10FFFF) becomes U+FFFD.
void append_utf8(std::string& out, char32_t c);

/// The code points of UTF-8 text; nullopt if it is not valid UTF-8.
[[nodiscard]] std::optional<std::u32string> from_utf8(std::string_view text);

/// The number of code points in UTF-8 text; nullopt if it is not valid UTF-8.
[[nodiscard]] std::optional<std::size_t> count_utf8(std::string_view text);

/// Bytes taken as the code points U+0000 to U+00FF, as UTF-8.
[[nodiscard]] std::string latin1_to_utf8(std::string_view bytes);

/// The reverse; nullopt if the text is not UTF-8 or has a character above U+00FF.
[[nodiscard]] std::optional<std::string> utf8_to_latin1(std::string_view text);

}  // namespace tessera
