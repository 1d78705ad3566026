// The document is parsed once. For each key its place is kept: text, or a file's number, an offset and a size. A file
// is opened when one of its keys is read.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/outside.h>
#include <tessera/references_within.h>
#include <tessera/store_kind.h>
#include <tessera/value.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base64.h"
#include "keys.h"
#include "reference_file.h"
#include "referenced_files.h"
#include "sorted_keys.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t longest_document = std::uint64_t{256} << 20;
// Memory for each byte of text: at most, for the tree of parsed JSON; and for the references kept of it.
constexpr std::uint64_t parsed_bytes = 16;
constexpr std::uint64_t kept_bytes = 4;

class ReferenceStore final : public StoreOfReferences {
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
                           if (key.size() > longest_reference) throw corrupt("a key of so many bytes is none");
                           if (!has_own_name(key)) references_.insert_or_assign(key, parse(value));
                       });
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        const auto found = references_.find(key);
        if (found == references_.end()) return nullptr;
        return files_.open(found->second, join_key(name_, key));
    }
    [[nodiscard]] std::vector<fs::path> files() const override { return files_.all(); }
    [[nodiscard]] bool contains(std::string_view key) const override { return references_.contains(key); }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        return list_below(references_, prefix);
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        for_each_value_below(references_, prefix, each, folder,
                             [&](const Reference& at) { return files_.size_of(at); });
    }

    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[nodiscard]] Error refusal(std::string_view key) const override {
        require_prefix(key);
        return unsupported("{}: references are never changed; copy the array and change the copy", join_key(name_, key))
            .advising(Action::copy, "copies it", name_);
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
    const auto* const references = dynamic_cast<const StoreOfReferences*>(&store);
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
