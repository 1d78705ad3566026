// The document is parsed once. For each key its place is kept: text, or a file's number, an offset and a size. A file
// is opened when one of its keys is read. A few files are kept open, because many references lead to one file.
//
// A path that must stay below the folder is opened with open_beneath(), from a descriptor of that folder. So no link is
// followed, not even one that appears meanwhile. Only regular files are read.
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/action.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/file_source.h>
#include <tessera/memory_account.h>
#include <tessera/outside.h>
#include <tessera/references_within.h>
#include <tessera/store_kind.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base64.h"
#include "beneath.h"
#include "keys.h"
#include "read_only_store.h"
#include "reference_file.h"
#include "sorted_keys.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t longest_document = std::uint64_t{256} << 20;
constexpr std::size_t longest_name = 4096;
// Memory for each byte of text: at most, for the tree of parsed JSON; and for the references kept of it.
constexpr std::uint64_t parsed_bytes = 16;
constexpr std::uint64_t kept_bytes = 4;
constexpr std::size_t most_files_open = 32;

/// Where a value lies.
struct Reference {
    std::string text;        ///< the value itself, if there is no file
    std::int64_t file = -1;  ///< its number; -1: none
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    bool whole = false;  ///< all of the file
};

/// The files that references name, by their numbers, and some of them open.
class ReferencedFiles {
public:
    ReferencedFiles(const fs::path& document, bool outside, MayRead may_read)
        : outside_(outside),
          may_read_(std::move(may_read)),
          folder_(fs::absolute(document).lexically_normal().parent_path()) {
        std::error_code ignored;
        real_folder_ = fs::canonical(folder_, ignored);
        directory_ = Descriptor(open_at(AT_FDCWD, folder_.c_str(), O_RDONLY | O_DIRECTORY));
        if (!directory_) throw io_error("cannot open", folder_.string(), errno);
    }

    /// The number of a file. Throws unsupported for a path that is refused.
    std::int64_t number(const std::string& path) {
        const auto [at, fresh] = numbers_.try_emplace(path, static_cast<std::int64_t>(paths_.size()));
        if (fresh) paths_.push_back(checked(path));
        return at->second;
    }

    [[nodiscard]] std::vector<fs::path> all() const {
        std::vector<fs::path> files;
        for (const std::string& path : paths_) files.push_back(is_url(path) ? fs::path(path) : folder_ / path);
        return files;
    }

    [[nodiscard]] std::shared_ptr<const ByteSource> open(std::int64_t number) const {
        const std::lock_guard guard(mutex_);
        const auto known = std::ranges::find(open_, number, &Open::first);
        if (known != open_.end()) {
            std::rotate(open_.begin(), known, known + 1);
            return open_.front().second;
        }
        if (open_.size() == most_files_open) open_.pop_back();
        const std::string& path = paths_[static_cast<std::size_t>(number)];
        auto file = open_path(path);
        if (may_read_ && !may_read_(path, *file)) {
            throw unsupported("\"{}\" is no array file, and no chunk of an array", path)
                .advising(Action::allow_outside, "reads it");
        }
        open_.emplace(open_.begin(), number, std::move(file));
        return open_.front().second;
    }

private:
    using Open = std::pair<std::int64_t, std::shared_ptr<const ByteSource>>;

    /// The path relative to the folder, or absolute if paths may lead out of it.
    [[nodiscard]] std::string checked(const std::string& path) const {
        const auto refuse = [&](std::string_view why) { throw unsupported("\"{}\" {}", path.substr(0, 200), why); };
        if (path.find('\0') != std::string::npos) throw unsupported("what has a NUL is no path");
        if (path.empty() || path.size() > longest_name) refuse("is no path");
        if (path.find("{{") != std::string::npos) refuse("is a template, which Tessera does not fill in");
        if (is_url(path)) {
            if (outside_) return path;
            throw unsupported("\"{}\" is a URL, and does not lie below {}, the folder of the references",
                              path.substr(0, std::min<std::size_t>(path.find('?'), 200)), folder_.string())
                .advising(Action::allow_outside, "lets it");
        }
        const fs::path given = path;
        if (outside_) return (folder_ / given).string();
        const fs::path normal = given.lexically_normal();
        for (const fs::path& folder : {folder_, real_folder_}) {
            const fs::path below = normal.is_absolute() && !folder.empty() ? normal.lexically_relative(folder) : normal;
            if (!below.empty() && below != "." && *below.begin() != ".." && !below.is_absolute() &&
                std::ranges::find(given, "..") == given.end()) {
                if (is_hidden(below)) {
                    throw unsupported("\"{}\" is hidden: references do not lead to such files", path.substr(0, 200))
                        .advising(Action::allow_outside, "lets them");
                }
                return below.string();
            }
        }
        throw unsupported("\"{}\" does not lie below {}, the folder of the references", path.substr(0, 200),
                          folder_.string())
            .advising(Action::allow_outside, "lets it");
    }

