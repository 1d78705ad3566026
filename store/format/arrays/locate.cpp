#include <tessera/block_source.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>

#include <sys/stat.h>
#include <tessera/address.h>
#include <tessera/dialect.h>
#include <tessera/place.h>

#include <algorithm>
#include <utility>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "dialects.h"
#include "directories.h"
#include "directory_store.h"
#include "keys.h"
#include "store_in_file.h"

namespace tessera {

namespace fs = std::filesystem;

std::optional<PathFacts> path_facts(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    const auto nanoseconds = [](const timespec& t) { return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec; };
    return PathFacts{.directory = S_ISDIR(status.st_mode),
                     .regular = S_ISREG(status.st_mode),
                     .id = id_of(status),
                     .size = static_cast<std::uint64_t>(status.st_size),
                     .modified = nanoseconds(status.st_mtim),
                     .changed = nanoseconds(status.st_ctim)};
}

std::optional<FileId> file_id(const fs::path& path) {
    return is_local(path) ? folder_id(path) : std::nullopt;
}

namespace {

/// Finds the store or opens the file at a path of this machine. `at.facts` are those of the path.
void look_on_disk(Located& at, const StoreOptions& options) {
    const fs::path& path = at.file.path;
    if (at.facts && at.facts->regular) {
        std::shared_ptr<const ByteSource> file = open_file(path);
        if (auto store = store_in_file(*file)) {
            at.place = Place{std::move(store), ""};
        } else {
            at.file.opened = std::move(file);
        }
    } else if (at.facts && at.facts->directory) {
        if (auto store = probe_directory_store(path, options))
            at.place = store_in_folder(std::move(store), path, options);
    } else if (!at.facts) {
        at.place = probe_place(path, options);  // inside a zip, or just being replaced
        if (at.place) at.facts = path_facts(at.place->store->name());
    }
}

PathKind kind_of_file(const Located& at) {
    if (at.format != nullptr) return at.file.member ? PathKind::part : PathKind::array_file;
    return at.facts ? PathKind::other : PathKind::nothing;
}

bool holds_nothing(const Place& place) {
    const Listing listing = place.store->list(place.prefix);
    return listing.keys.empty() && listing.prefixes.empty();
}

/// Opens a file of another kind of store, which lies at the path and not below it; returns whether there is one.
bool look_for_file(Located& at, const StoreOptions& options) {
    const std::string& text = at.file.path.native();
    const std::size_t query = text.starts_with("http") ? std::min(text.find('?'), text.size()) : text.size();
    const std::size_t slash = text.rfind('/', query);
    if (slash == std::string::npos || slash == 0 || text[slash - 1] == '/') return false;
    const Place folder = find_place(text.substr(0, slash) + text.substr(query), options);
    if (!folder.store->is_far()) return false;
    std::unique_ptr<const ByteSource> file = folder.store->open(folder.key(text.substr(slash + 1, query - slash - 1)));
    if (file == nullptr) return false;
    at.file.opened = block_source(std::move(file));
    at.format = array_file_format_of(*at.file.opened);
    if (at.format != nullptr && !at.format->ranged) {
        throw unsupported("{}: {} files are read on this machine only; fetch the file first", at.path, at.format->name);
    }
    at.kind = at.format == nullptr ? PathKind::other : at.file.member ? PathKind::part : PathKind::array_file;
    at.place = std::nullopt;
    return true;
}

/// What other programs have written into a folder of this machine that holds no array and no group.
std::optional<Place> foreign_place(const Located& at, const StoreOptions& options) {
    const bool folder = at.kind == PathKind::folder && is_local(at.file.path) && at.facts && at.facts->directory;
    if (!folder) return std::nullopt;
    Place foreign = foreign_store_in_folder(at.place->store, at.file.path, options);
    return foreign.store == at.place->store ? std::nullopt : std::optional(std::move(foreign));
}

/// Whether a path elsewhere has the name of an array file, so that a file is looked for first: it takes one request
/// where all documents of arrays and groups take more than ten.
bool is_named_as_file(const ArrayPath& path) {
    const std::string& text = path.path.native();
    return named_array_file_format(text.substr(0, text.find('?'))) != nullptr;
}

}  // namespace

void Located::look_in_place() {
    settled_ = settle_batch(*place);
    if (auto found = find_array(settled_)) {
        dialect = found->dialect;
        document_ = std::make_shared<const Buffer>(std::move(found->document));
        kind = file.member ? PathKind::part : PathKind::array;
        return;
    }
    // Copies into zips are never left unfinished.
    const bool may_be_unfinished = is_directory() || !is_local(file.path);
    if (may_be_unfinished && place->store->open(place->key(unfinished_marker_key)) != nullptr) {
        kind = PathKind::unfinished;
    } else if ((dialect = probe_group_dialect(*place)) != nullptr) {
        kind = PathKind::group;
    } else {
        kind = is_directory() || !holds_nothing(*place) ? PathKind::folder : PathKind::nothing;
    }
}

Array Located::array() const {
    if (document_ == nullptr) {
        if (place) throw absence(*place, "array");
        (void)find_place(file.path);  // throws, naming what is there
        throw not_found("{}: no array is here", path);
    }
    return ArrayAccess::open_found(settled_, *dialect, Buffer(document_->span()));
}

Located Located::look(std::string_view path, const StoreOptions& options) {
    Located at;
    at.path = path;
    std::optional<fs::path> looked;
    at.file = split_array_path(own_path(path), [&](const fs::path& part) {
        looked = part;
        at.facts = path_facts(part);
        return at.facts.has_value();
    });
    if (!is_local(at.file.path)) {
        at.facts = std::nullopt;
        if (is_named_as_file(at.file) && look_for_file(at, options)) return at;
        at.place = find_place(at.file.path, options);
    } else {
        if (looked != at.file.path) at.facts = path_facts(at.file.path);
        look_on_disk(at, options);
    }
    if (at.place) {
        at.look_in_place();
        if (auto foreign = foreign_place(at, options)) {
            at.place = std::move(foreign);
            at.look_in_place();
        }
        if (at.kind == PathKind::nothing && !is_local(at.file.path)) (void)look_for_file(at, options);
        return at;
    }
    if (at.file.opened) at.format = array_file_format_of(*at.file.opened);
    at.kind = kind_of_file(at);
    return at;
}

Located locate(std::string_view path, const StoreOptions& options) {
    return retry_when_replaced([&] { return Located::look(path, options); },
                               [](Located& at) {
                                   if (at.place && at.document_ == nullptr) require_present(*at.place);
                                   return std::move(at);
                               });
}

bool was_replaced(const Located& at) {
    if (at.place && at.is_directory()) return was_replaced(*at.place);
    return is_local(at.file.path) && file_id(at.place ? fs::path(at.place->store->name()) : at.file.path) !=
                                         (at.facts ? std::optional(at.facts->id) : std::nullopt);
}

}  // namespace tessera
