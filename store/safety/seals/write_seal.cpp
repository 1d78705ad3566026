#include <tessera/action.h>
#include <tessera/seal.h>

#include <fmt/format.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>
#include <span>

#include "bag_state.h"
#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "metadata_json.h"
#include "move_aside.h"
#include "parity_decode.h"
#include "parity_encode.h"
#include "parity_seal.h"
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
FileList sealed_and_there(const PlaceView& place, const FileList& manifest, bool of_bag, SealState& state) {
    FileList sealed(spool_folder(place.store));
    FileList added(spool_folder(place.store));
    join_files(files_below(place), manifest, [&](const ListedFile* there, const ListedFile* was) {
        if (was == nullptr) {
            added.append(*there);
        } else if (there != nullptr) {
            sealed.append({.path = there->path, .size = there->size, .sum = was->sum});
        } else if (of_bag && is_there(place.store, place.key(was->path))) {
            sealed.append({.path = was->path, .sum = was->sum});
        } else {
            state.missing.push_back(was->path);
        }
    });
    if (!added.empty() && !of_bag) leave_out_stale(place, added);
    FileList::Reader reader(added);
    while (const ListedFile* const file = reader.next()) state.added.push_back(file->path);
    return sealed;
}

/// Compares what is there with `manifest`. That of a bag (`of_bag`) may list files that no seal covers, such as
/// Tessera's own, and nothing else may be there, not even chunks outside of their arrays.
SealState state_by(const PlaceView& place, const FileList& manifest, const IoOptions& io, bool of_bag) {
    SealState state;
    state.present = true;
    const FileList sealed = sealed_and_there(place, manifest, of_bag, state);
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
    return manifest ? state_by(place, *manifest, io, false) : SealState{};
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

/// Seals data that may have a seal already.
class Resealing {
public:
    Resealing(const PlaceRef& place, const SealOptions& options, const FileList& files)
        : place_(place), options_(options), files_(files), archive_(parity_there(place)) {
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
        const PathSet accepted = accepted_of(options_, files_, *sums_);
        const bool broken = seal_broken(place_).has_value();
        require_accepted(place_.name(), changes, accepted, options_, broken);
        unchanged_ = changes.none();
        old_.intact = std::move(changes.intact);
        // Accepted files are read, even if their size and time are those of the seal.
        for (const std::string& name : accepted) {
            const auto file = files_.find(name);
            if (!file || !old_.intact[file->number]) continue;
            old_.intact[file->number] = false;
            unchanged_ = false;
        }
    }

    PlaceRef place_;
    const SealOptions& options_;
    const FileList& files_;
    std::optional<ParityArchive> archive_;
    std::optional<Redundancy> parity_;
    std::optional<FileList> sums_;
    std::optional<SealedParts> parts_;
    OldParity old_;
    bool unchanged_ = false;
};

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

}  // namespace

