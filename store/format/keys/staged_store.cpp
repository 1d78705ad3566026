#include "staged_store.h"

#include <tessera/action.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <set>

#include "keys.h"
#include "sorted_keys.h"
#include "versions.h"

namespace tessera {

using EntryKind = Journal::Entry::Kind;

/// A value being staged; it takes effect in finish().
class StagedSink final : public ByteSink {
public:
    StagedSink(StagedStore& store, std::string_view key, std::uint64_t number)
        : store_(store), key_(key), number_(number), sink_(store.beneath_->create(store.staged_key(number))) {}
    [[nodiscard]] bool random_access() const override { return sink_->random_access(); }
    void append(ByteSpan bytes) override { sink_->append(bytes); }
    void write_at(std::uint64_t offset, ByteSpan bytes) override { sink_->write_at(offset, bytes); }
    void finish() override {
        sink_->finish();
        store_.staged(key_, number_);
    }
    [[nodiscard]] const std::string& name() const override { return sink_->name(); }

private:
    StagedStore& store_;
    std::string key_;
    std::uint64_t number_;
    std::unique_ptr<ByteSink> sink_;
};

StagedStore::StagedStore(Place place, std::string folder, std::uint64_t id)
    : beneath_(std::move(place.store)), prefix_(std::move(place.prefix)), folder_(std::move(folder)), id_(id) {}

StagedStore::StagedStore(Place place, std::string folder, const Journal& journal, std::function<bool()> pending)
    : StagedStore(std::move(place), std::move(folder), journal.id) {
    read_only_ = true;
    pending_ = std::move(pending);
    for (const Journal::Entry& entry : journal.entries) {
        changes_.insert_or_assign(join_key(prefix_, entry.key), Change{entry.kind, entry.number, entry.stamp});
    }
}

std::vector<Journal::Entry> StagedStore::changes() const {
    std::vector<Journal::Entry> entries;
    const std::shared_lock guard(mutex_);
    for (const auto& [key, change] : changes_) {
        Journal::Entry entry;
        entry.kind = change.kind;
        entry.number = change.number;
        entry.key = name_below(prefix_, key);
        if (entry.kind == EntryKind::put) {
            const auto stamp = beneath_->stamp(staged_key(entry.number));
            if (!stamp) {
                throw corrupt(
                    "{}/{}: the new value of {} was removed while the batch was being made; nothing "
                    "of it takes effect",
                    name(), staged_key(entry.number), entry.key);
            }
            entry.stamp = *stamp;
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

std::optional<StagedStore::Change> StagedStore::change_of(std::string_view key) const {
    require_key(key);
    if (ended_) return std::nullopt;
    const std::shared_lock guard(mutex_);
    const auto found = changes_.find(key);
    return found == changes_.end() ? std::nullopt : std::optional(found->second);
}

bool StagedStore::counts() const {
    if (!pending_) return true;
    if (ended_) return false;
    if (pending_()) return true;
    ended_ = true;
    return false;
}

void StagedStore::require_recorded(std::string_view key, const Change& change, const ValueStamp& found) const {
    if (!pending_ || may_be_recorded(change.stamp, found)) return;
    throw corrupt("{}: the new value of {} is not the one that the journal of its batch records",
                  join_key(name(), staged_key(change.number)), name_below(prefix_, key))
        .advising(Action::verify, "says more");
}

std::string StagedStore::staged_key(std::uint64_t number) const {
    return join_key(folder_, value_name(id_, number));
}

void StagedStore::staged(std::string_view key, std::uint64_t number) {
    std::optional<Change> before;
    {
        const std::lock_guard guard(mutex_);
        Change& change = changes_.try_emplace(std::string(key), Change{EntryKind::erase}).first->second;
        before = std::exchange(change, Change{EntryKind::put, number});
    }
    if (before->kind == EntryKind::put) beneath_->erase(staged_key(before->number));
}

bool StagedStore::is_own(std::string_view key) const {
    return prefix_.empty() ||
           (key.starts_with(prefix_) && (key.size() == prefix_.size() || key[prefix_.size()] == '/'));
}

void StagedStore::require_writable(std::string_view key) const {
    if (read_only_) {
        throw invalid_argument("changing {}: the store was opened for reading only", join_key(name(), key));
    }
    if (!is_own(key)) {
        throw invalid_argument("changing {}: the batch is over {} alone", join_key(name(), key),
                               join_key(name(), prefix_));
    }
}

// A staged value that is absent was moved to its key meanwhile, by somebody who finishes the batch.

std::unique_ptr<ByteSource> StagedStore::open(std::string_view key) const {
    const auto change = change_of(key);
    if (change && change->kind == EntryKind::put) {
        const std::string staged = staged_key(change->number);
        auto value = beneath_->open(staged);
        if (value != nullptr && pending_) {
            auto found = beneath_->stamp(staged);
            if (change->stamp.by_content && found && !found->by_content) found = content_stamp(*value);
            if (counts()) {
                require_recorded(key, *change, found.value_or(change->stamp));
            } else {
                value = nullptr;
            }
        }
        if (value != nullptr) return value;
    } else if (change && counts()) {
        return nullptr;
    }
    return beneath_->open(key);
}

bool StagedStore::get(std::string_view key, Buffer& out, std::uint64_t limit) const {
    const auto change = change_of(key);
    if (change && pending_) return KeyValueStore::get(key, out, limit);
    if (change && change->kind == EntryKind::put) {
        if (beneath_->get(staged_key(change->number), out, limit)) return true;
    } else if (change) {
        return false;
    }
    return beneath_->get(key, out, limit);
}

std::optional<ValueStamp> StagedStore::stamp(std::string_view key) const {
    const auto change = change_of(key);
    if (change && change->kind == EntryKind::put) {
        const auto stamp = beneath_->stamp(staged_key(change->number));
        if (stamp && counts()) return stamp;
    } else if (change && counts()) {
        return std::nullopt;
    }
    return beneath_->stamp(key);
}

bool StagedStore::contains(std::string_view key) const {
    const auto change = change_of(key);
    if (change && change->kind == EntryKind::put) {
        if (beneath_->contains(staged_key(change->number)) && counts()) return true;
    } else if (change && counts()) {
        return false;
    }
    return beneath_->contains(key);
}

void StagedStore::put(std::string_view key, ByteSpan value) {
    const auto sink = create(key);
    sink->append(value);
    sink->finish();
}

std::unique_ptr<ByteSink> StagedStore::create(std::string_view key) {
    require_key(key);
    require_writable(key);
    beneath_->local_files().require_direct(key);  // now, because once recorded the batch must take effect
    std::uint64_t number = 0;
    {
        const std::lock_guard guard(mutex_);
        number = next_++;
    }
    return std::make_unique<StagedSink>(*this, key, number);
}

bool StagedStore::erase(std::string_view key) {
    require_writable(key);
    const auto change = change_of(key);
    if (change && change->kind == EntryKind::erase) return false;
    beneath_->local_files().require_direct(key);
    const bool beneath = beneath_->contains(key);
    {
        const std::lock_guard guard(mutex_);
        if (beneath) {
            changes_.insert_or_assign(std::string(key), Change{EntryKind::erase, next_++});
        } else if (change) {
            changes_.erase(std::string(key));
        }
    }
    if (change) beneath_->erase(staged_key(change->number));
    return beneath || change;
}

void StagedStore::erase_below(std::string_view prefix) {
    const Listing listing = list(prefix);
    for (const std::string& name : listing.keys) erase(join_key(prefix, name));
    for (const std::string& name : listing.prefixes) erase_below(join_key(prefix, name));
}

StagedStore::Changes StagedStore::changes_below(std::string_view prefix) const {
    require_prefix(prefix);
    Changes found;
    if (ended_) return found;
    const std::shared_lock guard(mutex_);
    for_each_directly_below(changes_, prefix,
                            [&](std::string_view name, const Change& change) { found.emplace(name, change); });
    return found;
}

Listing StagedStore::list(std::string_view prefix) const {
    Listing listing = beneath_->list(prefix);
    const Changes changed = changes_below(prefix);
    std::erase_if(listing.keys, [&](const std::string& name) { return changed.contains(name); });
    for (const auto& [name, change] : changed) {
        if (contains(join_key(prefix, name))) listing.keys.push_back(name);
    }
    if (!ended_) {
        // A folder with staged values may not exist yet; one with only erased values may show as empty.
        const std::shared_lock guard(mutex_);
        for (const std::string& name : list_below(changes_, prefix).prefixes) listing.prefixes.push_back(name);
    }
    for (auto* names : {&listing.keys, &listing.prefixes}) {
        std::ranges::sort(*names);
        names->erase(std::unique(names->begin(), names->end()), names->end());
    }
    return listing;
}

void StagedStore::for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const {
    Changes changed = changes_below(prefix);
    beneath_->for_each(
        prefix,
        [&](std::string_view name, const ValueSize& size) {
            if (!changed.contains(name)) each(name, size);
        },
        nullptr);
    for (const auto& [name, change] : changed) {
        if (const auto now = stamp(join_key(prefix, name))) each(name, [size = now->size] { return size; });
    }
    if (!folder) return;
    const Listing listing = list(prefix);
    for (const std::string& name : listing.prefixes) {
        folder(name, std::ranges::binary_search(listing.links, name));
    }
}

StoreLock StagedStore::lock(std::string_view prefix, std::uint64_t slot, LockMode mode) {
    require_writable(prefix);
    return locks_.lock(prefix, slot, mode);
}

std::optional<StoreLock> StagedStore::try_lock(std::string_view prefix) {
    // Another array of the same batch is in use, whatever its locks in the store beneath say to this one.
    if (!is_own(prefix)) return std::nullopt;
    require_writable(prefix);
    return locks_.try_lock(prefix);
}

}  // namespace tessera
