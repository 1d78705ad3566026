#include <tessera/apart.h>

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/npy.h>
#include <tessera/place.h>
#include <tessera/temporary_folder.h>

#include "reference_file.h"
#include "spool.h"
#include "store_in_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// Elements in memory that nobody else holds.
class HeldSource final : public ArraySource {
public:
    HeldSource(NDArray elements, const std::string& name)
        : elements_(std::move(elements)), view_(view_source(elements_.view(), name)) {}
    [[nodiscard]] ArrayInfo info() const override { return view_->info(); }
    [[nodiscard]] const std::string& name() const override { return view_->name(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        view_->read_into(region, out, io);
    }

private:
    NDArray elements_;
    std::unique_ptr<ArraySource> view_;
};

/// Whether a source is changed by writing to `destination`.
bool overlaps(const std::string& source, const std::string& destination) {
    const fs::path file = split_array_path(destination).path;
    const std::string to = real_path(file).string() + '/';
    // Of hard links; a folder has none.
    const std::optional<FileId> written = fs::is_directory(file) ? std::nullopt : file_id(file);
    const auto meets = [&](const fs::path& read) {
        const std::string from = real_path(read).string() + '/';
        return from.starts_with(to) || to.starts_with(from) || (written && file_id(read) == written);
    };
    const fs::path path = split_array_path(source).path;
    if (meets(path)) return true;
    const auto references = references_at(path);
    return references != nullptr && std::ranges::any_of(referenced_files(*references), meets);
}

}  // namespace

void require_apart(const std::vector<std::string>& sources, const std::string& destination) {
    for (const std::string& source : sources) {
        if (!overlaps(source, destination)) continue;
        throw invalid_argument("{} is read, and cannot lie where {} is written: they overlap; choose another place",
                               source, destination);
    }
}

std::unique_ptr<ArraySource> apart_source(std::unique_ptr<ArraySource> source, const std::string& path,
                                          const std::string& destination, const IoOptions& io) {
    if (!overlaps(path, destination)) return source;
    if (!source->info().dtype.is_variable()) return spooled(*source, {.io = io});
    return std::make_unique<HeldSource>(read_selection(*source, Selection::all(source->info().shape), io),
                                        source->name());
}

std::unique_ptr<ArraySource> spooled(const ArraySource& source, const CopyOptions& options) {
    const Selection selection = options.selection ? *options.selection : Selection::all(source.info().shape);
    const TemporaryFolder folder(large_files_folder());
    const fs::path file = folder.path() / "spool.npy";
    const auto sink = create_npy(create_file(file, false), source.info().dtype, selection.shape(), source.info().order);
    copy_array(source, *sink, {.io = options.io, .selection = selection, .done = nullptr});
    return open_npy(open_file(file));  // the open file survives the removal of its name
}

}  // namespace tessera
