#include <tessera/key_value_store.h>

#include <tessera/error_text.h>

#include "keys.h"

namespace tessera {

bool is_key(std::string_view key) {
    for (std::string_view rest = key;;) {
        const std::size_t slash = rest.find('/');
        const std::string_view part = rest.substr(0, slash);
        if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos) return false;
        if (slash == std::string_view::npos) return true;
        rest.remove_prefix(slash + 1);
    }
}

void require_key(std::string_view key) {
    if (is_key(key)) return;
    // The key comes last: it may contain the NUL that is the error.
    throw invalid_argument("not a key, whose parts, joined by '/', must not be empty, \".\" or \"..\": \"{}\"", key);
}

void require_prefix(std::string_view prefix) {
    if (!prefix.empty()) require_key(prefix);
}

void require_movable(std::string_view store, std::string_view from, std::string_view to) {
    require_key(from);
    require_key(to);
    const auto is_within = [](std::string_view inner, std::string_view outer) {
        return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
    };
    if (is_within(to, from) || is_within(from, to)) {
        throw invalid_argument("{}: {} cannot be moved to {}, which is {}", store, from, to,
                               from == to ? "the same place" : "a place within or above it");
    }
}

void require_size(std::string_view name, std::uint64_t size, std::uint64_t limit) {
    if (size <= limit) return;
    throw corrupt("{} has {} bytes, expected at most {}", name, size, limit);
}

bool ReadableStore::get(std::string_view key, Buffer& out, std::uint64_t limit) const {
    const auto source = open(key);
    if (!source) return false;
    require_size(source->name(), source->size(), limit);
    out.reset(static_cast<std::size_t>(source->size()));
    source->read(0, out.span());
    return true;
}

bool KeyValueStore::put_new(std::string_view key, ByteSpan value) {
    if (contains(key)) return false;
    put(key, value);
    return true;
}

bool KeyValueStore::replace(std::string_view from, std::string_view /*to*/) {
    throw unsupported("{}: {} cannot take the place of another value in this kind of store", name(), from);
}

std::optional<ValueStamp> ReadableStore::stamp(std::string_view key) const {
    const auto source = open(key);
    return source ? std::optional<ValueStamp>({.size = source->size()}) : std::nullopt;
}

StoreOptions ReadableStore::options_beside() const {
    return is_far() ? far()->options_beside() : StoreOptions{.read_only = true};
}

void ReadableStore::for_each_sum(std::string_view prefix, const EachSum& each, const EachFolder& folder) const {
    const auto with_sum = [&](std::string_view name, const ValueStamp& stamp, std::string_view md5) {
        each(name, stamp.size, md5);
    };
    if (is_far() && far()->for_each_version(prefix, with_sum, folder)) return;
    for_each(
        prefix, [&](std::string_view name, const ValueSize& size) { each(name, size(), ""); }, folder);
}

void ReadableStore::for_each_stamp(std::string_view prefix, const EachStamp& each, const EachFolder& folder) const {
    const auto with_stamp = [&](std::string_view name, const ValueStamp& stamp, std::string_view) {
        each(name, stamp);
    };
    if (is_far() && far()->for_each_version(prefix, with_stamp, folder)) return;
    for_each(
        prefix, [&](std::string_view name, const ValueSize& size) { each(name, ValueStamp{.size = size()}); }, folder);
}

std::vector<std::optional<ValueStamp>> ReadableStore::stamps(std::span<const std::string> keys) const {
    if (is_far()) return far()->stamps(keys);
    std::vector<std::optional<ValueStamp>> found;
    found.reserve(keys.size());
    for (const std::string& key : keys) found.push_back(stamp(key));
    return found;
}

bool ReadableStore::contains(std::string_view key) const {
    return open(key) != nullptr;
}

Durability durability_named(std::string_view name) {
    if (name == "none") return Durability::none;
    if (name == "commit") return Durability::commit;
    if (name == "each") return Durability::each;
    throw invalid_argument("\"{}\" is no durability; there are none, commit and each", name);
}

void KeyValueStore::move(std::string_view from, std::string_view /*to*/) {
    throw unsupported("{}: {} cannot be moved within this kind of store", name(), from);
}

std::string ReadableStore::name_of(std::string_view key) const {
    return join_key(name(), key);
}

namespace {

/// Of stores that have no files: every answer is the default one.
LocalFiles no_files;

}  // namespace

const LocalFiles& ReadableStore::local_files() const {
    return no_files;
}

LocalFiles& KeyValueStore::local_files() {
    return no_files;
}

std::string join_key(std::string_view prefix, std::string_view name) {
    if (prefix.empty()) return std::string(name);
    if (name.empty()) return std::string(prefix);
    std::string key(prefix);
    return key.append("/").append(name);
}

}  // namespace tessera
