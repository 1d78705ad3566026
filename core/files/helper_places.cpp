// Where the programs of helpers lie.
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <tessera/own_helper.h>
#include <tessera/system_calls.h>

#include "foreign.h"
#include "helper_process.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// The places of this program, if it is its own helper; else none.
std::vector<std::string>& own_places() {
    static auto& places = *new std::vector<std::string>;
    return places;
}

/// The file that this code is in: a library, a module, or a program.
struct OwnFile {
    fs::path folder;
    std::vector<fs::path> run_path;  ///< folders of helpers in which its libraries are looked for
};

/// A program that is linked statically with an installed library lies anywhere. What it was linked by (find_package,
/// pkg-config) has put the folder of the helpers into its run path.
std::vector<fs::path> helpers_in_run_path([[maybe_unused]] const link_map* file) {
    std::vector<fs::path> folders;
#ifdef __GLIBC__
    if (file == nullptr || file->l_ld == nullptr) return folders;
    ElfW(Addr) texts = 0;
    for (const ElfW(Dyn)* entry = file->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
    }
    if (texts == 0) return folders;
    if (texts < file->l_addr) texts += file->l_addr;  // on some processors the loader leaves it relative
    for (const ElfW(Dyn)* entry = file->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag != DT_RUNPATH && entry->d_tag != DT_RPATH) continue;
        std::istringstream list(std::bit_cast<const char*>(texts + entry->d_un.d_val));
        for (std::string folder; std::getline(list, folder, ':');) {
            if (folder.starts_with('/') && folder.ends_with("libexec/tessera")) folders.emplace_back(folder);
        }
    }
#endif
    return folders;
}

OwnFile own_file() {
    Dl_info info{};
    link_map* file = nullptr;
#ifdef __GLIBC__
    const int found =
        ::dladdr1(reinterpret_cast<const void*>(&build_id), &info, reinterpret_cast<void**>(&file), RTLD_DL_LINKMAP);
#else
    const int found = ::dladdr(reinterpret_cast<const void*>(&build_id), &info);
#endif
    if (found == 0 || info.dli_fname == nullptr) return {};
    std::error_code error;
    const fs::path path = fs::canonical(info.dli_fname, error);
    return {.folder = error ? fs::path() : path.parent_path(), .run_path = helpers_in_run_path(file)};
}

}  // namespace

std::string_view helper_program(ForeignLibrary library) {
    switch (library) {
        case ForeignLibrary::hdf5:
            return "tessera-hdf5";
        case ForeignLibrary::tiff:
            return "tessera-tiff";
        case ForeignLibrary::grib:
            break;
    }
    return "tessera-grib";
}

std::vector<std::string> helper_places(ForeignLibrary library) {
    if (!own_places().empty()) return own_places();
    const std::string_view name = helper_program(library);
    if (const char* const named = ::getenv("TESSERA_HELPERS"); named != nullptr && *named != '\0') {
        return {(fs::path(named) / name).string()};
    }
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    std::vector<std::string> places;
    const auto add = [&](const fs::path& folder) {
        const std::string text = (folder / name).lexically_normal().string();
        if (std::ranges::find(places, text) == places.end()) places.push_back(text);
    };
    const OwnFile own = own_file();
    for (const fs::path& folder : {own.folder, program}) {
        if (folder.empty()) continue;
        add(folder);
        add(folder / "../libexec/tessera");
    }
    std::ranges::for_each(own.run_path, add);
#ifdef TESSERA_HELPER_FOLDER
    for (const char* const folder : {TESSERA_HELPER_FOLDER, "/usr/libexec/tessera"}) add(folder);
#endif
    return places;
}

void be_own_helper() {
    own_places() = {"/proc/self/exe"};
    // Where /proc is not mounted, the path by which this program was started, if that is absolute.
    if (std::string started = os::started_by(); started.starts_with('/')) own_places().push_back(std::move(started));
}

bool is_helper(int argc, const char* const* argv) {
    return argc == 3 && std::string_view(argv[1]) == helper_argument;
}

}  // namespace tessera
