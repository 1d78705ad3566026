// Which links are followed for reading
// ------------------------------------
// An array may come from an untrusted sender, who put links to the reader's own files in the places of chunks. So a
// link in an array's folder is followed only if it stays in that folder, and another one if it stays in the folder that
// was opened. A link that leads straight to an array, or to a group with metadata, is followed wherever that lies,
// because groups are gathered in this way. It is a new start: links behind it have to stay there.
//
// What it costs
// -------------
// The first call for a value fails at a link (open_without_links). Only then is its path walked part by part. The
// kernel says where an opened link led, so that a name that changes meanwhile does no harm. The array or group behind a
// link stays open. A value below it then takes two calls more, which see whether the link still leads there.
#include "followed_links.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/error.h>
#include <tessera/file_source.h>
#include <tessera/system_calls.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <fmt/format.h>

namespace tessera {

namespace {

std::string real_path_of(int fd) {
    std::string place(PATH_MAX, '\0');
    const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), place.data(), place.size());
    place.resize(size <= 0 ? 0 : static_cast<std::size_t>(size));
    return place;
}

bool has_document(int folder, std::string_view name) {
    struct stat status {};
    return ::fstatat(folder, std::string(name).c_str(), &status, 0) == 0 && S_ISREG(status.st_mode);
}

bool is_group_document(int folder, std::string_view name) {
    constexpr std::uint64_t longest = std::uint64_t{64} << 20U;
    try {
        Descriptor fd(open_at(folder, std::string(name).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY));
        struct stat status {};
        if (!fd || ::fstat(fd.get(), &status) != 0 || std::cmp_greater(status.st_size, longest)) return false;
        const FileSource file(std::move(fd), static_cast<std::uint64_t>(status.st_size), std::string(name));
        const Buffer text = read_all(file);
        const Value document = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
        const Value* const type = document.is_object() ? document.find("node_type") : nullptr;
        return type != nullptr && *type == Value("group");
    } catch (const Error&) {
        return false;
    }
}

/// Whether an array may be in an open folder.
bool may_hold_array(int folder) {
    return std::ranges::any_of(metadata_names, [&](std::string_view name) {
        return name != v2_group_name && has_document(folder, name) &&
               (name != v3_document_name || !is_group_document(folder, name));
    });
}

bool holds_node(int folder) {
    return std::ranges::any_of(metadata_names, [&](std::string_view name) { return has_document(folder, name); });
}

}  // namespace

bool lies_in(int fd, std::string_view folder) {
    const std::string place = real_path_of(fd);
    const bool below = place.starts_with(folder) &&
                       (folder.ends_with('/') || place.size() == folder.size() || place[folder.size()] == '/');
    return !place.empty() && below;
}

FollowedLinks::Opened FollowedLinks::open(int root, const std::string& key, int flags, std::string_view within) const {
    FolderCache::Folder folder;  // null: the root
    std::string limit = real_path_of(root);
    std::string limit_key;
    bool in_array = false;
    for (std::size_t begin = 0;;) {
        const int at = folder ? folder->get() : root;
        if (!in_array && may_hold_array(at)) {
            in_array = true;
            limit = real_path_of(at);
            limit_key = key.substr(0, begin == 0 ? 0 : begin - 1);
        }
        const std::size_t end = std::min(key.find('/', begin), key.size());
        const bool is_last = end == key.size();
        const std::string part = key.substr(begin, end - begin);
        const int how = is_last ? flags : os::lookup | O_DIRECTORY;
        Descriptor next(open_beneath(at, part.c_str(), how));
        bool is_start = false;
        if (!next && errno == ELOOP) {
            next = Descriptor(open_at(at, part.c_str(), how));
            if (next && (limit.empty() || !lies_in(next.get(), limit))) {
                is_start = !is_last && !in_array && holds_node(next.get());
                if (!is_start || !lies_in(next.get(), within)) return {Descriptor(), limit_key, !is_last};
            }
        }
        if (!next || is_last) return {std::move(next)};
        folder = std::make_shared<const Descriptor>(std::move(next));
        if (is_start) {
            limit = real_path_of(folder->get());
            limit_key = key.substr(0, end);
            nodes_.keep(limit_key, folder);
            any_ = true;
        }
        begin = end + 1;
    }
}

std::optional<int> FollowedLinks::open_known(int root, const std::string& key, int flags) const {
    if (!any_) return std::nullopt;
    for (std::size_t end = key.rfind('/'); end != key.npos && end != 0; end = key.rfind('/', end - 1)) {
        const std::string link = key.substr(0, end);
        const FolderCache::Folder folder = nodes_.find(link);
        if (!folder) continue;
        struct stat kept {};
        struct stat now {};
        if (::fstat(folder->get(), &kept) == 0 && ::fstatat(root, link.c_str(), &now, 0) == 0 &&
            kept.st_dev == now.st_dev && kept.st_ino == now.st_ino) {
            return open_without_links(folder->get(), key.c_str() + end + 1, flags);
        }
        nodes_.drop(link);
    }
    return std::nullopt;
}

}  // namespace tessera
