#include "made_folder.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>

#include "log.h"
#include "report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

MadeFolder::MadeFolder(const CLI::App& command) {
    const std::optional<fs::path> place = changed_place(command);
    if (!place) return;
    fs::path named = *place;
    while (!named.has_filename() && named.has_relative_path()) named = named.parent_path();
    std::error_code ignored;
    if (fs::path folder = named.parent_path(); !folder.empty() && !fs::exists(folder, ignored)) {
        missing_ = std::move(folder);
    }
}

void MadeFolder::report(const Session& session) const {
    std::error_code ignored;
    if (missing_.empty() || session.options().quiet || session.options().json) return;
    if (fs::is_directory(missing_, ignored)) {
        print(printable(fmt::format("made the folder {}", missing_.string())) + "\n");
    }
}

}  // namespace tessera::cli
