#include <tessera/action.h>
#include <tessera/seal.h>

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/own_names.h>
#include <tessera/seal_signature.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys.h"
#include "move_aside.h"
#include "parity_decode.h"
#include "parity_encode.h"
#include "parity_seal.h"
#include "readme_page.h"
#include "replace_directory.h"
#include "resize.h"
#include "seal_changes.h"
#include "seal_mark.h"
#include "sealed_file_store.h"
#include "sha256.h"
#include "sums.h"

namespace tessera {

static_assert(seal_key == seal_sums_key);

namespace {

/// The files of a manifest that are there, with their sums. Notes those that are missing, and others.
FileList sealed_and_there(const PlaceView& place, const FileList& manifest, SealState& state) {
    FileList sealed(spool_folder(place.store));
    FileList added(spool_folder(place.store));
    join_files(files_below(place), manifest, [&](const ListedFile* there, const ListedFile* was) {
        if (was == nullptr) {
            added.append(*there);
        } else if (there != nullptr) {
            sealed.append({.path = there->path, .size = there->size, .sum = was->sum});
        } else {
            state.missing.push_back(was->path);
        }
    });
    if (!added.empty()) leave_out_stale(place, added);
    FileList::Reader reader(added);
    while (const ListedFile* const file = reader.next()) state.added.push_back(file->path);
    return sealed;
}

/// Compares what is there with `manifest`.
SealState state_by(const PlaceView& place, const FileList& manifest, const IoOptions& io) {
    SealState state;
    state.present = true;
    const FileList sealed = sealed_and_there(place, manifest, state);
    for_each_file<char>(
        sealed, io, "checking the seal",
        [&](const ListedFile& file, char& same) {
            try {
                same = sum_of(place.store, place.key(file.path)) == file.sum;
            } catch (const Error& e) {
                if (e.code() == ErrorCode::cancelled) throw;
                same = 0;  // an unreadable file counts as changed
            }
        },
        [&](const ListedFile& file, char same) {
            if (same == 0) state.changed.push_back(file.path);
        });
    state.unchanged = static_cast<std::int64_t>(sealed.size()) - std::ssize(state.changed);
    return state;
}

}  // namespace

SealState seal_state(const PlaceView& place, const IoOptions& io) {
    const std::optional<FileList> manifest = sealed_sums(place);
    return manifest ? state_by(place, *manifest, io) : SealState{};
}

namespace {

/// The existing parity; nullopt also if it cannot be used.
std::optional<ParityArchive> parity_there(const PlaceView& place) {
    try {
        return ParityArchive::open(place);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return std::nullopt;
    }
}

/// The names that may be sealed as they are. Throws invalid_argument for one that names nothing.
PathSet accepted_of(const SealOptions& options, const FileList& files, const FileList& sealed) {
    PathSet accepted(options.accept.begin(), options.accept.end());
    for (const std::string& name : accepted) {
        if (sealed.find(name) || files.find(name)) continue;
        throw invalid_argument("{}: no file of that name is there, or was sealed, to be accepted", name);
    }
    return accepted;
}

/// Throws already_exists for differences that are neither accepted nor overwritten.
void require_accepted(const std::string& place, const SealChanges& changes, const PathSet& accepted,
                      const SealOptions& options, bool broken) {
    const auto refused = [&](std::vector<std::string> names) {
        std::erase_if(names, [&](const std::string& name) { return accepted.contains(name); });
        return names;
    };
    if (const auto damaged = refused(changes.damaged); !damaged.empty()) {
        throw advise_damaged(already_exists("{}: {}", place, damaged_text(damaged)));
    }
    if (options.overwrite) return;
    std::vector<std::string> others = changes.changed;
    others.insert(others.end(), changes.missing.begin(), changes.missing.end());
    if (!broken) others.insert(others.end(), changes.added.begin(), changes.added.end());
    others = refused(std::move(others));
    if (others.empty()) return;
    throw already_exists("{}: sealed before, and since then changed, lost or added{}: {}", place,
                         broken ? ", other than by writing after the seal was broken" : "", names_text(others))
        .advising(Action::accept, "seals files anew that are as they should be", "NAMES")
        .advising(Action::overwrite, "all of it");
}

/// Texts that are put beside the data, by name.
using Pages = std::vector<std::pair<std::string, std::string>>;

Pages pages_of(const PlaceRef& place, const SealOptions& options) {
    Pages pages = options.beside;
    if (auto page = wanted_readme(place, options.readme)) pages.emplace_back(readme_name, std::move(*page));
    return pages;
}

/// Writes those that differ from what is there. Returns whether it wrote any.
bool put_pages(const PlaceRef& place, const Pages& pages) {
    constexpr std::uint64_t longest = std::uint64_t{64} << 20;
    bool written = false;
    for (const auto& [name, text] : pages) {
        const std::string key = place.key(name);
        const auto bytes = std::as_bytes(std::span(text));
        Buffer there;
        const bool exists = place.store.contains(key) && place.store.get(key, there, longest);
        if (exists && std::ranges::equal(there.span(), bytes)) continue;
        place.store.put(key, bytes);
        written = true;
    }
    return written;
}

/// Seals data that may have a seal already.
class Resealing {
public:
    /// `pages` will be as they have to be, whatever they are now.
    Resealing(const PlaceRef& place, const SealOptions& options, FileList files, const Pages& pages)
        : place_(place), options_(options), files_(std::move(files)), pages_(pages), archive_(parity_there(place)) {
        parity_ = options.parity;
        if (!parity_ && archive_ && !options.drop_parity) parity_ = archive_->root().redundancy;
        if (parity_ && place.store.is_far()) {
            throw unsupported("{}: parity is made for folders of this machine only", place.name());
        }
        old_.check = options.check;
        // Everything is sealed anew, whatever it is. Only parity can tell damage from changes.
        if (options.overwrite && !archive_) return;
        sums_ = sealed_sums(place);
        if (sums_) compare();
    }

