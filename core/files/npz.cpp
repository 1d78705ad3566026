#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>
#include <tessera/npy.h>
#include <tessera/npz.h>

namespace tessera {

std::vector<std::string> npz_members(const ZipReader& zip) {
    std::vector<std::string> names;
    for (const ZipMember& m : zip.members()) {
        if (m.name.ends_with(".npy")) names.push_back(m.name.substr(0, m.name.size() - 4));
    }
    return names;
}

std::unique_ptr<ArraySource> open_npz_member(const std::filesystem::path& path, std::string_view member) {
    const ZipReader zip(path);
    for (const std::string& name : {fmt::format("{}.npy", member), std::string(member)}) {
        for (const ZipMember& m : zip.members()) {
            if (m.name == name) return open_npy(zip.open(name));
        }
    }
    throw not_found(
        fmt::format("{} has no array '{}'; it has: {}", path.string(), member, fmt::join(npz_members(zip), ", ")));
}

}  // namespace tessera
