// A kind of store as one would add it: this file, and its name in store/format/keys/store_kinds.cpp. "toy:survey/depth"
// is the prefix "depth" of the store "toy:survey". All values of all stores lie in the one folder that TESSERA_TOYS
// names, each in a file whose name is the store's and the key with '!' for '/'. So what takes the path for one of a
// folder finds nothing, or leaves something where the tests see it. Counts calls.
#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/store_kind.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "keys.h"
#include "lock_table.h"
#include "seal_mark.h"
#include "sorted_keys.h"
#include "versions.h"

namespace tessera {

namespace fs = std::filesystem;

// For the tests.
std::atomic<int> toy_reads = 0;
std::atomic<int> toy_writes = 0;

namespace {

/// The locks of a store, between all objects for it.
LockTables& locks_of(const std::string& name) {
    static std::mutex mutex;
    static auto& all = *new std::map<std::string, LockTables>;
    const std::lock_guard guard(mutex);
    return all[name];
}

class ToyStore final : public KeyValueStore {
public:
    ToyStore(std::string name, const StoreOptions& options)
        : name_(std::move(name)), options_(options), locks_(locks_of(name_)) {
        const char* folder = std::getenv("TESSERA_TOYS");
        if (folder == nullptr) throw invalid_argument(fmt::format("{}: TESSERA_TOYS names no folder", name_));
        folder_ = folder;
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        ++toy_reads;
        const fs::path file = file_of(key);
        if (!fs::exists(file)) return nullptr;
        return memory_source(read_all(*open_file(file)), fmt::format("{}/{}", name_, key));
    }
    void put(std::string_view key, ByteSpan value) override {
        const auto sink = create(key);
        sink->append(value);
        sink->finish();
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        require_writable(key);
        return create_file(file_of(key), false);
    }
    bool erase(std::string_view key) override {
        require_writable(key);
        return fs::remove(file_of(key));
    }
    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        for (const auto& [key, file] : below(prefix)) {
            require_writable(key);
            fs::remove(file);
        }
    }
    bool replace(std::string_view from, std::string_view to) override {
        require_writable(to);
        if (!fs::exists(file_of(from))) return false;
        fs::rename(file_of(from), file_of(to));
        return true;
    }
    void move(std::string_view from, std::string_view to) override {
        require_movable(name_, from, to);
        const Files files = below(from);
        if (files.empty()) throw not_found(fmt::format("moving {}/{}: nothing is there", name_, from));
        if (!below(to).empty()) throw already_exists(fmt::format("{}/{} is there already", name_, to));
        for (const auto& [key, file] : files) replace(key, join_key(to, name_below(from, key)));
    }
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        const auto value = open(key);
        return value ? std::optional(content_stamp(*value)) : std::nullopt;
    }
    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        return list_below(below(prefix), prefix);
    }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        const Files files = below(prefix);
        for_each_directly_below(files, prefix, [&](std::string_view name, const fs::path& file) {
            each(name, [&] { return fs::file_size(file); });
        });
        if (!folder) return;
        for (const std::string& name : list_below(files, prefix).prefixes) folder(name, false);
    }
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        require_prefix(prefix);
        return locks_.lock(prefix, slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        require_prefix(prefix);
        return locks_.try_lock(prefix);
    }
    void require_unsealed(std::string_view prefix) override {
        tessera::require_unsealed({*this, prefix}, options_.break_seal);
    }
    [[nodiscard]] bool read_only() const override { return options_.read_only; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    using Files = std::map<std::string, fs::path, std::less<>>;

    [[nodiscard]] fs::path file_of(std::string_view key) const {
        require_key(key);
        std::string file = fmt::format("{}!{}", name_.substr(name_.find(':') + 1), key);
        std::ranges::replace(file, '/', '!');
        return folder_ / file;
    }
    void require_writable(std::string_view key) const {
        ++toy_writes;
        if (options_.read_only) throw invalid_argument(fmt::format("{}/{}: opened for reading only", name_, key));
    }
    [[nodiscard]] Files below(std::string_view prefix) const {
        ++toy_reads;
        Files files;
        const std::string begin = fmt::format("{}!", name_.substr(name_.find(':') + 1));
        for (const auto& entry : fs::directory_iterator(folder_)) {
            std::string key = entry.path().filename().string();
            if (!key.starts_with(begin)) continue;
            key.erase(0, begin.size());
            std::ranges::replace(key, '!', '/');
            if (prefix.empty() || key.starts_with(fmt::format("{}/", prefix))) files.emplace(key, entry.path());
        }
        return files;
    }

    std::string name_;
    StoreOptions options_;
    LockTables& locks_;
    fs::path folder_;
};

Place toy_place(const fs::path& name, const StoreOptions& options) {
    const std::string path = name.string();
    const std::string text = path.substr(0, path.find_last_not_of('/') + 1);
    const std::size_t slash = text.find('/');
    const std::string prefix = slash == std::string::npos ? "" : text.substr(slash + 1);
    if (text.substr(0, slash) == "toy:") throw invalid_argument(fmt::format("{}: expected toy:NAME", path));
    require_prefix(prefix);
    return {std::make_shared<ToyStore>(text.substr(0, slash), options), prefix};
}

}  // namespace

extern constinit const StoreKind toy_kind{.scheme = "toy", .about = "a store of toys", .place = toy_place};

}  // namespace tessera
