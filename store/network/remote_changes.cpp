#include "remote_changes.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "node_documents.h"
#include "remote_lease.h"

namespace tessera {

class RemoteChanges::Change final : public ValueChange {
public:
    Change(RemoteChanges& all, std::string_view key) : all_(all), key_(key) {
        const std::lock_guard guard(all_.mutex_);
        ++all_.count_;
        all_.changes_.push_back(this);
    }
    ~Change() override {
        const std::lock_guard guard(all_.mutex_);
        --all_.count_;
        std::erase(all_.changes_, this);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    [[nodiscard]] bool covers(std::string_view key) const {
        if (key == key_) return true;
        const auto name = document_name(key);
        return name && join_key(key_, *name) == key;
    }
    [[nodiscard]] const std::string& key() const { return key_; }
    /// The documents that it set, with the mutex.
    [[nodiscard]] std::vector<std::pair<std::string, RemoteVersion>> set_values() const {
        std::vector<std::pair<std::string, RemoteVersion>> all;
        for (const auto& [key, seen] : seen_) {
            if (seen.set) all.emplace_back(key, *seen.version);
        }
        return all;
    }
    void note(std::string_view key, RemoteVersion version) {
        Seen& seen = seen_[std::string(key)];
        seen.conflict = seen.conflict || (seen.version && !(*seen.version == version));
        seen.version = std::move(version);
    }
    Seen& of(std::string_view key) { return seen_[std::string(key)]; }

    [[nodiscard]] bool conflicted() const override {
        std::vector<std::pair<std::string, RemoteVersion>> read;
        {
            const std::lock_guard guard(all_.mutex_);
            if (std::ranges::any_of(seen_, [](const auto& one) { return one.second.failed; })) return false;
            for (const auto& [key, seen] : seen_) {
                if (seen.conflict) return true;
                if (seen.version) read.emplace_back(key, *seen.version);
            }
        }
        // A value may have been replaced while it was read by ranges.
        return std::ranges::any_of(read, [&](const auto& one) {
            try {
                return !(all_.writer_.version(one.first) == one.second);
            } catch (const Error&) {
                return false;
            }
        });
    }
    [[nodiscard]] bool was_absent() override {
        {
            const std::lock_guard guard(all_.mutex_);
            if (const Seen& seen = of(key_); seen.version) return seen.version->etag.empty();
        }
        RemoteVersion version = all_.writer_.version(key_);
        const bool absent = version.etag.empty();
        const std::lock_guard guard(all_.mutex_);
        note(key_, std::move(version));
        return absent;
    }

private:
    RemoteChanges& all_;
    std::string key_;
    std::map<std::string, Seen, std::less<>> seen_;
};

std::unique_ptr<ValueChange> RemoteChanges::begin(std::string_view key) {
    return std::make_unique<Change>(*this, key);
}

RemoteChanges::Change* RemoteChanges::change_of(std::string_view key) const {
    const auto found = std::ranges::find_if(changes_, [&](const Change* change) { return change->covers(key); });
    return found == changes_.end() ? nullptr : *found;
}

bool RemoteChanges::cover(std::string_view key) const {
    const std::lock_guard guard(mutex_);
    return change_of(key) != nullptr;
}

void RemoteChanges::note(std::string_view key, const std::function<RemoteVersion()>& version) {
    if (are_none()) return;
    const std::lock_guard guard(mutex_);
    for (Change* const change : changes_) {
        if (change->covers(key)) change->note(key, version());
    }
}

std::optional<std::pair<std::uint64_t, std::string>> RemoteChanges::set_value(std::string_view key) const {
    if (are_none()) return std::nullopt;
    const std::lock_guard guard(mutex_);
    for (Change* const change : changes_) {
        if (!change->covers(key)) continue;
        const Seen& seen = change->of(key);
        if (seen.set) return std::pair(seen.size, seen.version->etag);
    }
    return std::nullopt;
}

void RemoteChanges::require_marks_above(std::string_view key) const {
    std::vector<std::pair<std::string, RemoteVersion>> marks;
    {
        const std::lock_guard guard(mutex_);
        for (const Change* const change : changes_) {
            const std::string& above = change->key();
            const bool is_below =
                above.empty() || (key.starts_with(above) && key.size() > above.size() && key[above.size()] == '/');
            if (!is_below || change->covers(key)) continue;
            if (!holds_lease(service_.request(join_key(above, lease_key)).name)) continue;
            for (auto& one : change->set_values()) marks.push_back(std::move(one));
        }
    }
    for (const auto& [document, version] : marks) {
        if (writer_.version(document) == version) continue;
        throw Error(ErrorCode::io,
                    fmt::format("{}: another program took over, which changes the shape, too: nothing of "
                                "this change shows, and it can be repeated",
                                join_key(place_, document)));
    }
}

bool RemoteChanges::put_if(Change& change, std::string_view key, std::shared_ptr<const Buffer> body,
                           RemoteVersion& expected) {
    try {
        require_marks_above(key);
        return writer_.put_if(key, std::move(body), expected);
    } catch (...) {
        const std::lock_guard guard(mutex_);
        change.of(key).failed = true;
        throw;
    }
}

void RemoteChanges::note_found(const RemoteVersion& version) {
    constexpr int absences_wanted = 4;
    const std::lock_guard guard(mutex_);
    looked_ = true;
    doubt_ = version.etag.empty() ? std::max(doubt_ - 1, 0) : absences_wanted;
}

std::pair<RemoteVersion, bool> RemoteChanges::found_before(std::string_view key) {
    std::unique_lock first(first_look_, std::defer_lock);
    if (!looked_) first.lock();  // what it finds spares the others a look
    {
        const std::lock_guard guard(mutex_);
        if (doubt_ == 0) return {RemoteVersion(), true};
    }
    RemoteVersion version = writer_.version(key);
    note_found(version);
    return {std::move(version), false};
}

void RemoteChanges::put(std::string_view key, std::shared_ptr<const Buffer> body) {
    const std::uint64_t size = body->size();
    const auto conflict = [&] {
        return Error(ErrorCode::io, fmt::format("{}: another writer changed it meanwhile", join_key(place_, key)));
    };
    Change* change = nullptr;  // its thread is this one
    std::optional<RemoteVersion> expected;
    {
        const std::lock_guard guard(mutex_);
        change = change_of(key);
        const Seen& seen = change->of(key);
        if (seen.conflict) throw conflict();
        expected = seen.version;
    }
    const ServerConduct::Holds holds = writer_.conduct().holds;
    bool guessed = false;
    if (!expected && holds == ServerConduct::Holds::full) std::tie(expected, guessed) = found_before(key);
    const bool on_condition = holds == ServerConduct::Holds::full ||
                              (holds == ServerConduct::Holds::create_only && expected && expected->etag.empty());
    renew_lease_of(service_.request(key).name);
    if (!on_condition) {
        writer_.finish(writer_.start_put(key, std::move(body)), key);
        return;
    }
    bool set = put_if(*change, key, body, *expected);
    if (!set && guessed) {
        note_found(*expected);
        set = put_if(*change, key, std::move(body), *expected);
    }
    const std::lock_guard guard(mutex_);
    Seen& seen = change->of(key);
    if (!set) {
        seen.conflict = true;
        throw conflict();
    }
    seen.version = std::move(expected);
    seen.set = true;
    seen.size = size;
}

}  // namespace tessera
