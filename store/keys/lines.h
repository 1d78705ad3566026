// Lists of any length, line by line. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/byte_io.h>
#include <tessera/error.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "copy_bytes.h"

namespace tessera {

/// Calls each(line, its number) for every line, which it returns false for when it is not in `form`. What is in memory
/// is a piece of the text, not all of it: a file of any size that is no such list is refused by its first line. Throws
/// corrupt, naming the line, for one that is not in `form`, is absurdly long, or has no end.
template <class Each>
void for_each_line(const ByteSource& text, std::string_view form, const Each& each) {
    constexpr std::size_t longest = std::size_t{64} << 10;
    std::string begun;  // of a line, in an earlier piece
    std::size_t number = 1;
    const auto require = [&](bool good) {
        if (!good) throw corrupt(fmt::format("line {} is not {}", number, form));
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
    require(begun.empty());  // a whole list ends with a line's end: what does not was cut short
}

}  // namespace tessera
