// A version of an OCFL object as a read-only store, "ocfl:ROOT::ID@v2": the logical paths are the keys.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/store_kind.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "keys.h"
#include "ocfl_object.h"
#include "read_only_store.h"
#include "sorted_keys.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

class OcflStore final : public ReadOnlyStore {
public:
    OcflStore(std::string name, const fs::path& object, OcflInventory inventory, const std::string& version)
        : name_(std::move(name)),
          files_(directory_store(object, {.read_only = true})),
          memory_(std::move(inventory.memory)) {
        const auto found = inventory.versions.find(version.empty() ? inventory.head : version);
        if (found == inventory.versions.end()) {
            throw not_found("{}: there is no version {}; the last one is {}", name_, version, inventory.head);
        }
        const auto paths = inventory.path_of_digest();
        for (const auto& [path, digest] : found->second.state) {
            if (!is_own(path)) keys_.emplace(path, paths.at(digest));
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const auto found = keys_.find(key);
        if (found == keys_.end()) return nullptr;
        auto source = files_->open(found->second);
        if (source == nullptr)
            throw corrupt("{}: its content, {}, is missing", name_of(key), files_->name_of(found->second));
        return source;
    }
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        const auto found = keys_.find(key);
        return found == keys_.end() ? std::nullopt : files_->stamp(found->second);
    }
    [[nodiscard]] bool contains(std::string_view key) const override { return keys_.contains(key); }
    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        return list_below(keys_, prefix);
    }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(keys_, prefix, each, folder, [&](const std::string& path) {
            const auto source = files_->open(path);
            return source == nullptr ? 0 : source->size();
        });
    }
    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported(
                   "{}: a version of an OCFL object is never changed; copy it, change the copy, and seal that as "
                   "the next version",
                   name_of(key))
            .advising(Action::copy, "copies it", name_);
    }

    /// Tessera's own files are not taken from objects of strangers.
    static bool is_own(std::string_view key) {
        for (std::size_t begin = 0; begin <= key.size();) {
            const std::size_t end = std::min(key.find('/', begin), key.size());
            if (is_own_name(key.substr(begin, end - begin))) return true;
            begin = end + 1;
        }
        return false;
    }

    std::string name_;
    std::shared_ptr<KeyValueStore> files_;
    MemoryHold memory_;
    std::map<std::string, std::string, std::less<>> keys_;  ///< the content path of each logical path
};

/// The parts of "ID@v2/PREFIX"; without a version the identifier is the longest that there is.
struct Parts {
    std::string id, version, prefix;
    fs::path folder;  ///< of the object, below the root
};

std::optional<Parts> versioned(const fs::path& root, std::string_view rest) {
    for (std::size_t at = rest.find("@v"); at != rest.npos; at = rest.find("@v", at + 1)) {
        const std::size_t end = std::min(rest.find('/', at), rest.size());
        const std::string_view version = rest.substr(at + 1, end - at - 1);
        if (ocfl_version_number(version) == 0) continue;
        const std::string_view id = rest.substr(0, at);
        auto folder = find_ocfl_object(root, id);
        if (!folder) continue;
        return Parts{std::string(id), std::string(version), std::string(rest.substr(std::min(end + 1, rest.size()))),
                     *folder};
    }
    return std::nullopt;
}

std::optional<Parts> latest(const fs::path& root, std::string_view rest) {
    for (std::size_t end = rest.size(); end != rest.npos && end > 0; end = rest.rfind('/', end - 1)) {
        if (auto folder = find_ocfl_object(root, rest.substr(0, end))) {
            return Parts{std::string(rest.substr(0, end)), "", std::string(rest.substr(std::min(end + 1, rest.size()))),
                         *folder};
        }
    }
    return std::nullopt;
}

Place ocfl_place(const fs::path& path, const StoreOptions& /*options*/) {
    const std::string& text = path.native();
    std::string_view rest = std::string_view(text).substr(std::string_view("ocfl:").size());
    while (rest.ends_with('/')) rest.remove_suffix(1);
    const std::size_t colons = rest.find("::");
    if (colons == rest.npos || colons == 0 || colons + 2 == rest.size()) {
        throw invalid_argument("{}: expected ocfl:ROOT::ID, perhaps with @v2, and /PATH, after it", text);
    }
    const fs::path root(rest.substr(0, colons));
    rest.remove_prefix(colons + 2);
    auto found = versioned(root, rest);
    if (!found) found = latest(root, rest);
    if (!found) throw not_found("{}: no object of that identifier is in the OCFL storage root", text);
    in_context([&] { return text; }, [&] { require_prefix(found->prefix); });
    const fs::path object = root / found->folder;
    OcflInventory inventory = read_ocfl_inventory(*directory_store(object, {.read_only = true}));
    const std::string name =
        fmt::format("ocfl:{}::{}{}", root.string(), found->id, found->version.empty() ? "" : "@" + found->version);
    return {std::make_shared<OcflStore>(name, object, std::move(inventory), found->version), found->prefix};
}

}  // namespace

extern constinit const StoreKind ocfl_kind{.scheme = "ocfl", .about = "OCFL storage roots", .place = ocfl_place};

}  // namespace tessera
