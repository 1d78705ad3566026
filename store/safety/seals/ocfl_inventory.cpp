#include "ocfl_inventory.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "copy_bytes.h"
#include "keys.h"
#include "sha256.h"

namespace tessera {

namespace {

std::string finished(AnyHasher& hasher, const EVP_MD* hash) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    const auto digits = std::span(sum).first(static_cast<std::size_t>(EVP_MD_size(hash)));
    hasher.finish(digits);
    std::string text;
    for (const unsigned char byte : digits) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    return text;
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

const Value& required_member(const Value& object, std::string_view name, std::string_view of) {
    const Value* const value = object.find(name);
    if (value == nullptr) throw corrupt("{} has no \"{}\"", of, name);
    return *value;
}

const std::string& required_text(const Value& object, std::string_view name, std::string_view of) {
    const Value& value = required_member(object, name, of);
    if (!value.is_string() || value.as_string().empty()) throw corrupt("\"{}\" of {} is no text", name, of);
    return value.as_string();
}

const Value::Object& required_object(const Value& object, std::string_view name, std::string_view of) {
    const Value& value = required_member(object, name, of);
    if (!value.is_object()) throw corrupt("\"{}\" of {} is no object", name, of);
    return value.as_object();
}

/// RFC 3339, to the second, with a zone.
bool is_time(std::string_view text) {
    constexpr std::string_view form = "dddd-dd-ddTdd:dd:dd";
    const auto fits = [&](std::string_view part, std::string_view pattern) {
        return part.size() == pattern.size() && std::ranges::equal(part, pattern, [](char c, char p) {
                   return p == 'd' ? c >= '0' && c <= '9' : c == p;
               });
    };
    if (text.size() < form.size() || !fits(text.substr(0, form.size()), form)) return false;
    text.remove_prefix(form.size());
    if (text.starts_with('.')) {
        const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
        if (end == 1) return false;
        text.remove_prefix(end);
    }
    return text == "Z" || fits(text, "+dd:dd") || fits(text, "-dd:dd");
}

/// Whether a text begins with a scheme and ':'.
bool is_uri(std::string_view text) {
    const std::size_t colon = text.find(':');
    return colon != text.npos && colon > 0 && colon + 1 < text.size() &&
           text.substr(0, colon).find_first_of("/ ") == text.npos;
}

/// Digests by path, as in a manifest, a state or a block of fixity: none twice, and no path below another.
std::map<std::string, std::string> paths_of(const Value::Object& block, std::string_view of) {
    constexpr std::size_t longest_path = 4096;  // of a file system
    std::map<std::string, std::string> found;
    std::set<std::string> digests;
    for (const auto& [digest, paths] : block) {
        const std::string folded = lower(digest);
        if (!digests.insert(folded).second) throw corrupt("{} has the digest {} twice", of, folded);
        if (!paths.is_array() || paths.as_array().empty()) throw corrupt("{}: no list of paths for {}", of, folded);
        for (const Value& path : paths.as_array()) {
            if (!path.is_string()) throw corrupt("{}: a path of {} is no text", of, folded);
            if (path.as_string().size() > longest_path) throw corrupt("{}: a path of {} is too long", of, folded);
            in_context([&] { return std::string(of); }, [&] { require_key(path.as_string()); });
            if (found.emplace(path.as_string(), folded).second) continue;
            throw corrupt("{} has the path {} twice", of, path.as_string());
        }
    }
    for (const auto& [path, digest] : found) {
        for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
            if (!found.contains(path.substr(0, slash))) continue;
            throw corrupt("{} has {} as a file and as a folder", of, path.substr(0, slash));
        }
    }
    return found;
}

class InventoryReader {
public:
    InventoryReader(const Value& document, const std::string& key, std::vector<PackageRemark>& notes)
        : document_(document), key_(key), notes_(notes) {}

    OcflInventory read() {
        if (!document_.is_object()) throw corrupt("is no JSON object");
        read_head();
        read_files();
        read_versions();
        read_fixity();
        return std::move(found_);
    }

private:
    void note(std::string text) { notes_.push_back({key_, std::move(text)}); }