Sealed seal(const PlaceRef& place, const SealOptions& options) {
    const LockedNodes locked = locked_to_seal(place);
    FileList files = files_below(place);
    const std::int64_t outside = leave_out_stale(place, files);
    if (files.empty()) throw not_found("{}: nothing to seal", place.name());
    Sealed result{.files = static_cast<std::int64_t>(files.size()), .bytes = files.bytes(), .outside = outside};
    Resealing resealing(place, options, files);
    if (!resealing.is_done()) {
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

// ---- BagIt

namespace {

/// A path in a bag's manifest, where RFC 8493 escapes line ends and '%' as in URLs.
std::string bag_path(std::string_view path) {
    std::string text;
    for (const char c : path) {
        if (c == '\n' || c == '\r' || c == '%') {
            fmt::format_to(std::back_inserter(text), "%{:02X}", static_cast<unsigned char>(c));
        } else {
            text += c;
        }
    }
    return text;
}

/// The path that one in a manifest stands for.
std::string path_in_bag(std::string_view text) {
    if (text.starts_with("./")) text.remove_prefix(2);
    std::string path;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view three = text.substr(i, 3);
        const bool escaped = three == "%0A" || three == "%0a" || three == "%0D" || three == "%0d" || three == "%25";
        path += !escaped ? text[i] : three == "%25" ? '%' : three[2] == 'A' || three[2] == 'a' ? '\n' : '\r';
        if (escaped) i += 2;
    }
    return path;
}

/// Adds the files of a manifest. Throws corrupt for an invalid one.
void read_bag_manifest(const ByteSource& text, FileSorter& files) {
    constexpr std::size_t digits = 64;
    for_each_line(text, "\"SHA-256, space, a path in the bag\"", [&](std::string_view line, std::size_t number) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto sum = line.size() > digits ? parse_sum(line) : std::nullopt;
        const std::size_t name = line.find_first_not_of(" \t", std::min(digits, line.size()));
        if (!sum || name == line.npos || name == digits) return false;
        line.remove_prefix(name);
        if (line.starts_with('*')) line.remove_prefix(1);  // as md5sum and its kin mark a binary file
        ListedFile file{.path = path_in_bag(line), .sum = *sum, .origin = number};
        in_context([&] { return fmt::format("line {}", number); }, [&] { require_key(file.path); });
        files.add(file);
        return true;
    });
}

/// Adds the files of a manifest of a bag. Returns false if there is no such manifest.
bool read_bag_manifest(const PlaceView& place, std::string_view name, FileSorter& files) {
    const std::string key = place.key(name);
    const auto text = place.store.open(key);
    if (text != nullptr) {
        in_context([&] { return place.store.name_of(key); }, [&] { read_bag_manifest(*text, files); });
    } else if (std::ranges::count(place.store.list(place.prefix).prefixes, name) > 0) {
        throw corrupt("{} is a directory, where a manifest is expected", place.store.name_of(key));
    }
    return text != nullptr;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::localtime_r(&now, &date);
    return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/// Copies the files to data/NAME/ of a bag. Returns their sums by their paths in it.
FileList copy_payload(const PlaceView& place, std::string_view name, const FileList& files, KeyValueStore& bag,
                      const IoOptions& io) {
    FileList sums(spool_folder(bag));
    const std::string folder = fmt::format("data/{}", name);
    for_each_file<Sha256>(
        files, io, "copying",
        [&](const ListedFile& file, Sha256& sum) {
            const std::string key = place.key(file.path);
            const auto source = place.store.open(key);
            if (source == nullptr) {
                throw not_found("{}: gone while it was copied", place.store.name_of(key));
            }
            Hasher hasher;
            copy_bytes(*source, bag, join_key(folder, file.path),
                       [&](ByteSpan bytes) { hasher.add(bytes.data(), bytes.size()); });
            sum = hasher.finish();
        },
        [&](const ListedFile& file, const Sha256& sum) {
            sums.append({.path = join_key(folder, file.path), .sum = sum});
        });
    return sums;
}

/// Writes a manifest of sums, with paths escaped like that, to `key`.
void put_bag_manifest(KeyValueStore& bag, const std::string& key, const FileList& sums) {
    const auto sink = bag.create(key);
    FileList::Reader reader(sums);
    while (const ListedFile* const file = reader.next()) {
        const std::string line = fmt::format("{}  {}\n", hex(file->sum), bag_path(file->path));
        sink->append(std::as_bytes(std::span(line)));
    }
    sink->finish();
}

/// Returns the names of the tag files.
std::vector<std::string> write_tags(KeyValueStore& bag, const FileList& payload, const Sealed& size) {
    const std::vector<std::pair<std::string, std::string>> tags{
        {"bag-info.txt", fmt::format("Bag-Software-Agent: Tessera\nBagging-Date: {}\nPayload-Oxum: {}.{}\n", today(),
                                     size.bytes, size.files)},
        {"bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"},
    };
    std::vector<std::string> names;
    for (const auto& [name, text] : tags) {
        bag.put(name, std::as_bytes(std::span(text)));
        names.push_back(name);
    }
    put_bag_manifest(bag, std::string(bag_manifest), payload);
    names.emplace_back(bag_manifest);
    return names;
}

/// Writes parity of everything in a bag, and returns its size in bytes.
std::uint64_t seal_bag(const std::filesystem::path& bag, const Redundancy& parity, const IoOptions& io,
                       const StoreOptions& options) {
    const auto beside = SealedFileStore::of_bag(bag, options);
    return seal_with_parity(*beside, files_below(*beside), parity, {}, io);
}

/// Lists the tag files, and the parity if there is any.
void write_tag_manifest(KeyValueStore& bag, std::vector<std::string> names) {
    for (const std::string folder : {bag_seal_folder, "tessera-seal/parity"}) {
        for (const std::string& name : bag.list(folder).keys) names.push_back(join_key(folder, name));
    }
    std::ranges::sort(names);
    FileList sums(spool_folder(bag));
    for (const std::string& name : names) {
        const auto sum = sum_of(bag, name);
        if (sum) sums.append({.path = name, .sum = *sum});
    }
    put_bag_manifest(bag, std::string(bag_tag_manifest), sums);
}

}  // namespace

bool is_bag(const Listing& folder) {
    const auto holds = [](const std::vector<std::string>& names, std::string_view name) {
        return std::ranges::binary_search(names, name);
    };
    if (holds(folder.keys, "bagit.txt")) return true;
    return holds(folder.prefixes, "data") && (holds(folder.keys, bag_manifest) || holds(folder.keys, bag_tag_manifest));
}

SealState bag_state(const PlaceView& place, const IoOptions& io) {
    FileSorter files(spool_folder(place.store));
    if (!read_bag_manifest(place, bag_manifest, files)) {
        const std::string name = place.name_of(bag_manifest);
        for (const std::string& other : place.store.list(place.prefix).keys) {
            if (!other.starts_with("manifest-")) continue;
            throw unsupported("{}: is missing, and Tessera does not compute the sums of {}", name, other);
        }
        throw corrupt("{}: is missing, and so nothing says whether the files of the bag are as they were", name);
    }
    const bool has_tags = read_bag_manifest(place, bag_tag_manifest, files);
    const FileList manifest = files.sort_unique([&](const ListedFile& kept, const ListedFile& again) {
        if (again.sum == kept.sum) return;
        throw corrupt("{} has two sums in the manifests of its bag", place.name_of(kept.path));
    });
    SealState state = state_by(place, manifest, io, true);
    // No manifest lists those of tag files, and none has to list every tag file.
    std::erase_if(state.added, [&](const std::string& path) {
        const bool tag = !path.starts_with("data/");
        return tag &&
               (!has_tags || path.starts_with("tagmanifest-") || path.starts_with(std::string(bag_seal_folder) + '/'));
    });
    return state;
}

/// Counts the bytes that were copied: a file may have changed since it was listed.
static std::uint64_t size_in(const ReadableStore& copy, const FileList& files) {
    std::uint64_t bytes = 0;
    FileList::Reader reader(files);
    while (const ListedFile* const file = reader.next()) {
        const auto copied = copy.open(file->path);
        if (copied == nullptr) throw not_found("{}: gone as soon as it was copied", file->path);
        bytes += copied->size();
    }
    return bytes;
}

Sealed make_bag(const PlaceRef& at, std::string_view name, const std::filesystem::path& bag, const IoOptions& io,
                const StoreOptions& options, const std::optional<Redundancy>& parity) {
    require_local(bag, "a bag");
    const std::filesystem::path target = std::filesystem::absolute(bag).lexically_normal();
    const std::filesystem::path place = target.has_filename() ? target : target.parent_path();
    const DestinationLock building(place, options);
    if (std::filesystem::exists(status_of(place))) throw already_exists("{}: something is there already", bag.string());
    // After the lock of the bag, for which another run may wait.
    const LockedNodes locked = at.store.read_only() ? LockedNodes() : lock_settled_nodes(at);
    FileList files = files_below(at);
    Sealed size{.written = true, .outside = leave_out_stale(at, files)};
    if (files.empty()) throw not_found("{}: nothing to put in a bag", at.name());
    const std::string unfinished = hidden_name(place, "new");
    const auto parent = directory_store(place.parent_path(), options);
    BuiltDirectory directory(place.parent_path() / unfinished, options.durability);
    const auto built = directory_store(directory.path(), options);
    built->sync_later();
    const FileList sums = copy_payload(at, name, files, *built, io);
    size.files = static_cast<std::int64_t>(files.size());
    size.bytes = size_in(*built, sums);
    const std::vector<std::string> tags = write_tags(*built, sums, size);
    if (parity) size.parity_bytes = seal_bag(directory.path(), *parity, io, options);
    write_tag_manifest(*built, tags);
    built->sync();
    building.require_held();
    parent->move(unfinished, place.filename().string());
    directory.release();
    parent->sync();
    return size;
}

}  // namespace tessera
