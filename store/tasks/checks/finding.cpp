#include <tessera/verify.h>

#include <array>

namespace tessera {

std::string_view kind_name(FindingKind kind) {
    constexpr std::array<std::string_view, 8> names{"damage", "changed",   "lost",     "absent",
                                                    "added",  "unchecked", "leftover", "note"};
    return names[static_cast<std::size_t>(kind)];
}

bool is_harmless(FindingKind kind) {
    return kind == FindingKind::leftover || kind == FindingKind::note;
}

}  // namespace tessera
