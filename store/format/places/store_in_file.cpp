#include "store_in_file.h"

#include <tessera/place.h>
#include <tessera/zarr_names.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "directory_store.h"
#include "n5_store.h"
#include "reference_file.h"
#include "zip_store.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// The folder of references around that of an array or group in them. Only looked for where one is named x.parq or
/// x.parquet, or has a first file of references.
std::optional<Place> references_above(const KeyValueStore& folder, const fs::path& path) {
    const bool named = path.native().find(".parq") != std::string::npos;
    if (!named && !folder.contains("refs.0.parq")) return std::nullopt;
    std::string below;
    constexpr int most = 16;
    fs::path above = path;
    for (int n = 0; n < most && above.has_relative_path(); ++n) {
        below.insert(0, below.empty() ? "" : "/").insert(0, above.filename().string());
        above = above.parent_path();
        const fs::path here = above.empty() ? fs::path(".") : above;
        const std::shared_ptr<KeyValueStore> store = probe_directory_store(here, {.read_only = true});
        if (store == nullptr) return std::nullopt;
        if (auto references = probe_parquet_references(here, store)) return Place{std::move(references), below};
    }
    return std::nullopt;
}

fs::path without_slash(const fs::path& path) {
    return path.has_filename() ? path : path.parent_path();
}

}  // namespace

std::shared_ptr<KeyValueStore> store_in_file(const ByteSource& file) {
    if (auto archive = probe_zip_store(file)) return archive;
    return probe_reference_store(file.name());
}

std::shared_ptr<KeyValueStore> references_at(const fs::path& path) {
    std::error_code ignored;
    if (path.extension() == ".json") return fs::is_regular_file(path, ignored) ? probe_reference_store(path) : nullptr;
    const bool maybe = path.native().find(".parq") != std::string::npos || fs::exists(path / "refs.0.parq", ignored) ||
                       fs::exists(path / v2_consolidated_name, ignored);
    if (!maybe || !is_local(path)) return nullptr;
    const auto place = probe_place(path, {.read_only = true});
    return place ? place->store : nullptr;
}

Place store_in_folder(std::shared_ptr<KeyValueStore> folder, const fs::path& path, const StoreOptions& options) {
    const std::string& name = path.native();
    const bool named = name.find(".n5") != std::string::npos || name.find(".parq") != std::string::npos;
    return named ? foreign_store_in_folder(std::move(folder), path, options) : Place{std::move(folder), ""};
}

Place foreign_store_in_folder(std::shared_ptr<KeyValueStore> folder, const fs::path& path,
                              const StoreOptions& options) {
    // A server's clients may see less than the user who runs it, and references lead to any file beside them.
    if (options.within.empty()) {
        const fs::path at = without_slash(path);
        if (auto references = probe_parquet_references(at, folder)) return {std::move(references), ""};
        if (auto above = references_above(*folder, at)) return *std::move(above);
    }
    return as_n5({std::move(folder), ""}, path);
}

}  // namespace tessera
