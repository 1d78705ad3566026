#include "sealed_file_store.h"

#include <tessera/error_text.h>
#include <tessera/own_names.h>

#include <sys/stat.h>

#include <utility>

#include "bag_names.h"
#include "beneath.h"
#include "keys.h"
#include "node_files.h"
#include "seal_mark.h"

namespace tessera {

std::filesystem::path seal_folder_of(const std::filesystem::path& file) {
    std::filesystem::path folder = file;
    folder += seal_file_suffix;
    return folder;
}

std::shared_ptr<SealedFileStore> SealedFileStore::of_file(const std::filesystem::path& file,
                                                          const StoreOptions& options) {
    const std::filesystem::path place = std::filesystem::absolute(file).lexically_normal();
    const std::string name = place.filename().string();
    return std::shared_ptr<SealedFileStore>(
        new SealedFileStore(directory_store(place.parent_path(), options), seal_folder_of(name), name));
}

std::shared_ptr<SealedFileStore> SealedFileStore::of_bag(const std::filesystem::path& bag,
                                                         const StoreOptions& options) {
    return std::shared_ptr<SealedFileStore>(new SealedFileStore(directory_store(bag, options), bag_seal_folder, ""));
}

bool SealedFileStore::shows(std::string_view name) const {
    if (!only_.empty()) return name == only_;
    return name != seal_ && name != own_folder && !is_bag_tag_manifest(name);
}

std::string SealedFileStore::there(std::string_view key) const {
    const std::string_view first = key.substr(0, key.find('/'));
    if (first == own_folder) return seal_ + std::string(key.substr(first.size()));
    if (key.empty() || shows(first)) return std::string(key);
    throw invalid_argument("{}: {} is no part of what is sealed", name(), key);
}

std::string SealedFileStore::shown(std::string_view key) const {
    const std::string_view first = key.substr(0, key.find('/'));
    return first == own_folder ? there(key) : std::string(key);
}

std::filesystem::path SealedFileStore::file_of(std::string_view key) const {
    return std::filesystem::path(name()) / there(key);
}

namespace {

/// Whether a key is in the seal.
bool in_seal(std::string_view key) {
    return key.substr(0, key.find('/')) == own_folder;
}

}  // namespace

void SealedFileStore::require_own(std::string_view key) const {
    if (!in_seal(key)) return;
    const std::string path = there(key);
    for (std::size_t end = seal_.size();; end = path.find('/', end + 1)) {
        const std::filesystem::path part = std::filesystem::path(name()) / path.substr(0, end);
        struct stat status {};
        if (::lstat(part.c_str(), &status) != 0) return;  // if not for its absence, opening it fails
        if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
            throw corrupt("{} is {}, in the place of a seal's files, where no link is followed; remove it",
                          part.string(), kind_text(status.st_mode));
        }
        if (end >= path.size()) return;
    }
}

void SealedFileStore::require_own_folder(std::string_view key) const {
    require_own(parent_of(key));
}

bool SealedFileStore::is_own_entry(std::string_view prefix, std::string_view name) const {
    struct stat status {};
    return ::lstat(file_of(join_key(prefix, name)).c_str(), &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

std::unique_ptr<ByteSource> SealedFileStore::open(std::string_view key) const {
    return contains(key) ? directory_->open(there(key)) : nullptr;
}

bool SealedFileStore::get(std::string_view key, Buffer& out, std::uint64_t limit) const {
    return contains(key) && directory_->get(there(key), out, limit);
}

void SealedFileStore::put(std::string_view key, ByteSpan value) {
    require_own_folder(key);
    directory_->put(there(key), value);
}

std::unique_ptr<ByteSink> SealedFileStore::create(std::string_view key) {
    require_own_folder(key);
    return directory_->create(there(key));
}

bool SealedFileStore::link(std::string_view key, const ReadableStore& other, std::string_view other_key) {
    require_own_folder(key);
    if (&other == this) return directory_->local_files().link(there(key), *directory_, there(other_key));
    return directory_->local_files().link(there(key), other, other_key);
}

bool SealedFileStore::replace(std::string_view from, std::string_view to) {
    require_own_folder(to);
    return directory_->replace(there(from), there(to));
}

std::optional<ValueStamp> SealedFileStore::stamp(std::string_view key) const {
    return contains(key) ? directory_->stamp(there(key)) : std::nullopt;
}

bool SealedFileStore::contains(std::string_view key) const {
    require_own(key);
    const std::string_view first = key.substr(0, key.find('/'));
    return (first == own_folder || shows(first)) && directory_->contains(there(key));
}

bool SealedFileStore::erase(std::string_view key) {
    return directory_->erase(there(key));
}

void SealedFileStore::erase_below(std::string_view prefix) {
    if (prefix.empty()) throw invalid_argument("{}: only what a seal is of can be removed", name());
    directory_->erase_below(there(prefix));
}

Listing SealedFileStore::list(std::string_view prefix) const {
    require_own(prefix);
    Listing listing = directory_->list(there(prefix));
    if (!prefix.empty() && !in_seal(prefix)) return listing;
    const auto hidden = [&](const std::string& name) {
        return prefix.empty() ? !shows(name) : !is_own_entry(prefix, name);
    };
    std::erase_if(listing.keys, hidden);
    std::erase_if(listing.prefixes, hidden);
    std::erase_if(listing.links, hidden);
    return listing;
}

void SealedFileStore::for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const {
    require_own(prefix);
    if (!prefix.empty() && !in_seal(prefix)) return directory_->for_each(there(prefix), each, folder);
    const auto is_shown = [&](std::string_view name) {
        return prefix.empty() ? shows(name) : is_own_entry(prefix, name);
    };
    const auto shown = [&](std::string_view name, const ValueSize& size) {
        if (is_shown(name)) each(name, size);
    };
    const auto shown_folder = [&](std::string_view name, bool link) {
        if (is_shown(name) && folder) folder(name, link);
    };
    directory_->for_each(there(prefix), shown, shown_folder);
}

bool SealedFileStore::leads_back(std::string_view prefix) const {
    return directory_->local_files().leads_back(there(prefix));
}

std::optional<FileId> SealedFileStore::folder_id(std::string_view prefix) const {
    return directory_->local_files().folder_id(there(prefix));
}

bool SealedFileStore::is_link(std::string_view prefix) const {
    return directory_->local_files().is_link(there(prefix));
}

std::string SealedFileStore::link_target(std::string_view prefix) const {
    return directory_->local_files().link_target(there(prefix));
}

void SealedFileStore::require_direct(std::string_view key) const {
    directory_->local_files().require_direct(there(key));
}

}  // namespace tessera
