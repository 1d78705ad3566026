// A view of a store with a batch of edits that has not taken effect yet. Private to the store module.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

#include "journal.h"
#include "lock_table.h"

namespace tessera {

/// New values are staged in a folder of the underlying store, under the batch's id and numbers; erased keys are only
/// remembered. Everything else comes from the underlying store. Thread rule: as every store.
class StagedStore final : public KeyValueStore, public LocalFiles {
public:
    /// For the array at `place`. Values of the batch `id` are staged in `folder`, which is empty or absent.
    StagedStore(Place place, std::string folder, std::uint64_t id);
    /// For reading only, with the changes of a batch that is committed but not applied. They count only while
    /// `pending`() is true, because somebody else may finish the batch at any time. Once it is false, this batch has
    /// ended, and the store is the underlying one. A staged value that is not the recorded one throws corrupt.
    StagedStore(Place place, std::string folder, const Journal& journal, std::function<bool()> pending);

    /// The changes so far, with keys relative to the array.
    [[nodiscard]] std::vector<Journal::Entry> changes() const;
    [[nodiscard]] KeyValueStore& beneath() { return *beneath_; }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override;
    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override;
    void put(std::string_view key, ByteSpan value) override;
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override;
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override;
    [[nodiscard]] bool contains(std::string_view key) const override;
    bool erase(std::string_view key) override;
    void erase_below(std::string_view prefix) override;
    [[nodiscard]] bool lists() const override { return beneath_->lists(); }
    [[nodiscard]] Listing list(std::string_view prefix) const override;
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override;
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override;
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override;
    [[nodiscard]] LocalFiles& local_files() override { return *this; }
    [[nodiscard]] const LocalFiles& local_files() const override { return *this; }
    [[nodiscard]] bool leads_back(std::string_view prefix) const override {
        return beneath_->local_files().leads_back(prefix);
    }
    [[nodiscard]] std::optional<FileId> folder_id(std::string_view prefix) const override {
        return beneath_->local_files().folder_id(prefix);
    }
    [[nodiscard]] bool is_link(std::string_view prefix) const override {
        return beneath_->local_files().is_link(prefix);
    }
    [[nodiscard]] std::string link_target(std::string_view prefix) const override {
        return beneath_->local_files().link_target(prefix);
    }
    void require_direct(std::string_view key) const override { beneath_->local_files().require_direct(key); }
    [[nodiscard]] bool read_only() const override { return read_only_; }
    [[nodiscard]] const std::string& name() const override { return beneath_->name(); }

private:
    friend class StagedSink;
    struct Change {
        Journal::Entry::Kind kind = Journal::Entry::Kind::put;
        std::uint64_t number = 0;
        ValueStamp stamp = {};  ///< as recorded; of a batch that is made now unknown yet
    };
    using Changes = std::map<std::string, Change, std::less<>>;

    [[nodiscard]] std::optional<Change> change_of(std::string_view key) const;
    /// Whether the batch is still to be applied. Asked after a staged value was found: then the value is this batch's.
    [[nodiscard]] bool counts() const;
    /// Throws corrupt if a staged value was recorded as another one.
    void require_recorded(std::string_view key, const Change& change, const ValueStamp& found) const;
    [[nodiscard]] std::string staged_key(std::uint64_t number) const;
    void staged(std::string_view key, std::uint64_t number);
    /// Whether a key is one of what the batch is over.
    [[nodiscard]] bool is_own(std::string_view key) const;
    void require_writable(std::string_view key) const;
    /// The changes directly below a prefix, by name.
    [[nodiscard]] Changes changes_below(std::string_view prefix) const;

    std::shared_ptr<KeyValueStore> beneath_;
    std::string prefix_;
    std::string folder_;
    std::uint64_t id_;
    bool read_only_ = false;
    std::function<bool()> pending_;
    mutable std::atomic<bool> ended_ = false;
    mutable std::shared_mutex mutex_;  ///< for what follows
    Changes changes_;
    std::uint64_t next_ = 0;
    LockTables locks_;
};

}  // namespace tessera