    static bool is_hidden(const fs::path& below) {
        constexpr std::array documents{v2_array_name, v2_group_name, v2_attributes_name, v2_consolidated_name};
        return std::ranges::any_of(below, [&](const fs::path& part) { return part.native().starts_with('.'); }) &&
               (std::ranges::count(documents, below.filename().native()) == 0 || is_hidden(below.parent_path()));
    }

    static bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

    /// A value of another kind of store, one version of it.
    static std::shared_ptr<const ByteSource> open_url(const std::string& url) {
        const std::size_t query = url.starts_with("http") ? std::min(url.find('?'), url.size()) : url.size();
        const std::size_t slash = url.rfind('/', query);
        const std::string folder = url.substr(0, slash) + url.substr(query);
        const Place place = store_kind_of(folder).place(folder, {.read_only = true});
        std::shared_ptr<const ByteSource> value =
            place.store->open(place.key(url.substr(slash + 1, query - slash - 1)));
        if (value == nullptr) {
            throw corrupt("{}: references lead to this file, and it is not there", url.substr(0, query));
        }
        return value;
    }

    [[nodiscard]] std::shared_ptr<const ByteSource> open_path(const std::string& path) const {
        if (is_url(path)) return open_url(path);
        const std::string full = (folder_ / path).string();
        constexpr int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
        Descriptor fd(outside_ ? open_at(AT_FDCWD, path.c_str(), flags)
                               : open_beneath(directory_.get(), path.c_str(), flags));
        if (!fd && errno == ELOOP && !outside_) {
            throw unsupported("{}: references do not lead through symbolic links", full)
                .advising(Action::allow_outside, "lets them");
        }
        if (!fd && is_absent(errno)) {
            throw corrupt("{}: references lead to this file, and it is not there", full);
        }
        struct stat status {};
        if (!fd || ::fstat(fd.get(), &status) != 0) throw io_error("cannot open", full, errno);
        if (!S_ISREG(status.st_mode)) {
            throw corrupt("{} is {}, and not a regular file", full, kind_text(status.st_mode));
        }
        return std::make_shared<FileSource>(std::move(fd), static_cast<std::uint64_t>(status.st_size), full);
    }

    bool outside_;
    MayRead may_read_;  ///< null: any
    fs::path folder_;
    fs::path real_folder_;
    Descriptor directory_;
    std::map<std::string, std::int64_t, std::less<>> numbers_;
    std::vector<std::string> paths_;
    mutable std::mutex mutex_;
    mutable std::vector<Open> open_;  ///< the last used first
};

class ReferenceStore final : public ReadOnlyStore {
public:
    ReferenceStore(const fs::path& path, const Value& document, std::uint64_t size, const ReferenceOptions& options,
                   MayRead may_read)
        : name_(path.string()), memory_(size * kept_bytes), files_(path, options.allow_outside, std::move(may_read)) {
        for (const char* generator : {"templates", "gen"}) {
            const Value* found = document.find(generator);
            const bool empty = found == nullptr || found->is_null() ||
                               (found->is_object() && found->as_object().empty()) ||
                               (found->is_array() && found->as_array().empty());
            if (!empty) throw unsupported("\"{}\" is not read: write its references out", generator);
        }
        for (const auto& [key, value] : document.at("refs").as_object()) {
            in_context([&key = key] { return fmt::format("reference \"{}\"", key); },
                       [&, &key = key, &value = value] {
                           require_key(key);
                           if (key.size() > longest_name) throw corrupt("a key of so many bytes is none");
                           if (!is_own(key)) references_.insert_or_assign(key, parse(value));
                       });
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const auto found = references_.find(key);
        if (found == references_.end()) return nullptr;
        const Reference& at = found->second;
        const std::string name = join_key(name_, key);
        if (at.file < 0) return memory_source(Buffer(std::as_bytes(std::span(at.text))), name);
        const auto file = files_.open(at.file);
        const std::uint64_t offset = at.whole ? 0 : at.offset;
        const std::uint64_t size = at.whole ? file->size() : at.size;
        if (offset > file->size() || size > file->size() - offset) {
            throw corrupt(
                "{}: expected {} bytes at offset {} of {}, which has {} bytes: write the "
                "references anew",
                name, size, offset, file->name(), file->size());
        }
        return slice_source(file, offset, size, name);
    }
    [[nodiscard]] std::vector<fs::path> files() const { return files_.all(); }
    [[nodiscard]] bool contains(std::string_view key) const override { return references_.contains(key); }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        return list_below(references_, prefix);
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(references_, prefix, each, folder, [&](const Reference& at) { return size_of(at); });
    }

    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported("{}: references are never changed; copy the array and change the copy", join_key(name_, key))
            .advising(Action::copy, "copies it", name_);
    }

    [[nodiscard]] std::uint64_t size_of(const Reference& at) const {
        if (at.file < 0) return at.text.size();
        return at.whole ? files_.open(at.file)->size() : at.size;
    }

    /// Tessera's own files are not taken from references, which may come from an untrusted sender.
    static bool is_own(std::string_view key) {
        for (;;) {
            const std::size_t slash = key.find('/');
            if (is_own_name(key.substr(0, slash))) return true;
            if (slash == std::string_view::npos) return false;
            key.remove_prefix(slash + 1);
        }
    }

    Reference parse(const Value& value) {
        if (value.is_string()) return parse_text(value.as_string());
        const bool fits = value.is_array() && (value.as_array().size() == 1 || value.as_array().size() == 3) &&
                          value.as_array()[0].is_string();
        if (!fits) {
            throw corrupt("expected text, [file] or [file, offset, size], found {}", value.kind_name());
        }
        const Value::Array& parts = value.as_array();
        Reference at{.text = {}, .file = files_.number(parts[0].as_string()), .whole = parts.size() == 1};
        if (at.whole) return at;
        at.offset = parts[1].as_uint64();
        at.size = parts[2].as_uint64();
        if (at.size > UINT64_MAX - at.offset) throw corrupt("its bytes end beyond any file");
        return at;
    }

    /// The decoder passes over other characters, and over what follows the padding, as Python's does. Here these are
    /// bytes of a chunk that were lost.
    static void require_base64(std::string_view text) {
        const std::size_t digits = std::min(text.find_first_not_of(base64_alphabet), text.size());
        const std::size_t end = std::min(text.find_first_not_of('=', digits), text.size());
        if (end == text.size()) return;
        throw corrupt("its base64 is broken at character {}: {}", end + 1,
                      end > digits ? "something follows the padding" : "it is none of base64's");
    }

    static Reference parse_text(const std::string& text) {
        constexpr std::string_view mark = "base64:";
        if (!text.starts_with(mark)) return {.text = text};
        const std::string_view encoded = std::string_view(text).substr(mark.size());
        require_base64(encoded);
        const auto bytes = base64_decode(encoded);
        if (!bytes) throw corrupt("its text is no base64");
        return {.text = {reinterpret_cast<const char*>(bytes->data()), bytes->size()}};
    }

    std::string name_;
    MemoryHold memory_;
    ReferencedFiles files_;
    std::map<std::string, Reference, std::less<>> references_;
};

