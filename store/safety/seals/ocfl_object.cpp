#include "ocfl_object.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "directories.h"
#include "keys.h"
#include "ocfl_sidecar.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// Layouts of folders named by a digest's first digits, and then by the identifier or by the whole digest.
constexpr std::string_view id_layout = "0003-hash-and-id-n-tuple-storage-layout";
constexpr std::string_view digest_layout = "0004-hashed-n-tuple-storage-layout";

std::optional<Value> json_at(const fs::path& path) {
    if (!fs::exists(status_of(path))) return std::nullopt;
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    const auto file = open_file(path);
    if (file->size() > most) throw corrupt("{}: more than 1 MiB", path.string());
    const Buffer bytes = read_all(*file);
    return in_context([&] { return path.string(); },
                      [&] {
                          return Value::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
                      });
}

/// A member of a layout's configuration, or what the extension takes without one.
std::uint64_t setting(const std::optional<Value>& config, std::string_view name, std::uint64_t usual) {
    const Value* const value = config && config->is_object() ? config->find(name) : nullptr;
    return value == nullptr ? usual : value->as_uint64();
}

bool names_object(const fs::path& folder, std::string_view id) {
    const auto store = directory_store(folder, {.read_only = true});
    std::vector<PackageRemark> ignored;
    const auto text = store->open(ocfl_inventory_name);
    if (text == nullptr) return false;
    try {
        return parse_ocfl_inventory(*text, "", ignored).id == id;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::invalid_argument) throw;
        return false;
    }
}

bool is_object(const fs::path& folder) {
    std::error_code error;
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        if (at->path().filename().native().starts_with(ocfl_object_mark)) return true;
    }
    return false;
}

void require_root(const fs::path& root) {
    for (const char* const mark : {"0=ocfl_1.0", "0=ocfl_1.1"}) {
        if (fs::exists(status_of(root / mark))) return;
    }
    throw not_found("{}: no OCFL storage root: there is no 0=ocfl_1.1", root.string());
}

}  // namespace

namespace {

/// The identifier as layout 0003 spells it.
std::string encoded_id(std::string_view id, const std::string& digest) {
    constexpr std::size_t longest = 100;
    std::string text;
    for (const char c : id) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        text += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return text.size() <= longest ? text : text.substr(0, longest) + '-' + digest;
}

/// The layout that a root names; of a new root, and of one that names none, that of new ones.
std::string layout_of(const fs::path& root) {
    const auto layout = json_at(root / "ocfl_layout.json");
    if (!layout) return std::string(id_layout);
    const Value* const name = layout->is_object() ? layout->find("extension") : nullptr;
    if (name != nullptr && (*name == Value(id_layout) || *name == Value(digest_layout))) return name->as_string();
    throw unsupported(
        "{}: its layout is {}: Tessera adds versions to the objects that are there, and makes new ones in "
        "the layouts {} and {}",
        root.string(), name == nullptr ? "not known" : name->dump(), id_layout, digest_layout);
}

}  // namespace

fs::path ocfl_folder(const fs::path& root, std::string_view id) {
    const std::string layout = layout_of(root);
    const auto config = json_at(root / "extensions" / layout / "config.json");
    const Value* const algorithm = config && config->is_object() ? config->find("digestAlgorithm") : nullptr;
    const EVP_MD* const hash =
        algorithm == nullptr ? EVP_sha256() : EVP_get_digestbyname(algorithm->as_string().c_str());
    if (hash == nullptr) throw unsupported("{}: its layout's digests are {}", root.string(), algorithm->dump());
    const std::string digest = digest_text(id, hash);
    const std::uint64_t size = setting(config, "tupleSize", 3);
    const std::uint64_t count = setting(config, "numberOfTuples", 3);
    if (size > digest.size() || count > digest.size() || size * count > digest.size()) {
        throw corrupt("{}: {} tuples of {} digits are more than a digest has", root.string(), count, size);
    }
    fs::path folder;
    for (std::uint64_t i = 0; i < count; ++i) folder /= digest.substr(i * size, size);
    if (layout == id_layout) return folder / encoded_id(id, digest);
    const Value* const brief = config && config->is_object() ? config->find("shortObjectRoot") : nullptr;
    const bool is_short = brief != nullptr && brief->is_bool() && brief->as_bool();
    return folder / (is_short ? digest.substr(size * count) : digest);
}

std::optional<fs::path> find_ocfl_object(const fs::path& root, std::string_view id) {
    require_root(root);
    try {
        fs::path usual = ocfl_folder(root, id);
        const fs::path there = root / usual;
        if (fs::is_directory(status_of(there))) {
            if (names_object(there, id)) return usual;
            if (is_object(there) || fs::exists(status_of(there / ocfl_inventory_name))) {
                throw corrupt("{}: its inventory is missing, damaged or of another object than {}", there.string(), id);
            }
        }
        if (fs::exists(status_of(root / "ocfl_layout.json"))) return std::nullopt;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported) throw;
    }
    // Another layout, or none that is said: it is looked for.
    constexpr std::size_t longest_path = 3500;  // a file in a folder of a longer one has no path that opens
    std::error_code error;
    fs::recursive_directory_iterator at(root, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
        if (at->path().native().size() > longest_path) at.disable_recursion_pending();
        std::error_code ignored;
        if (at->is_symlink(ignored) || !at->is_directory(ignored) || !is_object(at->path())) continue;
        at.disable_recursion_pending();
        if (names_object(at->path(), id)) return at->path().lexically_relative(root);
    }
    if (error) throw io_error("cannot list", root.string(), error.value());
    return std::nullopt;
}

std::string ocfl_root_spec(const fs::path& root) {
    return fs::exists(status_of(root / "0=ocfl_1.1")) ? "1.1" : "1.0";
}

OcflInventory read_ocfl_inventory(const PlaceView& object) {
    return in_context([&] { return object.name_of(ocfl_inventory_name); },
                      [&] {
                          const auto text = object.store.open(object.key(ocfl_inventory_name));
                          if (text == nullptr) throw corrupt("is missing");
                          std::vector<PackageRemark> ignored;
                          OcflInventory found = parse_ocfl_inventory(*text, "", ignored);
                          const std::string why =
                              sidecar_problem(object, "", found.algorithm, digest_text(*text, found.hash()));
                          if (!why.empty()) throw corrupt("{}", why);
                          return found;
                      });
}

}  // namespace tessera
