// What the specification of OCFL 1.1 demands of an object, its codes in brackets.
#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "file_list.h"
#include "keys.h"
#include "ocfl_object.h"
#include "ocfl_sidecar.h"

namespace tessera {

std::string sidecar_problem(const PlaceView& object, std::string_view folder, std::string_view algorithm,
                            std::string_view digest) {
    const std::string name = join_key(folder, fmt::format("{}.{}", ocfl_inventory_name, algorithm));
    const auto source = object.store.open(object.key(name));
    if (source == nullptr) return fmt::format("its digest, {}, is missing", name);  // [E058]
    constexpr std::uint64_t most = 1000;
    if (source->size() > most) return fmt::format("{} is no digest and a name", name);
    const Buffer bytes = read_all(*source);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    std::string_view rest = std::string_view(text).substr(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    while (rest.ends_with('\n') || rest.ends_with('\r')) rest.remove_suffix(1);
    if (end == 0 || rest != ocfl_inventory_name) return fmt::format("{} is no digest and a name", name);  // [E061]
    if (std::string_view(text).substr(0, end) == digest) return {};
    return fmt::format("is not what {} says", name);  // [E060]
}

namespace {

const EVP_MD* hash_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, const EVP_MD* (*)()>, 5> known{{{"md5", EVP_md5},
                                                                                     {"sha1", EVP_sha1},
                                                                                     {"sha256", EVP_sha256},
                                                                                     {"sha512", EVP_sha512},
                                                                                     {"blake2b-512", EVP_blake2b512}}};
    const auto* const found = std::ranges::find(known, name, &std::pair<std::string_view, const EVP_MD* (*)()>::first);
    return found == known.end() ? nullptr : found->second();
}

class ObjectCheck {
public:
    ObjectCheck(const PlaceView& place, PackageState& state)
        : place_(place), state_(state), content_(spool_folder(place.store)) {}

    void run(const IoOptions& io) {
        listing_ = place_.store.list(place_.prefix);
        check_declaration();
        root_ = inventory("");
        if (!root_) return;
        if (fmt::format("0=ocfl_object_{}", root_->spec) != declared_) {
            wrong(ocfl_inventory_name,
                  fmt::format("is of OCFL {}, and not as {} declares", root_->spec, declared_));  // [E038]
        }
        check_root();
        check_names();
        for (const auto& [name, version] : root_->versions) check_version(name);
        add_fixity();
        check_content(io);
    }

private:
    void wrong(std::string_view key, std::string text) { state_.wrong.push_back({std::string(key), std::move(text)}); }
    void note(std::string_view key, std::string text) { state_.notes.push_back({std::string(key), std::move(text)}); }

    void check_declaration() {
        std::vector<std::string> found;
        std::ranges::copy_if(listing_.keys, std::back_inserter(found),
                             [](const std::string& name) { return name.starts_with(ocfl_object_mark); });
        if (found.size() != 1) return wrong("0=ocfl_object_1.1", "an object has one such declaration");  // [E003]
        declared_ = found.front();
        const auto text = place_.store.open(place_.key(declared_));
        const std::string expected = declared_.substr(2) + "\n";
        if (text == nullptr || text->size() != expected.size() ||
            !std::ranges::equal(read_all(*text).span(), std::as_bytes(std::span(expected)))) {
            wrong(declared_, "does not hold what its name says");  // [E007]
        }
    }

    /// A storage root above, as far as the store shows it, is of no earlier version of OCFL.
    void check_root() {
        if (root_->spec == "1.0") return;
        for (std::string_view above = place_.prefix; !above.empty();) {
            above = above.substr(0, above.rfind('/') == above.npos ? 0 : above.rfind('/'));
            if (!place_.store.contains(join_key(above, "0=ocfl_1.0"))) continue;
            if (place_.store.contains(join_key(above, "0=ocfl_1.1"))) return;
            return wrong(declared_, "is later than the 0=ocfl_1.0 of the storage root");  // [E081]
        }
    }

    /// The inventory in a folder of the object; nullopt if it is no valid one, or there is none.
    std::optional<OcflInventory> inventory(const std::string& folder) {
        const std::string key = join_key(folder, ocfl_inventory_name);
        std::optional<OcflInventory> found;
        try {
            const auto text = place_.store.open(place_.key(key));
            if (text == nullptr) {
                if (folder.empty()) wrong(key, "is missing");  // [E063]
                return found;
            }
            found = parse_ocfl_inventory(*text, key, state_.notes);
            const std::string digest = digest_text(*text, found->hash());
            const std::string problem = sidecar_problem(place_, folder, found->algorithm, digest);
            if (!problem.empty()) wrong(key, problem);
            if (folder.empty()) digest_ = digest;
            if (!folder.empty() && folder == root_->head && digest != digest_) {
                wrong(key, "differs from the inventory of the object, whose last version it is of");  // [E064]
            }
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            found.reset();
            wrong(key, e.what());
        }
        return found;
    }

    void check_names() {
        const std::string sidecar = fmt::format("{}.{}", ocfl_inventory_name, root_->algorithm);
        for (const std::string& name : listing_.keys) {
            if (name == declared_ || name == ocfl_inventory_name || name == sidecar) continue;
            wrong(name, "is no file of an OCFL object");  // [E001]
        }
        for (const std::string& name : listing_.prefixes) {
            if (name == "logs" || root_->versions.contains(name)) continue;
            if (name != "extensions") {
                wrong(name, "is neither a version that the inventory has nor another folder of an OCFL object");
                continue;
            }
            const Listing below = place_.store.list(place_.key(name));
            for (const std::string& file : below.keys)
                wrong(join_key(name, file), "is no folder of an extension");  // [E067]
            for (const std::string& folder : below.prefixes) {
                if (folder.size() > 5 && folder.find_first_not_of("0123456789") == 4) continue;
                note(join_key(name, folder), "should be a registered extension");  // [W013]
            }
        }
    }

    void check_version(const std::string& name) {
        if (!std::ranges::binary_search(listing_.prefixes, name))
            return wrong(name, "this version has no folder");  // [E010]
        const Listing below = place_.store.list(place_.key(name));
        for (const std::string& file : below.keys) {
            if (file.starts_with(ocfl_inventory_name)) continue;
            wrong(join_key(name, file), "is no file of a version");  // [E015]
        }
        for (const std::string& folder : below.prefixes) {
            if (folder == root_->content) continue;
            note(join_key(name, folder), "is no folder of content");  // [W002]
        }
        if (std::ranges::binary_search(below.prefixes, root_->content)) gather(join_key(name, root_->content), 0);
        const auto old = inventory(name);
        if (old) {
            compare(name, *old);
        } else if (!std::ranges::binary_search(below.keys, ocfl_inventory_name)) {
            note(name, "should have an inventory of its own");  // [W010]
        }
    }

    void gather(const std::string& folder, int depth) {
        constexpr int deepest = 256;
        if (depth > deepest) return wrong(folder, "folders are nested too deeply");
        bool empty = true;
        std::vector<std::string> folders;
        place_.store.for_each(
            place_.key(folder),
            [&](std::string_view name, const KeyValueStore::ValueSize& size) {
                empty = false;
                content_.add({.path = join_key(folder, name), .size = size()});
            },
            [&](std::string_view name, bool /*link*/) { folders.push_back(join_key(folder, name)); });
        if (empty && folders.empty()) wrong(folder, "is an empty folder");  // [E024]
        for (const std::string& below : folders) gather(below, depth + 1);
    }

    /// Holds the inventory of a version against that of the object.
    void compare(const std::string& name, const OcflInventory& old) {
        const std::string key = join_key(name, ocfl_inventory_name);
        if (old.id != root_->id) wrong(key, "has another identifier than the object");                   // [E037]
        if (old.content != root_->content) wrong(key, "has another content directory than the object");  // [E019]
        if (old.head != name) wrong(key, fmt::format("its head is {}", old.head));                       // [E040]
        if (old.spec < spec_) wrong(key, "is of an older version of OCFL than the version before");      // [E103]
        spec_ = std::max(spec_, old.spec);
        if (spec_ > root_->spec) wrong(key, "is of a later version of OCFL than the object");
        for (const auto& [path, digest] : old.files) {
            if (!root_->files.contains(path)) {
                wrong(key, fmt::format("has {}, which the object's inventory has not", path));
            } else if (old.algorithm != root_->algorithm || root_->files.at(path) != digest) {
                more_[path].emplace_back(old.hash(), digest);
            }
        }
        for (const auto& [path, digest] : root_->files) {
            const int made = ocfl_version_number(std::string_view(path).substr(0, path.find('/')));
            if (made <= ocfl_version_number(name) && !old.files.contains(path)) {
                wrong(key, fmt::format("lacks {}, which was there", path));  // [E023]
            }
        }
        const auto paths = old.path_of_digest();
        for (const auto& [which, version] : old.versions) compare(key, which, version, paths);
    }

    void compare(const std::string& key, const std::string& which, const OcflVersion& old,
                 const std::map<std::string, std::string>& paths) {
        const auto found = root_->versions.find(which);
        if (found == root_->versions.end()) return wrong(key, fmt::format("has {}, which the object has not", which));
        const OcflVersion& now = found->second;
        const bool same = std::ranges::equal(old.state, now.state, [&](const auto& a, const auto& b) {
            const auto content = root_->files.find(paths.at(a.second));
            return a.first == b.first && content != root_->files.end() && content->second == b.second;
        });
        if (!same) wrong(key, fmt::format("tells another state of {} than the object's inventory", which));  // [E066]
        if (old.created == now.created && old.message == now.message && old.user == now.user &&
            old.address == now.address)
            return;
        note(key, fmt::format("says other things of {} than the object's inventory", which));  // [W011]
    }

    void add_fixity() {
        for (const auto& [algorithm, block] : root_->fixity.as_object()) {
            const EVP_MD* const hash = hash_named(algorithm);
            if (hash == nullptr) {
                note(ocfl_inventory_name, fmt::format("has digests of {}, which Tessera does not compute", algorithm));
                continue;
            }
            for (const auto& [digest, paths] : block.as_object()) {
                std::string folded = digest;
                std::ranges::transform(folded, folded.begin(),
                                       [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
                for (const Value& path : paths.as_array()) more_[path.as_string()].emplace_back(hash, folded);
            }
        }
    }

    void check_content(const IoOptions& io) {
        const FileList files = content_.sort();
        SealState& state = state_.files;
        std::map<std::string, std::string> missing = root_->files;
        for_each_file<char>(
            files, io, "checking an object",
            [&](const ListedFile& file, char& same) { same = is_same(file.path) ? 1 : 0; },
            [&](const ListedFile& file, char same) {
                if (missing.erase(file.path) == 0) {
                    state.added.push_back(file.path);  // [E023]
                } else if (same == 0) {
                    state.changed.push_back(file.path);  // [E092, E093]
                } else {
                    ++state.unchanged;
                }
            });
        for (const auto& [path, digest] : missing) state.missing.push_back(path);
    }

    [[nodiscard]] bool is_same(const std::string& path) const {
        const auto expected = root_->files.find(path);
        if (expected == root_->files.end()) return true;
        try {
            const auto source = place_.store.open(place_.key(path));
            if (source == nullptr || digest_text(*source, root_->hash()) != expected->second) return false;
            const auto more = more_.find(path);
            return more == more_.end() || std::ranges::all_of(more->second, [&](const auto& one) {
                       return digest_text(*source, one.first) == one.second;
                   });
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            return false;  // an unreadable file counts as changed
        }
    }

    const PlaceView& place_;
    PackageState& state_;
    FileSorter content_;
    Listing listing_;
    std::string declared_;
    std::string digest_;        ///< of the root's inventory
    std::string spec_ = "1.0";  ///< the latest of the versions so far
    std::optional<OcflInventory> root_;
    /// Digests besides those of the root's manifest, by content path.
    std::map<std::string, std::vector<std::pair<const EVP_MD*, std::string>>> more_;
};

}  // namespace

PackageState ocfl_state(const PlaceView& place, const IoOptions& io) {
    PackageState state;
    state.files.present = true;
    ObjectCheck(place, state).run(io);
    return state;
}

}  // namespace tessera