    void read_head() {
        constexpr std::array<std::string_view, 8> known{"id",       "type",     "digestAlgorithm",  "head",
                                                        "manifest", "versions", "contentDirectory", "fixity"};
        for (const auto& [name, value] : document_.as_object()) {
            if (std::ranges::count(known, name) == 0) throw corrupt("\"{}\" is no member of an inventory", name);
        }
        found_.id = required_text(document_, "id", whole);
        if (!is_uri(found_.id)) note(fmt::format("the identifier {} should be a URI", found_.id));
        const std::string& type = required_text(document_, "type", whole);
        if (type != "https://ocfl.io/1.0/spec/#inventory" && type != "https://ocfl.io/1.1/spec/#inventory") {
            throw corrupt("its type {} is that of no known version of OCFL", type);
        }
        found_.spec = type.substr(std::string_view("https://ocfl.io/").size(), 3);
        found_.algorithm = required_text(document_, "digestAlgorithm", whole);
        if (found_.algorithm != "sha512" && found_.algorithm != "sha256") {
            throw corrupt("its digest algorithm is {}, and not sha512 or sha256", found_.algorithm);
        }
        if (found_.algorithm == "sha256") note("the digests should be sha512");
        found_.head = required_text(document_, "head", whole);
        if (document_.find("contentDirectory") == nullptr) return;
        found_.names_content = true;
        found_.content = required_text(document_, "contentDirectory", whole);
        if (found_.content.find('/') == std::string::npos && found_.content != "." && found_.content != "..") return;
        throw corrupt("its content directory {} is no name", found_.content);
    }

    void read_files() {
        found_.files = paths_of(required_object(document_, "manifest", whole), "the manifest");
        for (const auto& [path, digest] : found_.files) {
            const std::string_view name = path;
            const std::string_view below = name.substr(std::min(name.find('/'), name.size()));
            if (ocfl_version_number(name.substr(0, name.find('/'))) == 0 ||
                !below.starts_with(fmt::format("/{}/", found_.content))) {
                throw corrupt("the manifest has {}, which is in the content of no version", path);
            }
        }
    }

    void read_versions() {
        const Value::Object& versions = required_object(document_, "versions", whole);
        std::set<std::string> unused;
        for (const auto& [path, digest] : found_.files) unused.insert(digest);
        for (const auto& [name, value] : versions) {
            if (ocfl_version_number(name) == 0) throw corrupt("\"{}\" is no version", name);
            if (!value.is_object()) throw corrupt("version {} is no object", name);
            require_known(value, name);
            OcflVersion version = read_version(value, fmt::format("version {}", name));
            for (const auto& [path, digest] : version.state) unused.erase(digest);
            found_.versions.emplace(name, std::move(version));
        }
        if (!unused.empty()) throw corrupt("the manifest has {}, which no version uses", *unused.begin());
        require_sequence();
    }

    /// Digests are spelled as in the manifest, in capitals or not.
    void require_known(const Value& version, const std::string& name) const {
        const Value& manifest = required_member(document_, "manifest", whole);
        if (spelled_.empty()) {
            for (const auto& [digest, paths] : manifest.as_object()) spelled_.insert(digest);
        }
        for (const auto& [digest, paths] : required_object(version, "state", fmt::format("version {}", name))) {
            if (!spelled_.contains(digest)) throw corrupt("version {}: {} is not in the manifest", name, digest);
        }
    }

    void require_sequence() {
        std::string at;
        for (std::size_t n = 0; n < found_.versions.size(); ++n) {
            // Names without zeros are not in the order of the versions.
            const std::string& first = found_.versions.begin()->first;
            at = n > 0 ? next_ocfl_version(at) : first.starts_with("v0") ? first : "v1";
            if (found_.versions.contains(at) && ocfl_version_number(at) == static_cast<int>(n) + 1) continue;
            throw corrupt("its versions are not 1 to {}, named alike: there is no {}", found_.versions.size(), at);
        }
        if (found_.head != at)
            throw corrupt("its head is {}, and its last version {}", found_.head, at.empty() ? "none" : at);
        if (at.starts_with("v0")) note("version numbers should not begin with zeros");
    }

    OcflVersion read_version(const Value& value, const std::string& of) {
        OcflVersion version;
        version.created = required_text(value, "created", of);
        version.state = paths_of(required_object(value, "state", of), of);
        if (!is_time(version.created)) throw corrupt("{}: {} is no time with seconds and a zone", of, version.created);
        if (const Value* const message = value.find("message")) {
            if (!message->is_string()) throw corrupt("{}: its message is no text", of);
            version.message = message->as_string();
        }
        const Value* const user = value.find("user");
        if (version.message.empty() || user == nullptr) note(fmt::format("{} should have a message and a user", of));
        if (user == nullptr) return version;
        if (!user->is_object()) throw corrupt("{}: its user is no object", of);
        version.user = required_text(*user, "name", of);
        const Value* const address = user->find("address");
        if (address != nullptr && address->is_string()) version.address = address->as_string();
        if (!version.address.empty() && !is_uri(version.address))
            note(fmt::format("{}: its user should have a URI as the address", of));
        return version;
    }

