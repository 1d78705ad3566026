#include "referenced_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/file_source.h>
#include <tessera/store_kind.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include "beneath.h"
#include "keys.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_files_open = 32;

bool is_hidden(const fs::path& below) {
    constexpr std::array documents{v2_array_name, v2_group_name, v2_attributes_name, v2_consolidated_name};
    return std::ranges::any_of(below, [&](const fs::path& part) { return part.native().starts_with('.'); }) &&
           (std::ranges::count(documents, below.filename().native()) == 0 || is_hidden(below.parent_path()));
}

bool is_url(const std::string& path) {
    return path.find("://") != std::string::npos;
}

/// A value of another kind of store, one version of it.
std::shared_ptr<const ByteSource> open_url(const std::string& url) {
    const std::size_t query = url.starts_with("http") ? std::min(url.find('?'), url.size()) : url.size();
    const std::size_t slash = url.rfind('/', query);
    const std::string folder = url.substr(0, slash) + url.substr(query);
    const Place place = store_kind_of(folder).place(folder, {.read_only = true});
    std::shared_ptr<const ByteSource> value = place.store->open(place.key(url.substr(slash + 1, query - slash - 1)));
    if (value == nullptr) {
        throw corrupt("{}: references lead to this file, and it is not there", url.substr(0, query));
    }
    return value;
}

}  // namespace

bool has_own_name(std::string_view key) {
    for (;;) {
        const std::size_t slash = key.find('/');
        if (is_own_name(key.substr(0, slash))) return true;
        if (slash == std::string_view::npos) return false;
        key.remove_prefix(slash + 1);
    }
}

ReferencedFiles::ReferencedFiles(const fs::path& document, bool outside, MayRead may_read)
    : outside_(outside),
      may_read_(std::move(may_read)),
      folder_(fs::absolute(document).lexically_normal().parent_path()) {
    std::error_code ignored;
    real_folder_ = fs::canonical(folder_, ignored);
    directory_ = Descriptor(open_at(AT_FDCWD, folder_.c_str(), O_RDONLY | O_DIRECTORY));
    if (!directory_) throw io_error("cannot open", folder_.string(), errno);
}

std::int64_t ReferencedFiles::number(const std::string& path) {
    const std::lock_guard guard(mutex_);
    if (const auto known = numbers_.find(path); known != numbers_.end()) return known->second;
    paths_.push_back(checked(path));
    return numbers_.emplace(path, static_cast<std::int64_t>(paths_.size()) - 1).first->second;
}

std::vector<fs::path> ReferencedFiles::all() const {
    const std::lock_guard guard(mutex_);
    std::vector<fs::path> files;
    for (const std::string& path : paths_) files.push_back(is_url(path) ? fs::path(path) : folder_ / path);
    return files;
}

std::unique_ptr<ByteSource> ReferencedFiles::open(const Reference& at, const std::string& name) const {
    if (at.file < 0) return memory_source(Buffer(std::as_bytes(std::span(at.text))), name);
    const auto file = open_file(at.file);
    const std::uint64_t offset = at.whole ? 0 : at.offset;
    const std::uint64_t size = at.whole ? file->size() : at.size;
    if (offset > file->size() || size > file->size() - offset) {
        throw corrupt(
            "{}: expected {} bytes at offset {} of {}, which has {} bytes: write the "
            "references anew",
            name, size, offset, file->name(), file->size());
    }
    return slice_source(file, offset, size, name);
}

std::uint64_t ReferencedFiles::size_of(const Reference& at) const {
    if (at.file < 0) return at.text.size();
    return at.whole ? open_file(at.file)->size() : at.size;
}

std::shared_ptr<const ByteSource> ReferencedFiles::open_file(std::int64_t number) const {
    const std::lock_guard guard(mutex_);
    const auto known = std::ranges::find(open_, number, &Open::first);
    if (known != open_.end()) {
        std::rotate(open_.begin(), known, known + 1);
        return open_.front().second;
    }
    if (open_.size() == most_files_open) open_.pop_back();
    const std::string& path = paths_[static_cast<std::size_t>(number)];
    auto file = open_path(path);
    if (may_read_ && !may_read_(path, *file)) {
        throw unsupported("\"{}\" is no array file, and no chunk of an array", path)
            .advising(Action::allow_outside, "reads it");
    }
    open_.emplace(open_.begin(), number, std::move(file));
    return open_.front().second;
}

/// The path relative to the folder, or absolute if paths may lead out of it.
std::string ReferencedFiles::checked(const std::string& path) const {
    const auto refuse = [&](std::string_view why) { throw unsupported("\"{}\" {}", path.substr(0, 200), why); };
    if (path.find('\0') != std::string::npos) throw unsupported("what has a NUL is no path");
    if (path.empty() || path.size() > longest_reference) refuse("is no path");
    if (path.find("{{") != std::string::npos) refuse("is a template, which Tessera does not fill in");
    if (is_url(path)) {
        if (outside_) return path;
        throw unsupported("\"{}\" is a URL, and does not lie below {}, the folder of the references",
                          path.substr(0, std::min<std::size_t>(path.find('?'), 200)), folder_.string())
            .advising(Action::allow_outside, "lets it");
    }
    const fs::path given = path;
    if (outside_) return (folder_ / given).string();
    const fs::path normal = given.lexically_normal();
    for (const fs::path& folder : {folder_, real_folder_}) {
        const fs::path below = normal.is_absolute() && !folder.empty() ? normal.lexically_relative(folder) : normal;
        if (!below.empty() && below != "." && *below.begin() != ".." && !below.is_absolute() &&
            std::ranges::find(given, "..") == given.end()) {
            if (is_hidden(below)) {
                throw unsupported("\"{}\" is hidden: references do not lead to such files", path.substr(0, 200))
                    .advising(Action::allow_outside, "lets them");
            }
            return below.string();
        }
    }
    throw unsupported("\"{}\" does not lie below {}, the folder of the references", path.substr(0, 200),
                      folder_.string())
        .advising(Action::allow_outside, "lets it");
}

std::shared_ptr<const ByteSource> ReferencedFiles::open_path(const std::string& path) const {
    if (is_url(path)) return open_url(path);
    const std::string full = (folder_ / path).string();
    constexpr int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    Descriptor fd(outside_ ? open_at(AT_FDCWD, path.c_str(), flags)
                           : open_beneath(directory_.get(), path.c_str(), flags));
    if (!fd && errno == ELOOP && !outside_) {
        throw unsupported("{}: references do not lead through symbolic links", full)
            .advising(Action::allow_outside, "lets them");
    }
    if (!fd && is_absent(errno)) {
        throw corrupt("{}: references lead to this file, and it is not there", full);
    }
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) throw io_error("cannot open", full, errno);
    if (!S_ISREG(status.st_mode)) {
        throw corrupt("{} is {}, and not a regular file", full, kind_text(status.st_mode));
    }
    return std::make_shared<FileSource>(std::move(fd), static_cast<std::uint64_t>(status.st_size), full);
}

}  // namespace tessera
