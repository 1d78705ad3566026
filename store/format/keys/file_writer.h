// How a directory store writes a file; see file_writer.cpp for the protocol. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/temporary_file.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "beneath.h"

namespace tessera {

/// Makes the names in folders durable, at once or by sync(), as the Durability says. Thread rule: any thread may call
/// any member.
class FolderSync {
public:
    /// `store` is the store's path, for messages; `open` caches open folders. Both must outlive this.
    FolderSync(Durability durability, const std::string& store, const FolderCache& open)
        : durability_(durability), store_(store), open_(open) {}

    /// Whether a value has to be on the disk before it gets its name.
    [[nodiscard]] bool syncs_values() const { return durability_ != Durability::none && !later_; }
    /// Whether one wait can make many values durable before an operation ends.
    [[nodiscard]] bool syncs_together(int root) const;

    /// A name in the folder of `key` was set or removed.
    void changed(int root, std::string_view key);

    /// The same for a name that a file just got, by link or rename, in the open folder `folder`.
    void placed(int root, std::string_view key, int folder, const char* name);

    /// The same as changed(), durable at once unless sync_later() deferred it.
    void changed_for_move(int root, std::string_view key) const;

    /// Defers everything to sync(), which then syncs the whole file system.
    void later(int root);

    /// `root` is the store's descriptor, or negative if it has no directory yet.
    void sync(int root);
    /// The same for several stores after later(). Skips file systems in `done`, and adds to it.
    void sync(int root, std::set<std::uint64_t>& done);

private:
    void sync_folder(int root, const std::string& folder) const;
    void sync_folders(int root, const std::set<std::string>& folders) const;

    static constexpr const char* none = "/";  // no folder's name

    Durability durability_;
    const std::string& store_;
    const FolderCache& open_;
    std::atomic<bool> later_ = false;
    std::atomic<int> fuse_ = -1;       ///< whether the store is on FUSE; negative if that is unknown
    std::atomic<bool> whole_ = false;  ///< later() has found that syncfs() is enough
    std::mutex syncing_;
    std::mutex mutex_;
    std::set<std::string> folders_;  ///< whose names are not yet durable
    std::string last_ = none;        ///< the folder added last
};

class ChangeKeeper;
class HeldFiles;

/// A value being written under a temporary name. Destruction without finish() removes the file.
class FileWriter final : public ByteSink {
public:
    /// `file` is in `folder`, the folder of `key` (null for the root), where finish() names it, or elsewhere if only
    /// finish() is called. `root` must stay open, `sync` and `keeper` alive. `name` is the key's path, for messages.
    /// `keeper`, if not null, keeps the value that is replaced.
    FileWriter(int root, FolderCache::Folder folder, TemporaryFile file, std::string key, std::string name,
               FolderSync& sync, ChangeKeeper* keeper);

    [[nodiscard]] bool random_access() const override { return true; }
    void append(ByteSpan bytes) override;
    void write_at(std::uint64_t offset, ByteSpan bytes) override;
    /// Makes the file a reflink of another one; false if that is impossible.
    bool clone(int from);
    /// Gives the file the permissions of another one.
    void share_like(int from);
    void finish() override;
    /// The same unless the key has a value; false if it has.
    bool finish_new();
    [[nodiscard]] const std::string& name() const override { return name_; }
    /// Makes finish() hand the file to `held`, which must live until then, instead of giving it its key.
    void hold(HeldFiles& held);

private:
    /// Closes the complete file, which is on the disk if the durability says so.
    void close();
    [[nodiscard]] int folder() const { return folder_ ? folder_->get() : root_; }
    /// The file's name in its folder.
    [[nodiscard]] const char* own_name() const { return key_.c_str() + (key_.rfind('/') + 1); }  // 0 without a '/'

    int root_;
    FolderCache::Folder folder_;
    TemporaryFile file_;  // after the folder, which stays open until it is gone
    std::string key_;
    std::string name_;
    FolderSync& sync_;
    ChangeKeeper* keeper_;
    HeldFiles* held_ = nullptr;
    std::uint64_t end_ = 0;
};

/// HeldValues of a directory store.
class HeldFiles final : public HeldValues {
public:
    struct Spot {
        FolderCache::Folder folder;  ///< null for the root
        int fd = -1;                 ///< of `folder`; negative if it is gone
    };
    using Writer = std::function<FileWriter(std::string_view key)>;
    using SpotOf = std::function<Spot(std::string_view key)>;
    /// `root` is the store's descriptor and `store` its path. `writer` begins a file, `spot` finds the folder of a key.
    /// `keeper`, if not null, keeps the values that are replaced.
    HeldFiles(const std::atomic<int>& root, const std::string& store, FolderSync& sync, Writer writer, SpotOf spot,
              ChangeKeeper* keeper)
        : root_(root),
          store_(store),
          sync_(sync),
          writer_(std::move(writer)),
          spot_(std::move(spot)),
          keeper_(keeper) {}
    HeldFiles(const HeldFiles&) = delete;
    HeldFiles& operator=(const HeldFiles&) = delete;
    ~HeldFiles() override;

    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override;
    void sync() override;
    bool place(std::string_view key) override;

private:
    friend class FileWriter;
    void begin(const std::string& key, int folder);
    void finished(const std::string& key, std::string temporary);

    const std::atomic<int>& root_;
    const std::string& store_;
    FolderSync& sync_;
    Writer writer_;
    SpotOf spot_;
    ChangeKeeper* keeper_;
    std::mutex mutex_;
    std::map<std::string, std::string, std::less<>> temporaries_;  ///< by key
    std::string last_ = "/";                                       ///< folder whose file system is known; "/" is none
    std::map<std::uint64_t, std::string> file_systems_;            ///< by device: a key on each
};

}  // namespace tessera
