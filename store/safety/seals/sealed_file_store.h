// A sealed file and its seal, or a bag and its seal, as a store that looks like a sealed directory. Private to the
// store module.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

namespace tessera {

/// Where the seal of a file lies.
[[nodiscard]] std::filesystem::path seal_folder_of(const std::filesystem::path& file);
/// In a bag.
inline constexpr const char* bag_seal_folder = "tessera-seal";

/// Some of the files of a directory, with another folder of it under the name ".tessera". So the rules for seals in
/// ".tessera" hold for seals beside their files: no link is followed, and anything but files and directories is
/// corrupt. Thread rule: as the directory's store.
class SealedFileStore final : public KeyValueStore, public LocalFiles {
public:
    /// The file alone, with the folder "NAME.tessera-seal" beside it.
    [[nodiscard]] static std::shared_ptr<SealedFileStore> of_file(const std::filesystem::path& file,
                                                                  const StoreOptions& options);
    /// The files of a bag (RFC 8493), without the manifests of its tag files, which list the seal; the seal in the tag
    /// directory "tessera-seal".
    [[nodiscard]] static std::shared_ptr<SealedFileStore> of_bag(const std::filesystem::path& bag,
                                                                 const StoreOptions& options);

    /// The path of a key in the file system.
    [[nodiscard]] std::filesystem::path file_of(std::string_view key) const;
    /// A key as it is in the directory, for messages: what is in ".tessera" here lies elsewhere.
    [[nodiscard]] std::string shown(std::string_view key) const;
    /// Whether it shows a single file.
    [[nodiscard]] bool of_file() const { return !only_.empty(); }
    /// The file, or the bag.
    [[nodiscard]] std::filesystem::path path() const { return std::filesystem::path(name()) / only_; }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override;
    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override;
    void put(std::string_view key, ByteSpan value) override;
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override;
    bool link(std::string_view key, const ReadableStore& other, std::string_view other_key) override;
    bool replace(std::string_view from, std::string_view to) override;
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override;
    [[nodiscard]] bool contains(std::string_view key) const override;
    bool erase(std::string_view key) override;
    void erase_below(std::string_view prefix) override;
    [[nodiscard]] Listing list(std::string_view prefix) const override;
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override;
    /// Locks nothing: a lock file would be one that a bag does not list, and nobody writes to bags and zips.
    [[nodiscard]] StoreLock lock(std::string_view /*prefix*/, std::uint64_t /*slot*/, LockMode /*mode*/) override {
        return {};
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view /*prefix*/) override { return StoreLock(); }
    void sync() override { directory_->sync(); }
    [[nodiscard]] LocalFiles& local_files() override { return *this; }
    [[nodiscard]] const LocalFiles& local_files() const override { return *this; }
    [[nodiscard]] bool leads_back(std::string_view prefix) const override;
    [[nodiscard]] std::optional<FileId> folder_id(std::string_view prefix) const override;
    [[nodiscard]] bool is_link(std::string_view prefix) const override;
    [[nodiscard]] std::string link_target(std::string_view prefix) const override;
    void require_direct(std::string_view key) const override;
    [[nodiscard]] bool read_only() const override { return directory_->read_only(); }
    [[nodiscard]] const std::string& name() const override { return directory_->name(); }

private:
    SealedFileStore(std::shared_ptr<KeyValueStore> directory, std::string seal, std::string only)
        : directory_(std::move(directory)), seal_(std::move(seal)), only_(std::move(only)) {}
    /// The directory's key. Throws invalid_argument for a key that is hidden.
    [[nodiscard]] std::string there(std::string_view key) const;
    /// If the key is in the seal, throws corrupt for links, and for anything but a file or a directory, on its path.
    void require_own(std::string_view key) const;
    /// The same for the folders above a key that is to be written.
    void require_own_folder(std::string_view key) const;
    /// Whether an entry of a folder of the seal is shown: a file or a directory.
    [[nodiscard]] bool is_own_entry(std::string_view prefix, std::string_view name) const;
    /// Whether a name directly in the directory is one of this store.
    [[nodiscard]] bool shows(std::string_view name) const;

    std::shared_ptr<KeyValueStore> directory_;
    std::string seal_;  ///< folder
    std::string only_;  ///< the only file; empty: all of a bag but the manifests of its tag files
};

/// The store as one of these; nullptr if it is another.
[[nodiscard]] inline const SealedFileStore* as_sealed_file(const ReadableStore& store) {
    return dynamic_cast<const SealedFileStore*>(&store);
}

}  // namespace tessera