    void read_fixity() {
        const Value* const fixity = document_.find("fixity");
        if (fixity == nullptr) return;
        if (!fixity->is_object()) throw corrupt("\"fixity\" is no object");
        for (const auto& [algorithm, block] : fixity->as_object()) {
            if (!block.is_object()) throw corrupt("\"fixity\" of {} is no object", algorithm);
            for (const auto& [path, digest] : paths_of(block.as_object(), fmt::format("\"fixity\" of {}", algorithm))) {
                if (!found_.files.contains(path))
                    throw corrupt("\"fixity\" has {}, which is not in the manifest", path);
            }
        }
        found_.fixity = *fixity;
    }

    static constexpr std::string_view whole = "the inventory";
    const Value& document_;
    const std::string& key_;
    std::vector<PackageRemark>& notes_;
    mutable std::set<std::string> spelled_;  ///< the manifest's digests as they are
    OcflInventory found_;
};

/// Digests by path as an object of lists of paths.
Value block_of(const std::map<std::string, std::string>& paths) {
    std::map<std::string, Value::Array> by_digest;
    for (const auto& [path, digest] : paths) by_digest[digest].emplace_back(path);
    Value::Object block;
    for (auto& [digest, list] : by_digest) block.emplace_back(digest, Value(std::move(list)));
    return Value(std::move(block));
}

}  // namespace

std::string digest_text(const ByteSource& bytes, const EVP_MD* hash) {
    AnyHasher hasher(hash);
    for_each_piece(bytes, [&](ByteSpan piece) { hasher.add(piece.data(), piece.size()); });
    return finished(hasher, hash);
}

std::string digest_text(std::string_view bytes, const EVP_MD* hash) {
    AnyHasher hasher(hash);
    hasher.add(bytes.data(), bytes.size());
    return finished(hasher, hash);
}

std::map<std::string, std::string> OcflInventory::path_of_digest() const {
    std::map<std::string, std::string> found;
    for (const auto& [path, digest] : files) found.emplace(digest, path);
    return found;
}

const EVP_MD* OcflInventory::hash() const {
    return algorithm == "sha256" ? EVP_sha256() : EVP_sha512();
}

int ocfl_version_number(std::string_view name) {
    if (!name.starts_with('v') || name.size() < 2 || name.size() > 9) return 0;
    int number = 0;
    for (const char c : name.substr(1)) {
        if (c < '0' || c > '9') return 0;
        number = 10 * number + (c - '0');
    }
    return number;
}

std::string next_ocfl_version(const std::string& head) {
    const std::string number = std::to_string(ocfl_version_number(head) + 1);
    if (!head.starts_with("v0")) return "v" + number;
    if (number.size() + 1 >= head.size()) throw unsupported("after {} there is no version of as many digits", head);
    return "v" + std::string(head.size() - 1 - number.size(), '0') + number;
}

OcflInventory parse_ocfl_inventory(const ByteSource& text, const std::string& key, std::vector<PackageRemark>& notes) {
    constexpr std::uint64_t parsed_bytes = 16;  // memory for each byte of text, at most
    MemoryHold memory(text.size() * parsed_bytes);
    const Buffer bytes = read_all(text);
    const Value document = Value::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    OcflInventory found = InventoryReader(document, key, notes).read();
    found.memory = std::move(memory);
    return found;
}

std::string ocfl_inventory_text(const OcflInventory& inventory) {
    Value document = Value::object();
    document.set("id", inventory.id);
    document.set("type", fmt::format("https://ocfl.io/{}/spec/#inventory", inventory.spec));
    document.set("digestAlgorithm", inventory.algorithm);
    document.set("head", inventory.head);
    if (inventory.names_content) document.set("contentDirectory", inventory.content);
    document.set("manifest", block_of(inventory.files));
    Value::Object versions;
    for (const auto& [name, version] : inventory.versions) {
        Value one = Value::object();
        one.set("created", version.created);
        if (!version.message.empty()) one.set("message", version.message);
        if (!version.user.empty()) {
            Value user = Value::object();
            user.set("name", version.user);
            if (!version.address.empty()) user.set("address", version.address);
            one.set("user", std::move(user));
        }
        one.set("state", block_of(version.state));
        versions.emplace_back(name, std::move(one));
    }
    document.set("versions", Value(std::move(versions)));
    if (!inventory.fixity.as_object().empty()) document.set("fixity", inventory.fixity);
    return document.dump({.indent = 2}) + "\n";
}

}  // namespace tessera
