// Lists of any length, line by line. Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/error_text.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "copy_bytes.h"

namespace tessera {

enum class LastLine : std::uint8_t {
    ends,          ///< with a line feed, as all do
    may_be_cut,    ///< without it, it is passed over
    may_lack_end,  ///< without it, it is a line too
};

/// Calls each(line, its number) for every line; it returns false if the line is not in `form`. Only a piece of the text
/// is in memory at a time, so that a huge file that is not such a list fails at its first line. Throws corrupt, naming
/// the line, if one is not in `form`, is absurdly long, or has no line feed although `last` demands it.
template <class Each>
void for_each_line(const ByteSource& text, std::string_view form, const Each& each, LastLine last = LastLine::ends) {
    constexpr std::size_t longest = std::size_t{64} << 10;
    std::string begun;  // of a line, in an earlier piece
    std::size_t number = 1;
    const auto require = [&](bool good) {
        if (!good) throw corrupt("line {} is not {}", number, form);
    };
    for_each_piece(text, [&](ByteSpan bytes) {
        for (std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size()); !rest.empty();) {
            const std::size_t end = rest.find('\n');
            const std::string_view part = rest.substr(0, end);
            require(begun.size() + part.size() <= longest);
            if (end == std::string_view::npos || !begun.empty()) begun += part;
            if (end == std::string_view::npos) return;
            require(each(begun.empty() ? part : std::string_view(begun), number));
            begun.clear();
            ++number;
            rest.remove_prefix(end + 1);
        }
    });
    if (!begun.empty() && last == LastLine::may_lack_end) {
        require(each(std::string_view(begun), number));
        begun.clear();
    }
    require(begun.empty() ||
            last == LastLine::may_be_cut);  // a complete list ends with a line feed; otherwise it was truncated
}

}  // namespace tessera