/// Whether the first character after white space, within the first bytes, is '{'.
bool begins_as_object(const ByteSource& file) {
    const Buffer first = read_range(file, 0, std::min<std::uint64_t>(file.size(), 64));
    const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    return at != std::string_view::npos && text[at] == '{';
}

/// Returns nullptr for JSON without references; if they are `wanted`, or the name says that they are there, throws
/// corrupt.
std::shared_ptr<KeyValueStore> open_references(const fs::path& path, const ReferenceOptions& options, bool wanted,
                                               MayRead may_read = nullptr) {
    const auto file = open_file(path);
    wanted = wanted || path.string().ends_with(".refs.json");
    if (!wanted && !begins_as_object(*file)) return nullptr;
    require_size(path.string(), file->size(), longest_document);
    MemoryHold parsing(file->size() * parsed_bytes);
    const Buffer text = read_all(*file);
    const std::string_view json(reinterpret_cast<const char*>(text.data()), text.size());
    Value document;
    try {
        document = Value::parse(json);
    } catch (const Error& e) {
        if (!wanted && json.find("\"refs\"") == std::string_view::npos) return nullptr;
        const bool broken = e.code() != ErrorCode::budget;
        throw e.within(path.string() + (broken ? ": a file of references whose JSON is broken" : ""));
    }
    const Value* refs = document.is_object() ? document.find("refs") : nullptr;
    if (refs == nullptr || !refs->is_object()) {
        if (!wanted) return nullptr;
        throw corrupt("{}: no references: expected an object with \"version\" and \"refs\"", path.string());
    }
    const Value* version = document.find("version");
    if (version == nullptr || *version != Value(1)) {
        throw unsupported("{}: references of version {}, expected 1", path.string(),
                          version == nullptr ? "null" : version->dump());
    }
    return in_context(
        [&] { return path.string(); },
        [&] { return std::make_shared<ReferenceStore>(path, document, text.size(), options, std::move(may_read)); });
}

}  // namespace

std::vector<fs::path> referenced_files(const ReadableStore& store) {
    const auto* const references = dynamic_cast<const ReferenceStore*>(&store);
    return references == nullptr ? std::vector<fs::path>() : references->files();
}

std::shared_ptr<KeyValueStore> reference_store(const fs::path& path, const ReferenceOptions& options) {
    return open_references(path, options, true);
}

std::shared_ptr<KeyValueStore> reference_store(const fs::path& path, MayRead may_read) {
    return open_references(path, {}, true, std::move(may_read));
}

std::shared_ptr<KeyValueStore> probe_reference_store(const fs::path& path) {
    if (path.extension() != ".json") return nullptr;
    return open_references(path, {.allow_outside = outside_allowed()}, false);
}

}  // namespace tessera