    /// Takes the files as they are once a page was written.
    void renew(FileList files) {
        std::vector<bool> intact;
        FileList::Follower before(files_);
        FileList::Reader reader(files);
        while (const ListedFile* const file = reader.next()) {
            const bool same = !old_.intact.empty() && before.find(file->path) != nullptr && !is_page(file->path);
            intact.push_back(same && old_.intact[before.number()]);
        }
        if (!old_.intact.empty()) old_.intact = std::move(intact);
        files_ = std::move(files);
        unchanged_ = false;
    }
    [[nodiscard]] const FileList& files() const { return files_; }

    /// Whether there is nothing to do.
    [[nodiscard]] bool is_done() const {
        if (!unchanged_ || options_.overwrite || options_.drop_parity) return false;
        if (!parity_) return true;
        return archive_ && archive_->root().redundancy == *parity_ && is_whole(*archive_, options_.check, options_.io);
    }

    std::uint64_t with_parity() {
        if (sums_ && archive_) {
            old_.archive = &*archive_;
            old_.sums = &*sums_;
            old_.parts = &*parts_;
        }
        return seal_with_parity(place_, files_, *parity_, old_, options_.io);
    }
    [[nodiscard]] bool has_parity() const { return parity_.has_value(); }

private:
    void compare() {
        parts_ = archive_ ? sealed_parts(*archive_) : SealedParts{FileList(""), {}};
        SealChanges changes = seal_changes(place_, files_, *sums_, parts_->files, options_.check, options_.io);
        PathSet accepted = accepted_of(options_, files_, *sums_);
        for (const auto& page : pages_) accepted.insert(page.first);
        const bool broken = seal_broken(place_).has_value();
        require_accepted(place_.name(), changes, accepted, options_, broken);
        unchanged_ = changes.none();
        old_.intact = std::move(changes.intact);
        // Accepted files are read, even if their size and time are those of the seal.
        for (const std::string& name : accepted) {
            const auto file = files_.find(name);
            if (!file || !old_.intact[file->number] || is_page(name)) continue;
            old_.intact[file->number] = false;
            unchanged_ = false;
        }
    }

    [[nodiscard]] bool is_page(std::string_view name) const {
        return std::ranges::any_of(pages_, [&](const auto& page) { return page.first == name; });
    }

