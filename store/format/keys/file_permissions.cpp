// Who may read and write what a directory store makes
// ---------------------------------------------------
// An array that several people write must not take the mask of the last of them. A file that replaces another one keeps
// its mode, group and access list. A new one takes those of the metadata document of its array or group, as git does
// with core.sharedRepository, and a new folder takes those of the folder around it. What is Tessera's own (journals,
// seals, kept values) counts as a part of the array. A new array follows the mask, because it has no document yet; one
// that takes the place of another takes after that one.
//
// If this user may not give the group, the file keeps another one, and the group's rights are withheld: they would go
// to the wrong people. Root also gives the owner, so that an array does not change hands by being written.
//
// An access list for new files of a folder (setfacl -d) is a statement about new files, so it decides about those.
//
// What it costs: for a file that is replaced, one look at it and one at its access list; none for a chunk in a folder
// that the same operation has made, where nothing can have been replaced. What the system gives to new files in a
// folder and what the document has is found out once for each operation.
#include "file_permissions.h"

#include <fmt/format.h>
#include <tessera/descriptor.h>
#include <tessera/own_names.h>
#include <tessera/zarr_names.h>
#include <unistd.h>

#include <utility>

#include "keys.h"
#include "seal_mark.h"

namespace tessera {

namespace {

constexpr mode_t file_bits = 0777;

std::string_view folder_path_of(std::string_view key) {
    const std::size_t slash = key.rfind('/');
    return key.substr(0, slash == key.npos ? 0 : slash);
}

}  // namespace

std::optional<Permissions> FilePermissions::of_file(int folder, const char* name) {
    struct stat status {};
    if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    Permissions found = permissions_from(status);
    found.mode &= file_bits;
    if (lists_) {
        bool supported = true;
        found.list = access_list_at(folder, name, &supported);
        if (!supported) lists_ = false;
    }
    return found;
}

std::optional<Permissions> FilePermissions::of_document(int root, std::string_view prefix) {
    {
        const std::lock_guard guard(mutex_);
        if (const auto found = documents_.find(prefix); found != documents_.end()) return found->second;
    }
    std::optional<Permissions> found;
    for (const std::string_view name : metadata_names) {
        if (!found) found = of_file(root, join_key(prefix, name).c_str());
    }
    const std::lock_guard guard(mutex_);
    documents_.insert_or_assign(std::string(prefix), found);
    return found;
}

std::optional<Permissions> FilePermissions::find_node(int root, std::string_view key) {
    const std::size_t own = own_part(key);
    if (own != key.npos) return of_document(root, key.substr(0, own == 0 ? 0 : own - 1));
    if (const std::size_t end = key.find(seal_file_suffix); end != key.npos) {  // a file's seal lies beside it
        return of_file(root, std::string(key.substr(0, end)).c_str());
    }
    // Up from the folder of a chunk, past other folders of chunks.
    std::string_view prefix = folder_path_of(key);
    const std::string around = fmt::format("/{}/", prefix);
    bool below_c = around.find("/c/") + 3 < around.size();
    for (;;) {
        const std::string_view name = prefix.substr(prefix.rfind('/') + 1);
        const bool chunks = looks_like_chunk(name);
        if (name == "c") below_c = false;
        auto found = chunks && below_c ? std::nullopt : of_document(root, prefix);
        if (found || (!chunks && name != "c" && name != "__zdata__")) return found;
        prefix = folder_path_of(prefix);
    }
}

std::optional<Permissions> FilePermissions::of_node(int root, std::string_view key) {
    const std::string_view path = folder_path_of(key);
    {
        const std::lock_guard guard(mutex_);
        const auto found = folders_.find(path);
        if (found != folders_.end() && found->second.has_node) return found->second.node;
    }
    auto found = find_node(root, key);
    const std::lock_guard guard(mutex_);
    Folder& folder = folders_[std::string(path)];
    folder.node = found;
    folder.has_node = true;
    return found;
}

std::optional<Permissions> FilePermissions::of_node_or_model(int root, std::string_view key) {
    auto found = of_node(root, key);
    if (found || model_ == nullptr) return found;
    if (!looks_like_chunk(key.substr(key.rfind('/') + 1)))
        found = model_->of_file(model_root_, std::string(key).c_str());
    return found ? found : model_->of_node(model_root_, key);
}

FilePermissions::Chunk FilePermissions::kind_of(std::string_view key, std::string_view name) {
    // Names of our own files are random, and some of them look like chunks.
    if (!looks_like_chunk(name) || key.find(own_folder) != std::string_view::npos) return Chunk::no;
    const std::lock_guard guard(mutex_);
    const auto found = folders_.find(folder_path_of(key));
    if (found == folders_.end()) return Chunk::no;
    if (found->second.has_node && !found->second.node) return Chunk::of_new_array;
    return found->second.made ? Chunk::in_new_folder : Chunk::no;
}

FilePermissions::Wanted FilePermissions::of(int root, std::string_view key, int folder, const char* name) {
    if (follows_mask_) return {};
    const Chunk chunk = kind_of(key, name);
    if (chunk == Chunk::of_new_array && model_ == nullptr) return {};
    if (auto old = chunk == Chunk::no ? of_file(folder, name) : std::nullopt) return {.all = std::move(old)};
    auto wanted = of_node_or_model(root, key);
    if (!wanted) return {};
    const bool list = has_default_list(folder_path_of(key), folder);
    return {.all = std::move(wanted), .only_group = list};
}

bool FilePermissions::has_default_list(std::string_view folder_path, int folder) {
    if (!lists_) return false;
    {
        const std::lock_guard guard(mutex_);
        const auto found = folders_.find(folder_path);
        if (found != folders_.end() && found->second.has_default_list) return *found->second.has_default_list;
    }
    bool supported = true;
    const bool has = !default_list(folder, &supported).empty();
    if (!supported) lists_ = false;
    const std::lock_guard guard(mutex_);
    folders_[std::string(folder_path)].has_default_list = has;
    return has;
}

Permissions FilePermissions::fresh(int file, std::string_view folder_path, int folder, mode_t asked) {
    const bool list = has_default_list(folder_path, folder);
    if (!list) {
        const std::lock_guard guard(mutex_);
        const auto found = folders_.find(folder_path);
        if (found != folders_.end() && found->second.known && found->second.asked == asked) {
            return {.mode = found->second.got, .owner = found->second.owner, .group = found->second.group};
        }
    }
    struct stat status {};
    if (::fstat(file, &status) != 0) return {};
    Permissions now = permissions_from(status);
    now.mode &= file_bits;
    if (list) now.list = access_list(file);
    const std::lock_guard guard(mutex_);
    Folder& known = folders_[std::string(folder_path)];
    known.asked = asked;
    known.got = now.mode;
    known.owner = now.owner;
    known.group = now.group;
    known.known = true;
    return now;
}

void FilePermissions::give(int file, std::string_view key, int folder, const Wanted& wanted) {
    if (!wanted.all) return;
    const Permissions now = fresh(file, folder_path_of(key), folder, wanted.mode());
    Permissions target = *wanted.all;
    if (wanted.only_group) {
        target.mode = now.mode;
        target.list = now.list;
    }
    if (now == target || (now.mode == target.mode && now.group == target.group && now.list == target.list &&
                          (now.owner == target.owner || now.owner != 0))) {
        return;
    }
    if (!give_permissions(file, now, target)) withheld(join_key(store_, key), target.group);
}

void FilePermissions::give_own(int root, std::string_view prefix, int file) {
    const auto wanted = of_node(root, join_key(prefix, ".tessera/undo"));
    struct stat status {};
    if (!wanted || ::fstat(file, &status) != 0) return;
    Permissions now = permissions_from(status);
    now.list = access_list(file);
    if (!now.list.empty()) return;  // the folder's list for new files decides
    if (!give_permissions(file, now, *wanted)) withheld(join_key(store_, prefix), wanted->group);
}

void FilePermissions::give_folder(int root, std::string_view path, int above, int made) {
    {
        const std::lock_guard guard(mutex_);
        folders_[std::string(path)].made = true;
    }
    if (follows_mask_ || !of_node_or_model(root, join_key(path, "0")))
        return;  // a part of a new array, made with this user's mask as all of it
    const auto wanted = permissions_below(above);
    struct stat status {};
    if (!wanted || ::fstat(made, &status) != 0 || status.st_uid != ::geteuid()) return;
    if (!give_permissions(made, permissions_from(status), *wanted)) withheld(join_key(store_, path), wanted->group);
}

void FilePermissions::keep(int from_folder, const char* from, int to_folder, const char* to) {
    struct stat status {};
    if (::fstatat(from_folder, from, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
        status.st_nlink != 1 || status.st_uid != ::geteuid()) {
        return;  // an old value that is put back has its own
    }
    const auto wanted = of_file(to_folder, to);
    const auto now = wanted ? of_file(from_folder, from) : std::nullopt;
    if (!now || *now == *wanted) return;
    const Descriptor file(open_at(from_folder, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (file && !give_permissions(file.get(), *now, *wanted)) withheld(join_key(store_, to), wanted->group);
}

void FilePermissions::share_like(FilePermissions& model, int model_root, int own_root) {
    model_ = &model;
    model_root_ = model_root;
    struct stat wanted {};
    struct stat status {};
    if (::fstat(model_root, &wanted) != 0 || ::fstat(own_root, &status) != 0 || status.st_uid != ::geteuid()) return;
    Permissions now = permissions_from(status);
    Permissions like = permissions_from(wanted);
    now.list = access_list(own_root);
    like.list = access_list(model_root);
    (void)give_permissions(own_root, now, like);
}

void FilePermissions::forget() {
    const std::lock_guard guard(mutex_);
    folders_.clear();
    documents_.clear();
}

void FilePermissions::withheld(const std::string& path, gid_t group) {
    {
        const std::lock_guard guard(mutex_);
        if (std::exchange(told_, true)) return;
    }
    if (waiter_ == nullptr) return;
    waiter_->notes(
        fmt::format("{}: this user is no member of its group ({}), so that others of the group cannot read "
                    "what was just written; let a member of the group write, or give it the group (chgrp) "
                    "and its rights (chmod g+rw)",
                    path, group));
}

}  // namespace tessera
