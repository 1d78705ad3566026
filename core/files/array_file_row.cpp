#include "array_file_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/error_text.h>

namespace tessera {

void require_no_member(const ArrayPath& path) {
    if (!path.member) return;
    throw not_found("{} is a single array; leave out '::{}'", path.path.string(), *path.member);
}

std::string chosen_member(const ArrayPath& path, const std::vector<std::string>& members) {
    if (path.member) return *path.member;
    if (members.size() == 1) return members[0];
    throw invalid_argument(members.empty()
                               ? fmt::format("{} holds no array", path.path.string())
                               : fmt::format("{} holds {} arrays; name one as {}::NAME, NAME being one of: {}",
                                             path.path.string(), members.size(), path.path.string(),
                                             fmt::join(members, ", ")));
}

}  // namespace tessera