    PlaceRef place_;
    const SealOptions& options_;
    FileList files_;
    const Pages& pages_;
    std::optional<ParityArchive> archive_;
    std::optional<Redundancy> parity_;
    std::optional<FileList> sums_;
    std::optional<SealedParts> parts_;
    OldParity old_;
    bool unchanged_ = false;
};

/// A seal would be a file that the package does not list.
void require_no_package(const PlaceRef& place) {
    if (place.store.is_far() || as_sealed_file(place.store) != nullptr) return;
    const std::filesystem::path real = real_path(place.name());
    for (const char* const content : {"data", "v1"}) {
        const std::string package = package_holding((real / content).string());
        if (package.empty()) continue;
        throw unsupported(
            "{}: is a bag or an OCFL object, or lies in one, which has the sums of its files, and must not hold "
            "anything else; `tessera verify {}` compares them",
            place.name(), package);
    }
}

/// As lock_settled_nodes, but if the folder cannot be written, the error says why a seal has to.
LockedNodes locked_to_seal(const PlaceRef& place) {
    try {
        return lock_settled_nodes(place);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::io) throw;
        throw e.within(
            fmt::format("{}: cannot be sealed, because a seal is written into the folder itself (a bag, which "
                        "is a copy, can be made elsewhere)",
                        place.name()));
    }
}

/// The bag's own manifests list its seal.
void require_no_bag(const PlaceRef& place) {
    const auto* const beside = as_sealed_file(place.store);
    if (beside == nullptr || beside->of_file()) return;
    throw unsupported(
        "{}: a bag, whose manifests list its files, its seal and its parity: it is not sealed again; a new bag can be "
        "made of the data, with the parity that it is to have",
        beside->path().string());
}

}  // namespace

Sealed seal(const PlaceRef& place, const SealOptions& options) {
    require_no_package(place);
    const LockedNodes locked = locked_to_seal(place);
    const Pages pages = pages_of(place, options);
    Sealed result;
    const auto files_now = [&] {
        FileList files = files_below(place);
        result.outside = leave_out_stale(place, files);
        if (files.empty()) throw not_found("{}: nothing to seal", place.name());
        return files;
    };
    Resealing resealing(place, options, files_now(), pages);
    if (put_pages(place, pages)) resealing.renew(files_now());
    const FileList& files = resealing.files();
    result.files = static_cast<std::int64_t>(files.size());
    result.bytes = files.bytes();
    if (!resealing.is_done()) {
        require_no_bag(place);
        for (const std::string& path : directories_in_places(place)) {
            move_directory_aside(place, place.key(path));
        }
        if (resealing.has_parity()) {
            result.parity_bytes = resealing.with_parity();
        } else {
            const FileList sums = sums_of(place, files, options.io);
            put_manifest(place.store, place.key(seal_key), each_of(sums));
            place.store.sync();
            drop_parity(place);
        }
        result.signature_gone = drop_signatures(place);
        result.written = true;
    }
    // This comes last: if the run is killed before, the new seal counts as broken, which loses nothing.
    if (place.store.erase(place.key(seal_mark_key))) place.store.sync();
    return result;
}

std::function<bool(std::string_view)> unchanged_since_seal(const PlaceView& place) {
    const auto archive = parity_there(place);
    if (!archive) return [](std::string_view) { return false; };
    const auto parts = std::make_shared<const SealedParts>(sealed_parts(*archive));
    return [parts, &store = place.store, prefix = std::string(place.prefix)](std::string_view path) {
        const auto sealed = parts->files.find(path);
        if (!sealed) return false;
        const auto facts = facts_of(store, join_key(prefix, path));
        return facts && facts->size == sealed->file.size && facts->modified == sealed->file.modified;
    };
}

// ---- seals beside what they are of

namespace {

/// Also of a link and the like in its place, even a dangling one: a seal must not be lost silently.
bool has_seal_folder(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) return true;
    const auto status = status_of(path);
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

/// `facts` are those of the file or directory `real`.
std::optional<Place> place_of_seal(const std::filesystem::path& real, const std::optional<PathFacts>& facts,
                                   const StoreOptions& options, bool make) {
    if (facts && facts->directory) {
        // Asks for the parity alone, because everything else of the bag may be lost.
        const bool bag = std::filesystem::is_directory(status_of(real / bag_seal_folder / "parity"));
        return bag ? std::optional(Place{SealedFileStore::of_bag(real, options), ""}) : std::nullopt;
    }
    if (facts && !facts->regular) return std::nullopt;
    if (!has_seal_folder(seal_folder_of(real)) && !(make && facts)) return std::nullopt;
    return Place{SealedFileStore::of_file(real, options), ""};
}

}  // namespace

std::optional<Place> place_beside(const std::filesystem::path& path, const StoreOptions& options, bool make) {
    if (!is_local(path)) return std::nullopt;
    const std::filesystem::path real = real_path(path);
    const auto facts = path_facts(real);
    if (!facts) (void)status_of(real);  // throws if the system does not say what is there
    return place_of_seal(real, facts, options, make);
}

std::optional<Place> place_beside(const Located& at, const StoreOptions& options) {
    if (!is_local(at.file.path) || at.file.member) return std::nullopt;
    return place_of_seal(real_path(at.file.path), at.facts, options, false);
}

}  // namespace tessera
