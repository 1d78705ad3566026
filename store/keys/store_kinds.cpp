// The table of all kinds of stores. A new one needs a file with a StoreKind, and here its name.
#include <tessera/store_kind.h>

#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>

namespace tessera {

// Each is defined at the end of its own file.
extern const StoreKind folder_kind;

/// Those of this machine first.
std::span<const StoreKind> store_kinds() {
    static const std::array table{folder_kind};
    return table;
}

const StoreKind& store_kind_of(const std::filesystem::path& path) {
    const std::string_view text = path.native();
    const auto table = store_kinds();
    const auto found = std::ranges::find_if(table.subspan(1), [&](const StoreKind& kind) {
        const std::size_t size = kind.scheme.size();
        return text.size() > size && text[size] == ':' && text.starts_with(kind.scheme);
    });
    return found == table.end() ? table.front() : *found;
}

bool is_local(const std::filesystem::path& path) {
    return store_kind_of(path).scheme.empty();
}

void require_local(const std::filesystem::path& path, std::string_view what) {
    const StoreKind& kind = store_kind_of(path);
    if (kind.scheme.empty()) return;
    throw unsupported(fmt::format("{0} needs a folder on this machine; {1} is in {2} (a folder of that name is ./{1})",
                                  what, path.string(), kind.about));
}

}  // namespace tessera
