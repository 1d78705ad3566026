// Changes of values over HTTP on the condition that they are still what was read. Private to the store module.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/key_value_store.h>

#include "remote_writer.h"

namespace tessera {

/// The changes of one store that are going on. Thread rule: every member may be called from several threads at once.
class RemoteChanges {
public:
    /// `place` is the store's name.
    RemoteChanges(const RemoteService& service, const RemoteWriter& writer, std::string place)
        : service_(service), writer_(writer), place_(std::move(place)) {}

    /// See KeyValueStore::begin_change(). This must outlive it.
    [[nodiscard]] std::unique_ptr<ValueChange> begin(std::string_view key);
    [[nodiscard]] bool are_none() const { return count_ == 0; }
    [[nodiscard]] bool cover(std::string_view key) const;
    /// What was read of a value.
    void note(std::string_view key, const std::function<RemoteVersion()>& version);
    /// For a value that is being changed and was set: its size and ETag, whatever others did since.
    [[nodiscard]] std::optional<std::pair<std::uint64_t, std::string>> set_value(std::string_view key) const;
    /// Sets a value that is being changed, if it is still what was read. Throws io, also if it is not.
    void put(std::string_view key, std::shared_ptr<const Buffer> body);

private:
    /// What was read of one value, with the mutex.
    struct Seen {
        std::optional<RemoteVersion> version;
        bool conflict = false;
        bool set = false;     ///< `version` is what was set
        bool failed = false;  ///< setting it failed, and may have taken effect
        std::uint64_t size = 0;
    };
    class Change;
    /// Throws io if a document above a value, which a change of the shape set as a mark that it is the last to have
    /// begun, is another one by now. Called after what the value depends on was read, and before it is set.
    void require_marks_above(std::string_view key) const;
    /// Puts a value unless another writer changed it since `expected`, which becomes the new version. Returns false if
    /// one did.
    bool put_if(Change& change, std::string_view key, std::shared_ptr<const Buffer> body, RemoteVersion& expected);
    /// What is there in place of a value of which nothing is kept, or, where values were absent of late, a guess that
    /// this is, too (second: true), which the condition of the write holds against the server.
    [[nodiscard]] std::pair<RemoteVersion, bool> found_before(std::string_view key);
    void note_found(const RemoteVersion& version);
    /// With the mutex; null if there is none.
    [[nodiscard]] Change* change_of(std::string_view key) const;

    const RemoteService& service_;
    const RemoteWriter& writer_;
    std::string place_;
    std::atomic<int> count_ = 0;
    mutable std::mutex mutex_;
    std::vector<Change*> changes_;
    std::mutex first_look_;
    std::atomic<bool> looked_ = false;
    int doubt_ = 1;  ///< so many values have to be found absent before it is guessed, with mutex_
};

}  // namespace tessera
