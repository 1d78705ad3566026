#include <tessera/folder_walk.h>

#include <tessera/parallel.h>

#include <algorithm>
#include <utility>

namespace tessera {

namespace {

/// Longer paths fail in a system call.
constexpr std::size_t longest_path = 4000;

}  // namespace

FolderWalk::FolderWalk(const PlaceView& place, Follow follow)
    : store_(place.store), root_(place.prefix), follow_(std::move(follow)) {
    open_.push_back({});
}

std::string FolderWalk::place(std::string_view path) const {
    return join_key(root_, path);
}

std::string FolderWalk::prefix() const {
    return place(at_.path);
}

std::string_view FolderWalk::name() const {
    const std::size_t slash = at_.path.rfind('/');
    return std::string_view(at_.path).substr(slash == std::string::npos ? 0 : slash + 1);
}

const Listing& FolderWalk::listing() {
    if (!listing_) listing_ = store_.list(prefix());
    return *listing_;
}

void FolderWalk::arrive(Folder folder) {
    at_ = std::move(folder);
    listing_.reset();
}

bool FolderWalk::next() {
    require_not_stopped();
    while (!open_.empty()) {
        Folder folder = std::move(open_.back());
        open_.pop_back();
        // A folder behind a link may have been reached through another link.
        if (behind_links_ && !is_new(folder.path)) continue;
        if (!behind_links_) walked_.push_back(folder.path);
        arrive(std::move(folder));
        return true;
    }
    behind_links_ = true;
    while (!links_.empty()) {
        Folder link = std::move(links_.front());
        links_.pop_front();
        if (!follow_link(link)) continue;
        arrive(std::move(link));
        return true;
    }
    return false;
}

void FolderWalk::enter(const std::string& name) {
    enter(name, std::ranges::binary_search(listing().links, name));
}

void FolderWalk::enter(const std::string& name, bool link) {
    Folder child{join_key(at_.path, name), at_.depth + 1};
    if (child.depth > deepest_folder || root_.size() + child.path.size() > longest_path) {
        passed_.push_back({std::move(child.path), PassedFolder::Why::too_deep, {}});
    } else if (link) {
        links_.push_back(std::move(child));
    } else {
        open_.push_back(std::move(child));
    }
}

void FolderWalk::remember(const std::string& path) {
    if (const auto id = store_.local_files().folder_id(place(path))) ids_.emplace(*id, path);
}

bool FolderWalk::is_new(const std::string& path) {
    const auto id = store_.local_files().folder_id(place(path));
    if (!id) return true;
    const auto [known, is_new] = ids_.emplace(*id, path);
    if (!is_new) passed_.push_back({path, PassedFolder::Why::second_way, known->second});
    return is_new;
}

bool FolderWalk::follow_link(const Folder& link) {
    for (const std::string& path : std::exchange(walked_, {})) remember(path);
    const std::string prefix = place(link.path);
    const auto id = store_.local_files().folder_id(prefix);
    if (!id) {
        passed_.push_back({link.path, PassedFolder::Why::nowhere, store_.local_files().link_target(prefix)});
        return false;
    }
    if (ids_.contains(*id)) return is_new(link.path);
    if (!follow_ || !follow_(prefix)) {
        passed_.push_back({link.path, PassedFolder::Why::elsewhere, store_.local_files().link_target(prefix)});
        return false;
    }
    ids_.emplace(*id, link.path);
    return true;
}

}  // namespace tessera
