#include <tessera/store_kind.h>

#include <tessera/error_text.h>

#include <map>
#include <mutex>
#include <utility>

#include "keys.h"
#include "lock_table.h"
#include "memory_writer.h"
#include "seal_mark.h"
#include "sorted_keys.h"
#include "versions.h"

namespace tessera {

namespace {

/// The locks of all stores of a name. Never destroyed, because threads may end later than main().
LockTables& locks_of_store(const std::string& name) {
    static std::mutex mutex;
    static auto& all = *new std::map<std::string, LockTables>;
    const std::lock_guard guard(mutex);
    return all[name];
}

/// For the functions that list sorted keys.
std::map<std::string, int, std::less<>> sorted(std::vector<std::string> keys) {
    std::map<std::string, int, std::less<>> map;
    for (std::string& key : keys) map.emplace(std::move(key), 0);
    return map;
}

}  // namespace

SimpleStore::SimpleStore(std::string name, const StoreOptions& options)
    : name_(std::move(name)), options_(options), locks_(locks_of_store(name_)) {}

void SimpleStore::require_writable(std::string_view key) const {
    require_key(key);
    if (options_.read_only) throw invalid_argument("{}: opened for reading only", full_name(key));
}

std::string SimpleStore::full_name(std::string_view key) const {
    return join_key(name_, key);
}

std::unique_ptr<ByteSource> SimpleStore::open(std::string_view key) const {
    require_key(key);
    std::optional<Buffer> value = load(key);
    return value ? memory_source(std::move(*value), full_name(key)) : nullptr;
}

void SimpleStore::put(std::string_view key, ByteSpan value) {
    require_writable(key);
    store(key, value);
}

std::unique_ptr<ByteSink> SimpleStore::create(std::string_view key) {
    require_writable(key);
    return std::make_unique<MemoryWriter>(*this, key);
}

bool SimpleStore::erase(std::string_view key) {
    require_writable(key);
    return remove(key);
}

void SimpleStore::erase_below(std::string_view prefix) {
    require_prefix(prefix);
    for (const std::string& key : keys(prefix)) erase(key);
}

bool SimpleStore::replace(std::string_view from, std::string_view to) {
    require_writable(from);
    require_writable(to);
    const std::optional<Buffer> value = load(from);
    if (!value) return false;
    store(to, *value);
    remove(from);
    return true;
}

void SimpleStore::move(std::string_view from, std::string_view to) {
    require_movable(name_, from, to);
    const std::vector<std::string> old = keys(from);
    if (old.empty()) throw not_found("moving {}: nothing is there", full_name(from));
    if (!keys(to).empty() || contains(to)) {
        throw already_exists("moving {}: {} is there already", full_name(from), to);
    }
    for (const std::string& key : old) replace(key, join_key(to, name_below(from, key)));
}

std::optional<ValueStamp> SimpleStore::stamp(std::string_view key) const {
    const auto value = open(key);
    return value ? std::optional(content_stamp(*value)) : std::nullopt;
}

bool SimpleStore::contains(std::string_view key) const {
    require_key(key);
    return size(key).has_value();
}

Listing SimpleStore::list(std::string_view prefix) const {
    require_prefix(prefix);
    return list_below(sorted(keys(prefix)), prefix);
}

void SimpleStore::for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const {
    const Listing listing = list(prefix);
    for (const std::string& name : listing.keys) {
        each(name, [&] { return size(join_key(prefix, name)).value_or(0); });
    }
    if (!folder) return;
    for (const std::string& name : listing.prefixes) folder(name, false);
}

StoreLock SimpleStore::lock(std::string_view prefix, std::uint64_t slot, LockMode mode) {
    require_prefix(prefix);
    return locks_.lock(prefix, slot, mode);
}

std::optional<StoreLock> SimpleStore::try_lock(std::string_view prefix) {
    require_prefix(prefix);
    return locks_.try_lock(prefix);
}

void SimpleStore::require_unsealed(std::string_view prefix) {
    tessera::require_unsealed({*this, prefix}, options_.break_seal);
}

std::optional<std::uint64_t> SimpleStore::size(std::string_view key) const {
    const std::optional<Buffer> value = load(key);
    return value ? std::optional<std::uint64_t>(value->size()) : std::nullopt;
}

}  // namespace tessera
